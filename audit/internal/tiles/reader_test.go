package tiles

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// TestReadWhileFull reads a bundle and its hashes again and again, while they become full. The files
// of the part are then removed.
func TestReadWhileFull(t *testing.T) {
	for range 30 {
		dir := t.TempDir()
		w, err := Open(dir, tlog.Tree{})
		if err != nil {
			t.Fatal(err)
		}
		sign := func(uint64, tlog.Hash) ([]byte, error) { return []byte("checkpoint"), nil }
		add := func(size uint64) {
			for n := w.Size(); n < size; n++ {
				w.Append(fmt.Appendf(nil, "entry %d", n))
			}
			if err := w.Checkpoint(sign); err != nil {
				t.Error(err)
			}
		}
		add(255)
		var reading sync.WaitGroup
		for range 4 {
			reading.Go(func() {
				r := NewReader(dir)
				for range 20 {
					entries, err := r.anyBundle(0, 255)
					if err != nil || string(entries[7]) != "entry 7" {
						t.Errorf("entry 7 is %q, %v", entries, err)
					}
					if _, err := r.anyTile(0, 0, 255); err != nil {
						t.Error(err)
					}
				}
			})
		}
		add(257)
		reading.Wait()
		w.Close()
	}
}
