package tiles

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// TestReadWhileFull reads an entry and its hash again and again, while their bundle and tile become
// full. The files of the part are then removed.
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
		signed := tlog.Tree{N: 255, Hash: w.Root()}
		var reading sync.WaitGroup
		for range 4 {
			reading.Go(func() {
				r := NewReader(dir)
				for range 20 {
					entry, err := r.Entry(signed, 7)
					if err != nil || string(entry) != "entry 7" {
						t.Errorf("entry 7 is %q, %v", entry, err)
					}
					if _, err := r.Proof(signed, 7); err != nil {
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
