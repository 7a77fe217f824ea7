package tiles

import (
	"testing"
)

// TestPartialFilesStay checks that the partial files of a bundle stay until the next bundle is full: a
// program that copies the log may have listed the folder before the full file was there.
func TestPartialFilesStay(t *testing.T) {
	w := open(t, t.TempDir())
	r := NewReader(w.dir)
	add := func(entries int) {
		for range entries {
			if _, err := w.Append(entry(w.tree.size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Checkpoint(plain); err != nil {
			t.Fatal(err)
		}
	}
	const early = 10
	for _, step := range []struct {
		entries int
		stays   bool // the partial bundle and tile 0 are there
	}{{early, true}, {Width - early, true}, {early, true}, {Width, false}} {
		add(step.entries)
		bundle := r.has(tilePath(entriesLevel, 0, early))
		tile := r.has(tilePath(0, 0, early))
		if bundle != step.stays || tile != step.stays {
			t.Errorf("after %d entries: partial bundle %t, partial tile %t, want %t", w.tree.size, bundle, tile, step.stays)
		}
	}
	if !r.has(tilePath(entriesLevel, 1, early)) {
		t.Error("the partial files of the last full bundle are gone before Close")
	}
	err := w.Close()
	if err != nil || r.has(tilePath(entriesLevel, 1, early)) || r.has(tilePath(0, 1, early)) {
		t.Errorf("Close has left partial files of a full bundle, %v", err)
	}
	if _, _, faults := scanAll(t, w.dir); len(faults) > 0 {
		t.Error(faults)
	}
}
