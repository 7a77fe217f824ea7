package tiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Erase removes the text of an entry that a checkpoint covers. Its hash stays in the tree. The log
// must not be open.
func Erase(dir string, signed uint64, index uint64) error {
	if index >= signed {
		return fmt.Errorf("the checkpoint covers %d entries, so there is no entry %d", signed, index)
	}
	n := index / Width
	r := Reader{dir: dir}
	full := tilePath(entriesLevel, n, Width)
	if r.has(full) {
		err := r.erase(full, Width, int(index%Width))
		if err != nil {
			return err
		}
	} else {
		pending, err := r.Pending(n)
		if err != nil {
			return err
		}
		if n*Width+uint64(len(pending)) > signed {
			return errors.New("the log has entries after the checkpoint: open and close it first")
		}
	}
	for _, width := range r.partial(entriesLevel, n) { // some may be left of a full bundle
		if width <= int(index%Width) {
			continue
		}
		err := r.erase(tilePath(entriesLevel, n, width), width, int(index%Width))
		if err != nil {
			return err
		}
	}
	err := os.Remove(filepath.Join(dir, pendingPath(n)))
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
