package tiles

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// writeFile writes a file of the folder through a temporary file. If durable is true, the content
// has reached the disk when the function returns.
func (w *Writer) writeFile(name string, content []byte, durable bool) error {
	path := filepath.Join(w.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if durable {
		syncFolder(filepath.Dir(path))
	}
	return nil
}

// syncFolder makes a rename in a folder durable, where the system supports that.
func syncFolder(path string) {
	folder, err := os.Open(path)
	if err == nil {
		folder.Sync()
		folder.Close()
	}
}

// encodeHashes returns the content of a tile.
func encodeHashes(hashes []tlog.Hash) []byte {
	content := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		content = append(content, h[:]...)
	}
	return content
}

// decodeHashes returns the hashes of a tile. It returns an error if their number is not width.
func decodeHashes(content []byte, width int) ([]tlog.Hash, error) {
	if len(content) != width*tlog.HashSize {
		return nil, fmt.Errorf("a tile of %d hashes has %d bytes", width, len(content))
	}
	hashes := make([]tlog.Hash, width)
	for i := range hashes {
		copy(hashes[i][:], content[i*tlog.HashSize:])
	}
	return hashes, nil
}

// appendEntry appends an entry to a bundle: its length in two bytes and its bytes.
func appendEntry(bundle, entry []byte) []byte {
	bundle = binary.BigEndian.AppendUint16(bundle, uint16(len(entry)))
	return append(bundle, entry...)
}

// cutEntry returns the first entry of a bundle and the rest. ok is false if the bundle is cut off.
func cutEntry(bundle []byte) (entry, rest []byte, ok bool) {
	if len(bundle) < 2 {
		return nil, bundle, false
	}
	size := int(binary.BigEndian.Uint16(bundle))
	if len(bundle) < 2+size {
		return nil, bundle, false
	}
	return bundle[2 : 2+size], bundle[2+size:], true
}

// decodeBundle returns the entries of a bundle. It returns an error if their number is not width.
func decodeBundle(bundle []byte, width int) ([][]byte, error) {
	entries := make([][]byte, 0, width)
	for len(bundle) > 0 && len(entries) <= width {
		entry, rest, ok := cutEntry(bundle)
		if !ok {
			return nil, fmt.Errorf("entry %d of a bundle is cut off", len(entries))
		}
		entries = append(entries, entry)
		bundle = rest
	}
	if len(entries) != width {
		return nil, fmt.Errorf("a bundle of %d entries has %d", width, len(entries))
	}
	return entries, nil
}

// The file pending has records of the entries after the last full bundle. A record is the CRC-32 of
// the entry in four bytes, and the entry as in a bundle. The name has the number of the bundle that
// the entries will be in.
func pendingPath(bundle uint64) string { return fmt.Sprintf("pending-%d", bundle) }

func appendRecord(records, entry []byte) []byte {
	records = binary.BigEndian.AppendUint32(records, crc32.ChecksumIEEE(entry))
	return appendEntry(records, entry)
}

// readPending returns the entries of a pending file up to the first damaged record, which a crash
// leaves behind, and the number of bytes before it. If there is no file, it returns none.
func readPending(path string) (entries [][]byte, size int64, err error) {
	records, err := readAtMost(path, Width*(4+2+MaxEntry))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	rest := records
	for len(rest) > 4 && len(entries) < Width {
		sum := binary.BigEndian.Uint32(rest)
		entry, after, ok := cutEntry(rest[4:])
		if !ok || crc32.ChecksumIEEE(entry) != sum {
			break
		}
		entries = append(entries, entry)
		rest = after
	}
	return entries, int64(len(records) - len(rest)), nil
}
