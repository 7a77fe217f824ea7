package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"time"

	"golang.org/x/net/html/charset"
)

// A stopwatch measures the total time spent in calls of the source and the Opener. If abort is not
// nil, the stopwatch calls it when the limit is reached during a call.
type stopwatch struct {
	limit time.Duration
	spent time.Duration
	abort func() // may be nil
}

// run calls f and adds the time that f takes. If the total has reached the limit, run returns a
// LimitError.
func (s *stopwatch) run(f func()) error {
	if s.abort != nil {
		defer time.AfterFunc(s.limit-s.spent, s.abort).Stop()
	}
	start := time.Now()
	f()
	s.spent += time.Since(start)
	if s.spent >= s.limit {
		return &LimitError{Limit: "Time", Max: int64(s.limit)}
	}
	return nil
}

// A source reads the raw bytes within the limits of size and time.
type source struct {
	r     io.Reader
	watch *stopwatch
	max   int64 // limit of n
	n     int64 // bytes read so far
	idle  int   // consecutive reads that returned no bytes
	err   error // returned by all further reads
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	p = p[:min(int64(len(p)), s.max-s.n+1)] // one byte more than allowed shows an excess
	var n int
	late := s.watch.run(func() { n, s.err = s.r.Read(p) })
	if late != nil && s.err != io.EOF {
		s.err = late
	}
	s.idle++
	if n > 0 {
		s.idle = 0
	} else if s.idle > 100 && s.err == nil {
		s.err = io.ErrNoProgress
	}
	s.n += int64(n)
	if s.n > s.max {
		n--
		s.err = &LimitError{Limit: "Raw", Max: s.max}
	}
	return n, s.err
}

// A meter limits how many bytes a layer of compression yields, in total and in proportion to the
// raw bytes. Each layer has its own meter. A single meter for the innermost layer would not be
// enough, because that layer can turn gigabytes of input into no output at all.
type meter struct {
	r      io.Reader
	raw    *source
	limits *Limits
	n      int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	switch {
	case m.n > m.limits.Decompressed:
		return n, &LimitError{Limit: "Decompressed", Max: m.limits.Decompressed}
	case m.n > ratioFrom && (m.n-1)/m.limits.Ratio >= m.raw.n:
		return n, &LimitError{Limit: "Ratio", Max: m.limits.Ratio}
	}
	return n, err
}

// unzip removes the layers of gzip. It recognizes a layer by its magic bytes alone, because file
// names and HTTP headers are often wrong.
func unzip(raw *source, limits *Limits) (r *bufio.Reader, layers int, err error) {
	r = bufio.NewReaderSize(raw, 16<<10)
	for ; ; layers++ {
		if magic, _ := r.Peek(3); string(magic) != "\x1f\x8b\x08" {
			return r, layers, nil
		}
		if layers == maxLayers {
			return nil, layers, &LimitError{Limit: "Layers", Max: maxLayers}
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, layers, noEOF(err)
		}
		r = bufio.NewReaderSize(&meter{r: z, raw: raw, limits: limits}, 16<<10)
	}
}

// noEOF returns io.ErrUnexpectedEOF instead of io.EOF, and any other error unchanged.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decode returns a reader of r in UTF-8 and reports whether it had to convert from another
// encoding. An encoding that the bytes themselves show takes precedence over the one in the XML
// declaration. A label that is unknown or cannot be correct means UTF-8.
func decode(r *bufio.Reader) (utf8 io.Reader, decoded bool) {
	head := peekHead(r)
	label := shown(head)
	if label == "" {
		label = declared(head)
	}
	if label == "" {
		return r, false
	}
	enc, name := charset.Lookup(label)
	if enc == nil || name == "utf-8" || name == "replacement" {
		return r, false
	}
	return enc.NewDecoder().Reader(r), true
}

// peekHead returns the first bytes of r, as many as are needed to determine the encoding. It reads
// no more than that, so that the first entries of a slow document are not delayed.
func peekHead(r *bufio.Reader) []byte {
	for n := 4; ; n = r.Buffered() + 1 {
		if _, err := r.Peek(n); err != nil || r.Buffered() >= headSize || settled(r) {
			head, _ := r.Peek(min(r.Buffered(), headSize))
			return head
		}
	}
}

// headSize is the number of bytes that are searched for an XML declaration.
const headSize = 1024

// settled reports whether the buffered bytes are sufficient to determine the encoding: they contain
// a complete XML declaration or a root, or they begin with a URL.
func settled(r *bufio.Reader) bool {
	head, _ := r.Peek(r.Buffered())
	if _, decl, ok := bytes.Cut(head, []byte("<?xml")); ok {
		return bytes.IndexByte(decl, '>') >= 0
	}
	for _, f := range formats {
		if bytes.Contains(head, []byte("<"+f.name)) {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("http"))
}

// shown returns the encoding that the first bytes show, or "" if they show none. A byte order mark
// shows UTF-8 or UTF-16. A NUL in one of the first two bytes also shows UTF-16, because the first
// character of a sitemap is always ASCII.
func shown(head []byte) string {
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		return "utf-8"
	}
	if len(head) < 2 {
		return ""
	}
	switch a, b := head[0], head[1]; {
	case a == 0xfe && b == 0xff, a == 0 && b != 0:
		return "utf-16be"
	case a == 0xff && b == 0xfe, a != 0 && b == 0:
		return "utf-16le"
	}
	return ""
}

// declared returns the encoding that the XML declaration names, or "" if there is none. It also
// returns "" for UTF-16 and wider encodings: they cannot be correct, because the declaration was
// found by its ASCII bytes.
func declared(head []byte) string {
	_, decl, ok := bytes.Cut(head, []byte("<?xml"))
	if !ok {
		return ""
	}
	if end := bytes.IndexByte(decl, '>'); end >= 0 {
		decl = bytes.TrimSuffix(decl[:end], []byte("?"))
	}
	label, _ := attribute(decl, "encoding")
	label = bytes.ToLower(label)
	if bytes.HasPrefix(label, []byte("utf-16")) || bytes.HasPrefix(label, []byte("utf-32")) ||
		bytes.HasPrefix(label, []byte("ucs-")) || bytes.HasPrefix(label, []byte("iso-10646")) {
		return ""
	}
	return string(label)
}
