package boltstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/boltstore"
	"github.com/collyrobots/collyrobots/store/storetest"
)

var (
	flips  = flag.Int("flips", 80, "TestFlippedBits: how many damaged copies of each file are opened")
	writes = flag.Int("writes", 3, "TestFlippedBits: how many records are replaced, and how many are added, in each copy")
	seed   = flag.Uint64("seed", 0, "TestFlippedBits, TestSoundFile: the seed; if 0, a random one")
)

// A sample is an undamaged file and the records in it.
type sample struct {
	raw     []byte
	records map[string]string
}

// newSample writes n records. Some are longer than a page. It then replaces and deletes some of
// them, so that the file has free pages.
func newSample(t *testing.T, n int) sample {
	t.Helper()
	path := newPath(t)
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	sample := sample{records: make(map[string]string)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n + n/2 {
		key := fmt.Sprint("key", random.IntN(n))
		value := fmt.Sprint(key, " ", i, " ")
		if random.IntN(20) == 0 {
			value += string(bytes.Repeat([]byte("long"), random.IntN(5000)))
		}
		if random.IntN(10) == 0 {
			err = s.Update(t.Context(), key, 0, func([]byte) ([]byte, error) { return nil, nil })
			delete(sample.records, key)
		} else {
			err = s.Update(t.Context(), key, 0, func([]byte) ([]byte, error) { return []byte(value), nil })
			sample.records[key] = value
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sample.raw, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

// use opens a damaged copy of the file, and reads and writes records. It reports whether Open
// accepted the file. It fails the test if a record has a value that was never written for its key.
func (s sample) use(t *testing.T, path string) (opened bool) {
	t.Helper()
	db, err := boltstore.Open(path)
	var corrupt *store.CorruptError
	if err != nil {
		if !errors.As(err, &corrupt) || corrupt.Aside == "" {
			t.Errorf("Open: %v", err)
		}
		return false
	}
	for key, value := range s.records {
		got, err := db.Get(context.Background(), key)
		if err != nil && !errors.As(err, &corrupt) {
			t.Errorf("Get: %v", err)
		}
		// If the newer meta page is damaged, bbolt uses the older one, so a record may have its
		// previous value.
		if got != nil && !strings.HasPrefix(string(got), key+" ") {
			t.Errorf("%s is %.40q instead of %.40q", key, got, value)
		}
	}
	puts := 0
	for key := range s.records { // in random order
		if puts == *writes {
			break
		}
		puts++
		if err := put(db, key, key+" again"); err != nil && !errors.As(err, &corrupt) {
			t.Errorf("Update: %v", err)
		}
		storetest.Put(t, db, fmt.Sprint("new", puts), "value")
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	db, err = boltstore.Open(path)
	if err != nil {
		t.Fatalf("Open of a file that the store has written to: %v", err)
	}
	if got, err := db.Get(context.Background(), "new1"); string(got) != "value" {
		t.Errorf("%q, %v", got, err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return true
}

// TestFlippedBits opens files after it has changed one bit or a few bytes. Open, Get and Update
// must return, must not allocate more than a multiple of the size of the file, and must never
// return a wrong value. Without the check, a cycle of pages in such a file made bbolt allocate
// without limit or overflow the stack, which ends the process.
func TestFlippedBits(t *testing.T) {
	for _, n := range []int{3, 40, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSample(t, n)
			t.Logf("a file of %d bytes", len(s.raw))
			random := newRandom(t)
			folder := t.TempDir()
			most := 10*uint64(len(s.raw)) + 4<<20
			refused := 0
			for i := range *flips {
				path := filepath.Join(folder, fmt.Sprint(i))
				raw := bytes.Clone(s.raw)
				what := flip(raw, random)
				if err := os.WriteFile(path, raw, 0o600); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if !s.use(t, path) {
					refused++
				}
				runtime.ReadMemStats(&after)
				if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
					t.Errorf("%s: %d bytes were allocated", what, allocated)
				}
				if t.Failed() {
					t.Fatal(what)
				}
				removeAll(t, path, path+".damaged")
			}
			t.Logf("%d of %d files were refused", refused, *flips)
			if refused == 0 {
				t.Error("no file was damaged")
			}
		})
	}
}

// newRandom returns a random number generator and logs its seed.
func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

func put(s store.Store, key, value string) error {
	return s.Update(context.Background(), key, 0, func([]byte) ([]byte, error) { return []byte(value), nil })
}

func removeAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// flip damages a small part of a file and returns a description of the change. In half of the calls
// it damages the beginning of a page, where the header and the elements are.
func flip(raw []byte, random *rand.Rand) string {
	page := os.Getpagesize()
	at := random.IntN(len(bytes.TrimRight(raw, "\x00")))
	if random.IntN(2) == 0 {
		at = at/page*page + random.IntN(128)
	}
	switch random.IntN(4) {
	case 0: // a number, for example of another page
		n := uint64(random.IntN(len(raw) / page))
		at = min(at/8*8, len(raw)-8)
		binary.NativeEndian.PutUint64(raw[at:], n)
		return fmt.Sprintf("the number %d at %d", n, at)
	case 1:
		raw[at] = byte(random.Uint32())
		return fmt.Sprintf("the byte %d at %d", raw[at], at)
	default:
		bit := random.IntN(8)
		raw[at] ^= 1 << bit
		return fmt.Sprintf("bit %d at %d", bit, at)
	}
}

// TestCycle checks files with a branch page that has itself as a child page.
func TestCycle(t *testing.T) {
	page := os.Getpagesize()
	s := newSample(t, 400)
	cycles := 0
	for at := 0; at+page <= len(s.raw); at += page {
		if binary.NativeEndian.Uint16(s.raw[at+8:]) != 1 { // not a branch page
			continue
		}
		count := int(binary.NativeEndian.Uint16(s.raw[at+10:]))
		for i := range count {
			raw := bytes.Clone(s.raw)
			binary.NativeEndian.PutUint64(raw[at+16+16*i+8:], uint64(at/page))
			path := newPath(t)
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if !s.use(t, path) {
				cycles++
			}
		}
	}
	if cycles == 0 {
		t.Error("no cycle was made in a page in use")
	}
}

// TestBranchKey checks that a key on a branch page must be equal to the first key on the child
// page. With another key, even one that is in order, bbolt adds a second element for the child page
// when it writes that page again.
func TestBranchKey(t *testing.T) {
	page := os.Getpagesize()
	s := newSample(t, 400)
	refused := 0
	for at := 0; at+page <= len(s.raw); at += page {
		if binary.NativeEndian.Uint16(s.raw[at+8:]) != 1 { // not a branch page
			continue
		}
		raw := bytes.Clone(s.raw)
		element := at + 16 + 16 // the second one
		key := element + int(binary.NativeEndian.Uint32(raw[element:]))
		raw[key+sha256.Size-1] ^= 1
		path := newPath(t)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if !s.use(t, path) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no key was damaged in a page in use")
	}
}

// TestInlinePage checks that an inline page, which is part of a value, must not have a page number.
// If it had one, bbolt would free the page of the file with that number.
func TestInlinePage(t *testing.T) {
	s := newSample(t, 400)
	raw := bytes.Clone(s.raw)
	name := []byte("damaged") // this bucket is empty, so its page is an inline page
	for at := range raw {
		if bytes.HasPrefix(raw[at:], name) {
			binary.NativeEndian.PutUint64(raw[at+len(name)+16:], 3)
		}
	}
	path := newPath(t)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.use(t, path) {
		t.Error("opened")
	}
}

// TestSoundFile checks that Open accepts every file that bbolt writes, with every page size.
func TestSoundFile(t *testing.T) {
	for _, size := range []int{1 << 10, 1 << 12, 1 << 14, 1 << 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := newPath(t)
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: size, NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket([]byte("records"))
				_, err2 := tx.CreateBucket([]byte("damaged"))
				return errors.Join(err, err2)
			})
			random := newRandom(t)
			for n := 0; n < 25 && err == nil; n++ {
				err = db.Update(func(tx *bolt.Tx) error { return change(tx, random) })
				copied := filepath.Join(t.TempDir(), "copy")
				if err == nil {
					err = errors.Join(copyFile(path, copied), openAndClose(copied))
				}
			}
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// change writes and deletes random records. Over many calls, the number of records grows and
// shrinks.
func change(tx *bolt.Tx, random *rand.Rand) error {
	deletes := random.IntN(10)
	for range random.IntN(100) {
		b := tx.Bucket([]byte("records"))
		if random.IntN(10) == 0 {
			b = tx.Bucket([]byte("damaged"))
		}
		key := sha256.Sum256([]byte(fmt.Sprint(random.IntN(1000))))
		var err error
		if random.IntN(10) < deletes {
			err = b.Delete(key[:])
		} else {
			err = b.Put(key[:], make([]byte, random.IntN(200)<<random.IntN(8)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o600)
}

func openAndClose(path string) error {
	s, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	return s.Close()
}

// TestForeignFile checks that Open returns an error for a file of another program and leaves the
// file unchanged.
func TestForeignFile(t *testing.T) {
	withBuckets := func(names ...string) []byte {
		path := newPath(t)
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error {
			for _, name := range names {
				b, err := tx.CreateBucket([]byte(name))
				if err != nil {
					return err
				}
				if err := b.Put([]byte("key"), []byte("value")); err != nil {
					return err
				}
			}
			return nil
		})
		raw, err2 := os.ReadFile(path)
		if err := errors.Join(err, err2, db.Close()); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, content := range map[string][]byte{
		"text":                []byte("hello, this is a text file, and not a short one either"),
		"short text":          []byte("hello"),
		"long text":           bytes.Repeat([]byte("hello "), 10_000),
		"text after zeroes":   append(make([]byte, 100_000), "hello"...),
		"bbolt file":          withBuckets("users"),
		"three other buckets": withBuckets("groups", "records", "users"),
		"one other bucket":    withBuckets("damaged", "records", "users"),
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, content, 0o640); err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-time.Hour).Truncate(time.Second)
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
			_, err := boltstore.Open(path)
			var corrupt *store.CorruptError
			if err == nil || errors.As(err, &corrupt) || !bytes.Contains([]byte(err.Error()), []byte("boltstore: "+path+" was left unchanged")) {
				t.Errorf("Open: %v", err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("the file has changed, %v", err)
			}
			if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
				t.Errorf("the file was written to, %v", err)
			}
			if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
				t.Errorf("%v, %v", files, err)
			}
		})
	}
}
