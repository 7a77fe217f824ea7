package tiles

import (
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// TestConsistency proves for all pairs of sizes that the larger tree continues the smaller one, while
// tiles that were not full at a checkpoint are full now.
func TestConsistency(t *testing.T) {
	sizes := []int64{1, 2, 3, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, 66_000}
	dir := t.TempDir()
	w, err := Open(dir, tlog.Tree{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := NewReader(dir)
	var trees []tlog.Tree
	for _, size := range sizes {
		for n := w.Size(); n < uint64(size); n++ {
			if _, err := w.Append(fmt.Appendf(nil, "entry %d", n)); err != nil {
				t.Fatal(err)
			}
		}
		err := w.Checkpoint(func(uint64, tlog.Hash) ([]byte, error) { return []byte("checkpoint"), nil })
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tlog.Tree{N: size, Hash: w.Root()})
		for i, signed := range trees {
			for _, old := range trees[:i+1] {
				proof, err := r.Consistency(signed, old.N)
				if err == nil {
					err = tlog.CheckTree(proof, signed.N, signed.Hash, old.N, old.Hash)
				}
				if err != nil {
					t.Errorf("the proof from %d to %d, when the log has %d entries: %v", old.N, signed.N, size, err)
				}
			}
		}
	}
	for _, old := range []int64{-1, 0, 66_001} {
		if _, err := r.Consistency(trees[len(trees)-1], old); err == nil {
			t.Errorf("there is a proof from %d entries", old)
		}
	}
}
