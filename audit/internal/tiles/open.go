package tiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
)

// checkpointName is the name of the file with the last checkpoint.
const checkpointName = "checkpoint"

// ErrDamaged reports that the files of a log contradict each other, or that some are missing.
var ErrDamaged = errors.New("the log is damaged")

// Open opens the log in a folder, or begins one. After a crash, the log has all entries that Flush
// has written. A record that was cut off is removed.
//
// signed is the size and root of the last checkpoint of the log, which the caller has verified, or
// zero if there is none. If the entries do not have this root, the error is ErrDamaged.
func Open(dir string, signed tlog.Tree) (*Writer, error) {
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir}
	r := Reader{dir: dir}
	bundles := uint64(signed.N) / Width
	for r.has(tilePath(entriesLevel, bundles, Width)) {
		bundles++
	}
	err = w.rebuild(r, bundles)
	if err != nil {
		return nil, err
	}
	err = w.continuePending(r, signed)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	err = r.check(w.tree, signed)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// rebuild computes the tree of the first bundles. It writes the tiles that are missing.
func (w *Writer) rebuild(r Reader, bundles uint64) error {
	for n := range bundles {
		if name := tilePath(entriesLevel, n, Width); !r.has(name) {
			return fmt.Errorf("%w: %s is missing", ErrDamaged, name)
		}
		if r.has(tilePath(0, n, Width)) {
			continue
		}
		entries, err := r.bundle(n, Width)
		if err != nil {
			return err
		}
		err = w.writeFile(tilePath(0, n, Width), encodeHashes(hashesOf(entries)), false)
		if err != nil {
			return err
		}
	}
	w.tree = tree{size: bundles * Width, edges: [][]tlog.Hash{nil}}
	below := bundles // the number of full tiles of the level below
	for level := 1; below > 0; level++ {
		full := below / Width
		for n := range full {
			if r.has(tilePath(level, n, Width)) {
				continue
			}
			hashes, err := r.roots(level-1, n*Width, (n+1)*Width)
			if err == nil {
				err = w.writeFile(tilePath(level, n, Width), encodeHashes(hashes), false)
			}
			if err != nil {
				return err
			}
		}
		edge, err := r.roots(level-1, full*Width, below)
		if err != nil {
			return err
		}
		w.tree.edges = append(w.tree.edges, edge)
		below = full
	}
	return nil
}

// continuePending adds the entries after the last full bundle. They are in the pending file or, if
// that was lost, in the partial bundle of the last checkpoint.
func (w *Writer) continuePending(r Reader, signed tlog.Tree) error {
	n := w.tree.size / Width
	name := filepath.Join(w.dir, pendingPath(n))
	entries, size, err := readPending(name)
	if err != nil {
		return err
	}
	if width := signed.N - int64(w.tree.size); width > int64(len(entries)) {
		entries, err = r.bundle(n, int(width))
		if err != nil {
			return err
		}
		size = 0
	}
	for _, entry := range entries {
		w.add(entry)
	}
	if len(w.full) > 0 {
		return w.Flush() // the crash came before the bundle was written
	}
	if size == 0 {
		err = os.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	w.recorded = size
	w.pending, err = os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return w.pending.Truncate(size)
}

// check compares the tree with the last checkpoint.
func (r Reader) check(t tree, signed tlog.Tree) error {
	if int64(t.size) < signed.N {
		return fmt.Errorf("%w: it has %d entries, and its checkpoint has %d", ErrDamaged, t.size, signed.N)
	}
	if signed.N == 0 {
		return nil
	}
	root, err := tlog.TreeHash(signed.N, r.hashes(t))
	if err != nil {
		return err
	}
	if root != signed.Hash {
		return fmt.Errorf("%w: its entries do not have the root of its checkpoint", ErrDamaged)
	}
	return nil
}

func hashesOf(entries [][]byte) []tlog.Hash {
	hashes := make([]tlog.Hash, len(entries))
	for i, entry := range entries {
		hashes[i] = tlog.RecordHash(entry)
	}
	return hashes
}
