package feed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"os"
)

// spoolInMemory is how many bytes of a sitemap are kept in memory. Most sitemaps are smaller.
const spoolInMemory = 128 << 10

// errNoPlace means that there is no temporary file for the part that memory does not keep.
var errNoPlace = errors.New("cannot create a temporary file for a large sitemap")

// unzipped decompresses raw, as net/http would do if the request had not asked for gzip itself.
// Then the number of compressed bytes would have no limit.
type unzipped struct {
	raw  io.Reader
	gzip *gzip.Reader // nil before the first Read
}

// Read implements io.Reader.
func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.gzip == nil {
		z, err := gzip.NewReader(u.raw)
		if err != nil {
			return 0, err
		}
		u.gzip = z
	}
	return u.gzip.Read(p)
}

// A spool holds a sitemap that was received, in memory or in a temporary file.
type spool struct {
	size   int64 // the number of bytes that were received
	head   []byte
	file   *os.File // holds the bytes after head; nil if there are none
	remove bool     // Close must remove the file, because it could not be removed while it is open
	err    error    // io.EOF, or the error that cut the transfer off
}

// keep reads r until it ends or fails. If err is not nil, s has only a size.
func keep(r io.Reader) (s *spool, err error) {
	head := new(bytes.Buffer)
	n, err := io.CopyN(head, r, spoolInMemory)
	s = &spool{size: n, head: head.Bytes(), err: err}
	if err != nil {
		return s, nil
	}
	s.file, err = os.CreateTemp("", "collyrobots-sitemap-*")
	if err != nil {
		return &spool{size: n}, errors.Join(errNoPlace, err)
	}
	s.remove = os.Remove(s.file.Name()) != nil
	rest, err := io.Copy(s.file, r)
	s.size += rest
	s.err = err
	if err == nil {
		s.err = io.EOF
	}
	return s, nil
}

// open returns a reader of the sitemap from its beginning. The reader ends with s.err.
func (s *spool) open() io.Reader {
	end := failure{s.err}
	if s.file == nil {
		return io.MultiReader(bytes.NewReader(s.head), end)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		end.err = err
	}
	return io.MultiReader(bytes.NewReader(s.head), s.file, end)
}

// sum returns the checksum of the first n bytes that were received.
func (s *spool) sum(n int64) []byte {
	h := sha256.New()
	io.CopyN(h, s.open(), n) // if the disk cannot be read, parsing the file fails as well
	return h.Sum(nil)
}

// Close removes the temporary file, if there is one.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.remove {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

// A failure is a reader that always fails.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }
