package tiles

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// scanAll returns the number of entries that Scan trusts, and its faults.
func scanAll(t *testing.T, dir string) (signed, unsigned int, faults []string) {
	t.Helper()
	for item := range NewReader(dir).Scan(signedTree(t, dir), nil, func(_ uint64, text string) { faults = append(faults, text) }) {
		switch {
		case item.Entry == nil: // damaged
		case !bytes.Equal(item.Entry, entry(item.Index)):
			t.Errorf("entry %d is %q", item.Index, item.Entry)
		case item.Signed:
			signed++
		default:
			unsigned++
		}
	}
	return signed, unsigned, faults
}

func TestScan(t *testing.T) {
	for _, size := range []int{0, 1, 255, 256, 257, 3000} {
		for _, more := range []int{0, 5, 700} {
			dir := t.TempDir()
			w := open(t, dir)
			add(t, w, size)
			if err := w.Checkpoint(plain); err != nil {
				t.Fatal(err)
			}
			add(t, w, more)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if signed, unsigned, faults := scanAll(t, dir); signed != size || unsigned != more || len(faults) > 0 {
				t.Errorf("%d entries and %d after the checkpoint: got %d, %d, %q", size, more, signed, unsigned, faults)
			}
		}
	}
}

// TestScanFindsDamage checks that each change of a file is found and named.
func TestScanFindsDamage(t *testing.T) {
	sound := t.TempDir()
	w := open(t, sound)
	add(t, w, 66_600)
	if err := w.Checkpoint(plain); err != nil {
		t.Fatal(err)
	}
	swap := func(dir string) error {
		name := filepath.Join(dir, "tile/entries/001")
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		entries, err := decodeBundle(text, Width)
		if err != nil {
			return err
		}
		entries[3], entries[4] = entries[4], entries[3]
		var again []byte
		for _, e := range entries {
			again = appendEntry(again, e)
		}
		return os.WriteFile(name, again, 0o600)
	}
	for _, test := range []struct {
		name   string
		damage func(dir string) error
		want   string // in the first fault
	}{
		{"a byte of an entry", func(dir string) error { return flip(filepath.Join(dir, "tile/entries/001"), 300) }, "the entry does not have its hash"},
		{"a length", func(dir string) error { return flip(filepath.Join(dir, "tile/entries/001"), 0) }, "bundle 1"},
		{"two entries change places", swap, "the entry does not have its hash"},
		{"a hash", func(dir string) error { return flip(filepath.Join(dir, "tile/0/001"), 40) }, "the entry does not have its hash"},
		{"a hash of level 1", func(dir string) error { return flip(filepath.Join(dir, "tile/1/000"), 40) }, "tile/0/001 does not have its hash in tile/1/000"},
		{"the partial bundle", func(dir string) error { return flip(filepath.Join(dir, "tile/entries/260.p/40"), 9) }, "the entry does not have its hash"},
		{"a bundle is missing", func(dir string) error { return os.Remove(filepath.Join(dir, "tile/entries/002")) }, "002 is missing"},
		{"a tile is missing", func(dir string) error { return os.Remove(filepath.Join(dir, "tile/0/002")) }, "002 is missing"},
		{"a bundle is empty", func(dir string) error { return os.Truncate(filepath.Join(dir, "tile/entries/002"), 0) }, "has 0"},
		{"a checkpoint of another tree", func(dir string) error {
			var other tree
			for n := range uint64(66_600) {
				other.add(hashesOf([][]byte{entry(n + 1)})[0])
			}
			text, _ := plain(66_600, other.root())
			return os.WriteFile(filepath.Join(dir, checkpointName), text, 0o600)
		}, "the checkpoint has"},
	} {
		dir := filepath.Join(t.TempDir(), "log")
		if err := os.CopyFS(dir, os.DirFS(sound)); err != nil {
			t.Fatal(err)
		}
		if err := test.damage(dir); err != nil {
			t.Fatal(err)
		}
		_, _, faults := scanAll(t, dir)
		if len(faults) == 0 || !strings.Contains(filepath.ToSlash(faults[0]), test.want) {
			t.Errorf("%s: got %q, want %q", test.name, faults, test.want)
		}
	}
}

// TestScanComparesCopies changes an entry or a hash in a file that is not needed for the checkpoint. The
// pending file and the partial tiles of earlier checkpoints have copies of the last entries.
func TestScanComparesCopies(t *testing.T) {
	forged := func(dir string) error {
		var records []byte
		for n := range uint64(28) {
			text := entry(768 + n)
			if n == 7 {
				text = []byte("forged")
			}
			records = appendRecord(records, text)
		}
		return os.WriteFile(filepath.Join(dir, "pending-3"), records, 0o600)
	}
	for _, test := range []struct {
		name   string
		change func(dir string) error
		want   string // the only fault
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"an entry of the pending file", forged, "the entry in pending-3 does not have its hash in the tree, so it was changed"},
		{"an entry of an earlier checkpoint", func(dir string) error { return flip(filepath.Join(dir, "tile/entries/003.p/8"), 9) },
			"the entry in tile/entries/003.p/8 does not have its hash in the tree, so it was changed"},
		{"a hash of an earlier checkpoint", func(dir string) error { return flip(filepath.Join(dir, "tile/0/003.p/8"), 9) },
			"tile/0/003.p/8 has another hash than the tree"},
		{"a hash of level 1 of an earlier checkpoint", func(dir string) error { return flip(filepath.Join(dir, "tile/1/000.p/2"), 9) },
			"tile/1/000.p/2 has another hash than the tree"},
		{"an earlier bundle is cut off", func(dir string) error { return os.Truncate(filepath.Join(dir, "tile/entries/003.p/8"), 9) }, "bundle 3"},
		{"an earlier file is removed", func(dir string) error { return os.Remove(filepath.Join(dir, "tile/entries/003.p/8")) }, ""},
		{"the pending file is removed", func(dir string) error { return os.Remove(filepath.Join(dir, "pending-3")) }, ""},
		{"another file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "tile/0/003.p/x"), nil, 0o600) }, ""},
	} {
		dir := t.TempDir()
		w := open(t, dir)
		for _, count := range []int{700, 76, 20} {
			add(t, w, count)
			err := w.Checkpoint(plain)
			if err != nil {
				t.Fatal(err)
			}
		}
		err := w.Close()
		if err == nil {
			err = test.change(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _, faults := scanAll(t, dir)
		found := len(faults) == 1 && test.want != "" && strings.Contains(filepath.ToSlash(faults[0]), test.want)
		if !found && (test.want != "" || len(faults) > 0) {
			t.Errorf("%s: got %q, want %q", test.name, faults, test.want)
		}
		_, err = Open(dir, signedTree(t, dir))
		if err != nil && len(faults) == 0 {
			t.Errorf("%s: Open finds %v, and Scan finds nothing", test.name, err)
		}
	}
}

var checkpoints = flag.Int("checkpoints", 60, "TestScanWhileWritten: number of checkpoints that are written while the log is read")

// TestScanWhileWritten scans a log again and again while another goroutine writes entries and
// checkpoints. At the same time, bundles and tiles become full, and their partial files are removed.
func TestScanWhileWritten(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	err := w.Checkpoint(plain)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for range *checkpoints {
			for range 200 {
				_, appendErr := w.Append(entry(w.Size()))
				err = errors.Join(err, appendErr)
			}
			err = errors.Join(err, w.Checkpoint(plain))
		}
		written <- err
	}()
	for scans := 0; ; scans++ {
		select {
		case err := <-written:
			if err != nil || scans == 0 {
				t.Errorf("%d scans, %v", scans, err)
			}
			return
		default:
		}
		_, _, faults := scanAll(t, dir)
		if len(faults) > 0 {
			t.Fatalf("scan %d: %q", scans, faults)
		}
	}
}

// TestReadWhileFilled reads bundles and tiles that become full at the same time.
func TestReadWhileFilled(t *testing.T) {
	const width = 100
	dir := t.TempDir()
	w := open(t, dir)
	r := NewReader(dir)
	for n := range uint64(200) {
		err := errors.Join(
			w.writeFile(tilePath(entriesLevel, n, width), make([]byte, 2*width), false),
			w.writeFile(tilePath(0, n, width), make([]byte, tlog.HashSize*width), false))
		if err != nil {
			t.Fatal(err)
		}
		filled := make(chan error, 1)
		go func() {
			err := w.writeFile(tilePath(entriesLevel, n, Width), make([]byte, 2*Width), false)
			w.removePartialBefore(entriesLevel, n+1)
			err = errors.Join(err, w.writeFile(tilePath(0, n, Width), make([]byte, tlog.HashSize*Width), false))
			w.removePartialBefore(0, n+1)
			filled <- err
		}()
		for len(filled) == 0 {
			entries, err := r.anyBundle(n, width)
			if err != nil || len(entries) != width {
				t.Fatalf("bundle %d: %d entries, %v", n, len(entries), err)
			}
			hashes, err := r.anyTile(0, n, width)
			if err != nil || len(hashes) != width {
				t.Fatalf("tile %d: %d hashes, %v", n, len(hashes), err)
			}
		}
		err = <-filled
		if err != nil {
			t.Fatal(err)
		}
	}
}
