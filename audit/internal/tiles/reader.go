package tiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
)

// A Reader reads the files of a log. It trusts none of them: the caller compares hashes.
type Reader struct{ dir string }

// NewReader returns a Reader of the log in a folder.
func NewReader(dir string) Reader { return Reader{dir: dir} }

// Checkpoint returns the last checkpoint. It returns nil if there is none.
func (r Reader) Checkpoint() ([]byte, error) {
	text, err := readAtMost(filepath.Join(r.dir, checkpointName), maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// maxCheckpoint is the largest number of bytes in a checkpoint.
const maxCheckpoint = 1 << 20

// Pending returns the entries that come after the last full bundle, whether or not a checkpoint
// covers them.
func (r Reader) Pending(bundle uint64) ([][]byte, error) {
	entries, _, err := readPending(filepath.Join(r.dir, pendingPath(bundle)))
	return entries, err
}

// Tile returns the hashes of a tile.
func (r Reader) Tile(level int, n uint64, width int) ([]tlog.Hash, error) {
	content, err := r.read(level, n, width, width*tlog.HashSize)
	if err != nil {
		return nil, err
	}
	return decodeHashes(content, width)
}

func (r Reader) bundle(n uint64, width int) ([][]byte, error) {
	content, err := r.read(entriesLevel, n, width, width*(2+MaxEntry))
	if err != nil {
		return nil, err
	}
	entries, err := decodeBundle(content, width)
	if err != nil {
		return nil, fmt.Errorf("%w: bundle %d: %w", ErrDamaged, n, err)
	}
	return entries, nil
}

// read reads a tile or a bundle of at most limit bytes.
func (r Reader) read(level any, n uint64, width, limit int) ([]byte, error) {
	content, err := readAtMost(filepath.Join(r.dir, tilePath(level, n, width)), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, tilePath(level, n, width))
	}
	return content, err
}

// readAtMost reads a file. It returns an error if the file has more than limit bytes.
func readAtMost(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(limit) || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s has %d bytes, want a file of at most %d", ErrDamaged, path, info.Size(), limit)
	}
	return os.ReadFile(path)
}

// partial returns the widths of the partial files of a tile or a bundle.
func (r Reader) partial(level any, n uint64) (widths []int) {
	files, err := os.ReadDir(filepath.Join(r.dir, filepath.Dir(tilePath(level, n, 1))))
	if err != nil {
		return nil // there are none
	}
	for _, f := range files {
		width, err := strconv.Atoi(f.Name())
		if err == nil && width > 0 && width < Width {
			widths = append(widths, width)
		}
	}
	return widths
}

func (r Reader) has(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	return err == nil
}

// roots returns the roots of the full tiles from first to end of a level.
func (r Reader) roots(level int, first, end uint64) (roots []tlog.Hash, err error) {
	for n := first; n < end; n++ {
		hashes, err := r.Tile(level, n, Width)
		if err != nil {
			return nil, err
		}
		roots = append(roots, rootOf(hashes))
	}
	return roots, nil
}

// hashes returns a reader of the stored hashes of a tree, as package tlog numbers them. If t has no
// edges, they are read from the partial tiles.
func (r Reader) hashes(t tree) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			var err error
			hashes[i], err = r.hash(t, index)
			if err != nil {
				return nil, err
			}
		}
		return hashes, nil
	})
}

// hash returns a stored hash. It is the root of a part of a tile.
func (r Reader) hash(t tree, index int64) (tlog.Hash, error) {
	level, n := tlog.SplitStoredHashIndex(index)
	const height = 8 // Width is 1<<height
	tileLevel := level / height
	count := t.size >> (height * tileLevel) // the number of hashes of the level
	span := uint64(1) << (level % height)   // the number of hashes below this one
	first := uint64(n) * span
	tile := first / Width
	if first+span > count {
		return tlog.Hash{}, fmt.Errorf("%w: the hash %d of level %d is outside of the tree", ErrDamaged, n, level)
	}
	first %= Width
	if tileLevel < len(t.edges) && tile == count/Width {
		return rootOf(t.edges[tileLevel][first : first+span]), nil
	}
	hashes, err := r.anyTile(tileLevel, tile, int(min(Width, count-tile*Width)))
	if err != nil {
		return tlog.Hash{}, err
	}
	return rootOf(hashes[first : first+span]), nil
}

// anyBundle returns the first entries of a bundle. The bundle may have become full since the
// checkpoint, even during the call.
func (r Reader) anyBundle(n uint64, width int) ([][]byte, error) {
	return partOf(width, func(width int) ([][]byte, error) { return r.bundle(n, width) })
}

// anyTile is like anyBundle for a tile.
func (r Reader) anyTile(level int, n uint64, width int) ([]tlog.Hash, error) {
	return partOf(width, func(width int) ([]tlog.Hash, error) { return r.Tile(level, n, width) })
}

// partOf returns the first width elements of a tile, which read reads from the file of a width. The
// file of a full tile replaces that of a part.
func partOf[T any](width int, read func(width int) ([]T, error)) ([]T, error) {
	part, err := read(width)
	if err == nil || width == Width {
		return part, err
	}
	all, errOfAll := read(Width)
	if errOfAll != nil {
		return nil, err
	}
	return all[:width], nil
}
