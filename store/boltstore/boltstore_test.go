package boltstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// TestDamagedFile checks that Open moves a damaged file aside and reports it, and that the next
// Open creates an empty file.
func TestDamagedFile(t *testing.T) {
	for name, damage := range map[string]func(raw []byte) []byte{
		"a page of zeroes":  func(raw []byte) []byte { return make([]byte, len(raw)) },
		"cut in the middle": func(raw []byte) []byte { return raw[:len(raw)/2] },
		"cut to a page":     func(raw []byte) []byte { return raw[:os.Getpagesize()] },
		"cut to a fragment": func(raw []byte) []byte { return raw[:100] },
		"both meta pages":   func(raw []byte) []byte { raw[30] ^= 0xFF; raw[os.Getpagesize()+30] ^= 0xFF; return raw },
		"pages overwritten": func(raw []byte) []byte { fill(raw[2*os.Getpagesize():]); return raw },
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

// TestDamagedRecord checks that a record with a wrong checksum is reported once and that the other
// records are unchanged.
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

// reopened is a store whose file is changed between Close and Open.
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

// TestLocked checks that a file that is already open is not reported as damaged, and that Open does
// not wait.
func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	defer s.Close()
	_, err := boltstore.Open(path)
	var corrupt *store.CorruptError
	if err == nil || errors.As(err, &corrupt) {
		t.Errorf("second Open: %v", err)
	}
	var used *boltstore.InUseError
	if !errors.As(err, &used) || used.Path != path || !strings.Contains(err.Error(), path+" is in use") {
		t.Errorf("second Open: %v, want an InUseError", err)
	}
	storetest.Put(t, s, "k", "v")
}

// TestLockedAtOnce checks that Open fails at once if the file is in use.
func TestLockedAtOnce(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	defer s.Close()
	start := time.Now()
	for range 10 {
		if _, err := boltstore.Open(path); err == nil {
			t.Fatal("opened twice")
		}
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("ten refusals took %v", d)
	}
}

// TestGone checks that Update fails with a GoneError after the file was removed or replaced.
func TestGone(t *testing.T) {
	for name, end := range map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("another"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := open(t, path)
			storetest.Put(t, s, "k", "value")
			if err := end(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
					t.Error("Update ran its function")
					return []byte("lost"), nil
				})
				var gone *boltstore.GoneError
				if !errors.As(err, &gone) || gone.Path != path || !strings.Contains(err.Error(), path) {
					t.Errorf("Update: %v, want a GoneError", err)
				}
			}
			if got, err := s.Get(context.Background(), "k"); string(got) != "value" {
				t.Errorf("Get: %q, %v", got, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Update(context.Background(), "k", 0, nil); !errors.Is(err, store.ErrClosed) {
				t.Errorf("Update after Close: %v", err)
			}
		})
	}
}

// TestCutCreation checks that Open creates a file again if its first creation was interrupted.
func TestCutCreation(t *testing.T) {
	page := os.Getpagesize()
	path := newPath(t)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.ReadFile(path)
	if err != nil || len(fresh) != 4*page {
		t.Fatalf("a new file has %d bytes, %v", len(fresh), err)
	}
	padded := append(append([]byte{}, fresh[:page]...), make([]byte, 3*page)...)
	for name, content := range map[string][]byte{
		"empty": nil, "zeroes": make([]byte, page), "all zeroes": make([]byte, 4*page), "half a page": fresh[:page/2], "a page": fresh[:page], "two pages": fresh[:2*page],
		"three pages": fresh[:3*page], "three pages and a bit": fresh[:3*page+10], "a page, then zeroes": padded, "whole": fresh,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, path)
			storetest.Put(t, s, "k", "value")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			s = open(t, path)
			if got, err := s.Get(context.Background(), "k"); string(got) != "value" {
				t.Errorf("%q, %v", got, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path + ".damaged"); err == nil {
				t.Error("a file without records was set aside")
			}
		})
	}
}

// TestMode checks that only the owner can access the file.
func TestMode(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	defer s.Close()
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestNoFolder(t *testing.T) {
	if s, err := boltstore.Open(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("opened")
		s.Close()
	}
}

// TestPanic checks that a panic of the caller's function reaches the caller, and that the store can
// be used afterwards.
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

// TestSweep checks that expired records do not accumulate while others are written.
func TestSweep(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	for i := range 50 {
		putFor(t, s, string(rune('A'+i)), time.Nanosecond)
	}
	for i := range 200 {
		putFor(t, s, string(rune(1000+i)), 0)
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
			t.Errorf("%d records are kept; only 200 have not expired", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func putFor(t *testing.T, s store.Store, key string, ttl time.Duration) {
	t.Helper()
	err := s.Update(context.Background(), key, ttl, func([]byte) ([]byte, error) { return []byte("v"), nil })
	if err != nil {
		t.Fatal(err)
	}
}
