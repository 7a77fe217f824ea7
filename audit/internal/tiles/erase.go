package tiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Erase removes the text of an entry that a checkpoint covers. Its hash stays in the tree. The log
// must not be open.
func Erase(dir string, signed uint64, index uint64) error {
	if index >= signed {
		return fmt.Errorf("the checkpoint covers %d entries, so there is no entry %d", signed, index)
	}
	n := index / Width
	full := tilePath(entriesLevel, n, Width)
	r := Reader{dir: dir}
	if r.has(full) {
		return r.erase(full, Width, int(index%Width))
	}
	pending, err := r.Pending(n)
	if err != nil {
		return err
	}
	if n*Width+uint64(len(pending)) > signed {
		return errors.New("the log has entries after the checkpoint: open and close it first")
	}
	names, err := filepath.Glob(filepath.Join(dir, filepath.Dir(tilePath(entriesLevel, n, 1)), "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		width, err := strconv.Atoi(filepath.Base(name))
		if err != nil || width <= int(index%Width) {
			continue
		}
		err = r.erase(tilePath(entriesLevel, n, width), width, int(index%Width))
		if err != nil {
			return err
		}
	}
	err = os.Remove(filepath.Join(dir, pendingPath(n)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// erase replaces an entry of a bundle by an empty one.
func (r Reader) erase(name string, width, i int) error {
	content, err := readAtMost(filepath.Join(r.dir, name), width*(2+MaxEntry))
	if err != nil {
		return err
	}
	entries, err := decodeBundle(content, width)
	if err != nil {
		return err
	}
	entries[i] = nil
	var bundle []byte
	for _, entry := range entries {
		bundle = appendEntry(bundle, entry)
	}
	w := Writer{dir: r.dir}
	return w.writeFile(name, bundle, true)
}
