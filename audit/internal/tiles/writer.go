package tiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// A Writer appends entries to a log. Its methods must not be called at the same time. Append keeps
// entries in memory, and Flush writes them.
//
// After an error of Flush or Checkpoint the Writer has all entries that are not written, and the
// next call tries again.
type Writer struct {
	dir  string
	tree tree

	bundle   []byte // the entries of the bundle that is not full
	full     []fullBundle
	pending  *os.File // has the first bytes of the records of bundle; nil if there are none
	records  []byte   // the records of the entries of bundle
	recorded int64    // the number of bytes of records that are in pending
}

// A fullBundle is a bundle that has to be written, with the tiles that its last entry has filled.
type fullBundle struct {
	n     uint64
	bytes []byte
	tiles []fullTile
}

// Size returns the number of entries, including those that are not written.
func (w *Writer) Size() uint64 { return w.tree.size }

// Root returns the root of the tree of all entries.
func (w *Writer) Root() tlog.Hash { return w.tree.root() }

// Unwritten returns the number of bytes that the next Flush writes to the disk.
func (w *Writer) Unwritten() int {
	bytes := len(w.records) - int(w.recorded)
	for _, b := range w.full {
		bytes += len(b.bytes)
	}
	return bytes
}

// Append adds an entry and returns its index. The entry has 1 to MaxEntry bytes.
func (w *Writer) Append(entry []byte) (index uint64, err error) {
	if len(entry) > MaxEntry || len(entry) == 0 {
		return 0, fmt.Errorf("an entry has %d bytes, want 1 to %d", len(entry), MaxEntry)
	}
	index = w.tree.size
	w.add(entry)
	return index, nil
}

// add adds an entry to the bundle, and its hash to the tree.
func (w *Writer) add(entry []byte) {
	n := w.tree.size / Width
	w.bundle = appendEntry(w.bundle, entry)
	w.records = appendRecord(w.records, entry)
	tiles := w.tree.add(tlog.RecordHash(entry))
	if len(tiles) == 0 {
		return
	}
	w.full = append(w.full, fullBundle{n: n, bytes: w.bundle, tiles: tiles})
	w.bundle = make([]byte, 0, len(w.bundle)+len(w.bundle)/8) // the next one is likely to be as long
	w.records = w.records[:0]
	w.recorded = 0
	if w.pending != nil {
		w.pending.Close() // its entries are in w.full, so an error does no harm
		w.pending = nil
	}
}

// Flush writes all entries. When it returns nil, they have reached the disk.
func (w *Writer) Flush() error {
	for len(w.full) > 0 {
		err := w.writeFull(w.full[0])
		if err != nil {
			return err
		}
		w.full = w.full[1:]
	}
	w.full = nil
	return w.writePending()
}

// writeFull writes a full bundle and its tiles, and removes what they replace. The partial files stay
// until the next bundle or tile is full: a program that copies the running log may have listed the
// folder before the full file was there, and must find the partial ones.
func (w *Writer) writeFull(b fullBundle) error {
	err := w.writeFile(tilePath(entriesLevel, b.n, Width), b.bytes, true)
	if err != nil {
		return err
	}
	for _, tile := range b.tiles {
		err := w.writeFile(tilePath(tile.level, tile.n, Width), encodeHashes(tile.hashes), false)
		if err != nil {
			return err
		}
		w.removePartialBefore(tile.level, tile.n)
	}
	w.removePartialBefore(entriesLevel, b.n)
	err = os.Remove(filepath.Join(w.dir, pendingPath(b.n)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// removePartialBefore removes the partial files of the tile or bundle before n, if that is full and written.
// An error does no harm.
func (w *Writer) removePartialBefore(level any, n uint64) {
	if n > 0 && NewReader(w.dir).has(tilePath(level, n-1, Width)) {
		os.RemoveAll(filepath.Join(w.dir, filepath.Dir(tilePath(level, n-1, 1))))
	}
}

// writePending writes the entries after the last full bundle.
func (w *Writer) writePending() error {
	rest := w.records[w.recorded:]
	if len(rest) == 0 {
		return nil
	}
	if w.pending == nil {
		f, err := os.OpenFile(filepath.Join(w.dir, pendingPath(w.tree.size/Width)), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		w.pending = f
	}
	_, err := w.pending.WriteAt(rest, w.recorded)
	if err == nil {
		err = w.pending.Sync()
	}
	if err != nil {
		return err // the next call writes the same bytes at the same place
	}
	w.recorded += int64(len(rest))
	return nil
}

// Checkpoint writes all entries, the partial tiles of the tree, and a checkpoint, which sign makes
// from the size and the root of the tree.
func (w *Writer) Checkpoint(sign func(size uint64, root tlog.Hash) ([]byte, error)) error {
	err := w.Flush()
	if err != nil {
		return err
	}
	err = w.writePartial()
	if err != nil {
		return err
	}
	checkpoint, err := sign(w.tree.size, w.tree.root())
	if err != nil {
		return err
	}
	return w.writeFile(checkpointName, checkpoint, true)
}

// writePartial writes the tiles and the bundle that are not full.
func (w *Writer) writePartial() error {
	n := w.tree.size
	for level, edge := range w.tree.edges {
		n /= Width
		if len(edge) == 0 {
			continue
		}
		err := w.writeFile(tilePath(level, n, len(edge)), encodeHashes(edge), true)
		if err != nil {
			return err
		}
	}
	width := int(w.tree.size % Width)
	if width == 0 {
		return nil
	}
	return w.writeFile(tilePath(entriesLevel, w.tree.size/Width, width), w.bundle, true)
}

// Close closes the files, and removes the partial files that full ones have replaced. It writes
// nothing.
func (w *Writer) Close() error {
	n := w.tree.size / Width
	w.removePartialBefore(entriesLevel, n)
	for level := range w.tree.edges {
		w.removePartialBefore(level, n)
		n /= Width
	}
	if w.pending == nil {
		return nil
	}
	err := w.pending.Close()
	w.pending = nil
	return err
}
