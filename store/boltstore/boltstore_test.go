package boltstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/boltstore"
	"github.com/collyrobots/collyrobots/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newPath(t)) })
}

func TestKill(t *testing.T) { storetest.Kill(t, 12, boltstore.Open) }

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "records.db") }

func open(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDamagedFile: a file that is no sound bbolt file is set aside and said to be; the next Open starts an empty one.
func TestDamagedFile(t *testing.T) {
	for name, damage := range map[string]func(raw []byte) []byte{
		"not ours":           func([]byte) []byte { return []byte("hello, this is a text file, and not a short one either") },
		"a page of zeroes":   func(raw []byte) []byte { return make([]byte, len(raw)) },
		"cut in the middle":  func(raw []byte) []byte { return raw[:len(raw)/2] },
		"cut to a page":      func(raw []byte) []byte { return raw[:os.Getpagesize()] },
		"cut to a fragment":  func(raw []byte) []byte { return raw[:100] },
		"both heads damaged": func(raw []byte) []byte { raw[30] ^= 0xFF; raw[os.Getpagesize()+30] ^= 0xFF; return raw },
		"pages overwritten":  func(raw []byte) []byte { fill(raw[2*os.Getpagesize():]); return raw },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path)
			for _, key := range []string{"a", "b", "c"} {
				storetest.Put(t, s, key, "value")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(raw), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = boltstore.Open(path)
			var corrupt *store.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Path != path || corrupt.Aside != path+".damaged" {
				t.Fatalf("Open: %v", err)
			}
			if _, err := os.Stat(corrupt.Aside); err != nil {
				t.Error(err)
			}
			s = open(t, path)
			storetest.Put(t, s, "a", "again")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + 3)
	}
}

// TestDamagedRecord: one record that is not as it was written is reported once; the others are untouched.
func TestDamagedRecord(t *testing.T) {
	for _, update := range []bool{false, true} {
		path := newPath(t)
		s := &reopened{t: t, path: path}
		s.Store = open(t, path)
		storetest.Damaged(t, s, func() {
			if err := s.Store.Close(); err != nil {
				t.Fatal(err)
			}
			damageRecords(t, path)
			s.Store = open(t, path)
		}, update)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// reopened is a store whose file is changed between closing and opening.
type reopened struct {
	store.Store
	t    *testing.T
	path string
}

func damageRecords(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("records"))
		return b.ForEach(func(k, v []byte) error {
			changed := append([]byte{}, v...)
			changed[len(changed)-1] ^= 1
			return b.Put(k, changed)
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLocked: a file that another has open is not damaged, and Open does not wait for ever.
func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	defer s.Close()
	_, err := boltstore.Open(path)
	var corrupt *store.CorruptError
	if err == nil || errors.As(err, &corrupt) {
		t.Errorf("second Open: %v", err)
	}
	storetest.Put(t, s, "k", "v")
}

func TestNoFolder(t *testing.T) {
	if s, err := boltstore.Open(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("opened")
		s.Close()
	}
}

// TestPanic: a panic of the caller's function is the caller's, and leaves the store in order.
func TestPanic(t *testing.T) {
	s := open(t, newPath(t))
	defer s.Close()
	func() {
		defer func() {
			if v := recover(); v != "mine" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) { panic("mine") })
	}()
	storetest.Put(t, s, "k", "v")
}

// TestSweep: expired records do not pile up while others are written.
func TestSweep(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	for i := range 50 {
		put(t, s, string(rune('A'+i)), time.Nanosecond)
	}
	for i := range 200 {
		put(t, s, string(rune(1000+i)), 0)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		if n := tx.Bucket([]byte("records")).Stats().KeyN; n > 225 {
			t.Errorf("%d records, of which 200 live", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, s store.Store, key string, ttl time.Duration) {
	t.Helper()
	err := s.Update(context.Background(), key, ttl, func([]byte) ([]byte, error) { return []byte("v"), nil })
	if err != nil {
		t.Fatal(err)
	}
}
