package tiles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// open opens the log in a folder, with the checkpoint that the last call of checkpoint has written.
func open(t *testing.T, dir string) *Writer {
	t.Helper()
	w, err := Open(dir, signedTree(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// plain is a checkpoint without signatures.
func plain(size uint64, root tlog.Hash) ([]byte, error) {
	return fmt.Appendf(nil, "%d\n%s\n", size, root), nil
}

func signedTree(t *testing.T, dir string) (signed tlog.Tree) {
	t.Helper()
	text, err := NewReader(dir).Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return signed
	}
	var root string
	_, err = fmt.Sscan(string(text), &signed.N, &root)
	if err == nil {
		signed.Hash, err = tlog.ParseHash(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// entry returns entry n of the tests. The entries have different lengths.
func entry(n uint64) []byte {
	return fmt.Appendf(nil, "entry %d %s", n, bytes.Repeat([]byte{'x'}, int(n%37)))
}

func add(t *testing.T, w *Writer, count int) {
	t.Helper()
	for range count {
		n := w.Size()
		index, err := w.Append(entry(n))
		if err != nil || index != n {
			t.Fatalf("entry %d got the index %d, %v", n, index, err)
		}
	}
}

// trueHashes are the hashes of the first trueSize entries of the tests, as package tlog computes and
// stores them.
var (
	trueHashes []tlog.Hash
	trueSize   uint64
)

// trueRoot returns the root of the first entries of the tests, as package tlog computes it.
func trueRoot(t *testing.T, size uint64) tlog.Hash {
	t.Helper()
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var hashes []tlog.Hash
		for _, i := range indexes {
			hashes = append(hashes, trueHashes[i])
		}
		return hashes, nil
	})
	for ; trueSize < size; trueSize++ {
		hashes, err := tlog.StoredHashes(int64(trueSize), entry(trueSize), reader)
		if err != nil {
			t.Fatal(err)
		}
		trueHashes = append(trueHashes, hashes...)
	}
	root, err := tlog.TreeHash(int64(size), reader)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestRoots compares the roots of a tree that grows with those of package tlog.
func TestRoots(t *testing.T) {
	w := open(t, t.TempDir())
	for _, size := range []uint64{0, 1, 2, 3, 5, 255, 256, 257, 511, 512, 513, 1000, 65535, 65536, 65537, 65793} {
		add(t, w, int(size-w.Size()))
		if got, want := w.Root(), trueRoot(t, size); got != want {
			t.Errorf("the root of %d entries is %v, want %v", size, got, want)
		}
	}
}

// TestFiles checks the names and sizes of the files of a log, as tlog-tiles lists them.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	add(t, w, 70_000)
	if err := w.Checkpoint(plain); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{
		"tile/0/000": 8192, "tile/0/272": 8192, "tile/0/273.p/112": 112 * 32,
		"tile/1/000": 8192, "tile/1/001.p/17": 17 * 32, "tile/2/000.p/1": 32,
		"tile/entries/273.p/112": -1, "tile/entries/000": -1, "pending-273": -1, "checkpoint": -1,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || size >= 0 && info.Size() != size {
			t.Errorf("%s: %v, want %d bytes", name, err, size)
		}
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
	for n, want := range map[uint64]string{0: "tile/0/000", 999: "tile/0/999", 1000: "tile/0/x001/000", 1234067: "tile/0/x001/x234/067"} {
		if got := filepath.ToSlash(tilePath(0, n, Width)); got != want {
			t.Errorf("tile %d is at %s, want %s", n, got, want)
		}
	}
	if name := filepath.ToSlash(tilePath(entriesLevel, 1234067, 5)); name != "tile/entries/x001/x234/067.p/5" {
		t.Errorf("a partial bundle is at %s", name)
	}
	count := 0
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".new" {
			t.Errorf("%s was left behind", path)
		}
		count++
		return err
	})
	if count < 500 {
		t.Errorf("the log has %d files", count)
	}
}

// TestReopen closes and reopens a log at random sizes, with and without a checkpoint, and cuts its
// pending file as a crash does.
func TestReopen(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		lost := 0
		for range 8 {
			w := open(t, dir)
			if got, want := w.Root(), trueRoot(t, w.Size()); got != want {
				t.Fatalf("seed %d: the root of %d entries is %v, want %v", seed, w.Size(), got, want)
			}
			flushed := w.Size()
			for range random.IntN(4) {
				add(t, w, random.IntN(400))
				var err error
				switch random.IntN(3) {
				case 0:
					err = w.Flush()
					flushed = w.Size()
				case 1:
					err = w.Checkpoint(plain)
					flushed = w.Size()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			if random.IntN(2) == 0 {
				cutPending(t, dir, random)
				lost++
			} else if again := open(t, dir); again.Size() != flushed {
				t.Fatalf("seed %d: %d entries were written, and %d are there", seed, flushed, again.Size())
			}
			if random.IntN(3) == 0 {
				removeTile(t, dir, random)
			}
		}
		if lost == 0 {
			continue
		}
		w := open(t, dir)
		for n := range w.Size() / Width {
			entries, err := NewReader(dir).bundle(n, Width)
			if err != nil {
				t.Fatalf("seed %d, bundle %d: %v", seed, n, err)
			}
			for i, e := range entries {
				if !bytes.Equal(e, entry(n*Width+uint64(i))) {
					t.Fatalf("seed %d: entry %d is %q", seed, n*Width+uint64(i), e)
				}
			}
		}
	}
}

// cutPending cuts or damages the end of the pending files.
func cutPending(t *testing.T, dir string, random *rand.Rand) {
	names, _ := filepath.Glob(filepath.Join(dir, "pending-*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			continue
		}
		text = text[:random.IntN(len(text)+1)]
		if len(text) > 0 && random.IntN(2) == 0 {
			text[len(text)-1] ^= 1
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// removeTile removes a full tile, as if the crash had come before it was written.
func removeTile(t *testing.T, dir string, random *rand.Rand) {
	names, _ := filepath.Glob(filepath.Join(dir, "tile", "[0-9]", "[0-9][0-9][0-9]"))
	if len(names) > 0 {
		if err := os.Remove(names[random.IntN(len(names))]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenFindsDamage checks that a log that does not have the root of its checkpoint is not
// continued.
func TestOpenFindsDamage(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"a hash is changed": func(dir string) error { return flip(filepath.Join(dir, "tile/0/000"), 100) },
		"a bundle is missing": func(dir string) error {
			return os.Remove(filepath.Join(dir, "tile/entries/002"))
		},
		"the entries after the last bundle are missing": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "pending-3")), os.RemoveAll(filepath.Join(dir, "tile/entries/003.p")))
		},
		"the entries after the last bundle are others": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "pending-3")), flip(filepath.Join(dir, "tile/entries/003.p/32"), 5))
		},
	} {
		dir := t.TempDir()
		w := open(t, dir)
		add(t, w, 800)
		if err := w.Checkpoint(plain); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, signedTree(t, dir)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

func flip(path string, at int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text[at] ^= 1
	return os.WriteFile(path, text, 0o600)
}

// TestDiskFailure checks that a Writer loses nothing while the disk cannot be written.
func TestDiskFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w := open(t, dir)
	add(t, w, 100)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	moved := dir + "-away"
	if err := errors.Join(os.Rename(dir, moved), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	add(t, w, 700)
	for range 3 {
		if err := w.Flush(); err == nil {
			t.Fatal("Flush wrote below a file")
		}
		if err := w.Checkpoint(plain); err == nil {
			t.Fatal("Checkpoint wrote below a file")
		}
	}
	if w.Unwritten() < 700*8 {
		t.Errorf("%d bytes are not written", w.Unwritten())
	}
	if err := errors.Join(os.Remove(dir), os.Rename(moved, dir), w.Checkpoint(plain)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	again := open(t, dir)
	if again.Size() != 800 || again.Root() != trueRoot(t, 800) || w.Unwritten() != 0 {
		t.Errorf("%d entries are there, %d bytes are not written", again.Size(), w.Unwritten())
	}
}

func TestAppendLimits(t *testing.T) {
	w := open(t, t.TempDir())
	for _, size := range []int{0, MaxEntry + 1} {
		if _, err := w.Append(make([]byte, size)); err == nil {
			t.Errorf("an entry of %d bytes was accepted", size)
		}
	}
	if _, err := w.Append(make([]byte, MaxEntry)); err != nil {
		t.Error(err)
	}
}

// TestProofs checks inclusion proofs from the files with package tlog.
func TestProofs(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	add(t, w, 3000)
	if err := w.Checkpoint(plain); err != nil {
		t.Fatal(err)
	}
	r := NewReader(dir)
	for _, size := range []int64{1, 255, 256, 700, 3000} {
		root := trueRoot(t, uint64(size))
		for n := int64(0); n < size; n += 97 {
			proof, err := tlog.ProveRecord(size, n, r.hashes(w.tree))
			if err != nil {
				t.Fatal(err)
			}
			if err := tlog.CheckRecord(proof, size, root, n, tlog.RecordHash(entry(uint64(n)))); err != nil {
				t.Errorf("entry %d of %d: %v", n, size, err)
			}
		}
	}
}

func FuzzPending(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(appendRecord(nil, []byte("one")), []byte("two")))
	name := filepath.Join(f.TempDir(), "pending")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, size, err := readPending(name)
		if err != nil || size > int64(len(text)) || len(entries) > Width {
			t.Fatalf("%d entries in %d of %d bytes, %v", len(entries), size, len(text), err)
		}
		var again []byte
		for _, e := range entries {
			again = appendRecord(again, e)
		}
		if !bytes.Equal(again, text[:size]) {
			t.Error("the entries do not have the bytes that were read")
		}
		if _, err := decodeBundle(text, 3); err == nil && len(text) < 6 {
			t.Error("a short bundle was accepted")
		}
	})
}
