package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/storetest"
)

// TestDirKill checks that every write that the store has acknowledged survives when the writing
// process is killed.
func TestDirKill(t *testing.T) {
	storetest.Kill(t, 12, store.OpenDir)
}

// TestDirDamage checks that a file that was changed after it was written is reported once and moved
// aside, and that none of its content is returned.
func TestDirDamage(t *testing.T) {
	for name, damage := range map[string]func(raw []byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"cut":           func(raw []byte) []byte { return raw[:len(raw)-1] },
		"cut to a head": func(raw []byte) []byte { return raw[:30] },
		"longer":        func(raw []byte) []byte { return append(raw, 0) },
		"one bit":       func(raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw },
		"zeroes":        func(raw []byte) []byte { return make([]byte, len(raw)) },
		"other text":    func([]byte) []byte { return []byte("hello") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, update := range []bool{false, true} {
				path := t.TempDir()
				s := openDir(t, path)
				storetest.Damaged(t, s, func() {
					file := onlyFile(t, path)
					raw, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, damage(raw), 0o644); err != nil {
						t.Fatal(err)
					}
				}, update)
				if aside := onlyFile(t, path, ".damaged"); aside == "" {
					t.Error("the damaged bytes are gone")
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestDirSwapped checks that an intact record in the file of another key is reported as damaged.
func TestDirSwapped(t *testing.T) {
	path, other := t.TempDir(), t.TempDir()
	s := openDir(t, path)
	defer s.Close()
	storetest.Damaged(t, s, func() {
		o := openDir(t, other)
		storetest.Put(t, o, "another key", "value")
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(onlyFile(t, other), onlyFile(t, path)); err != nil {
			t.Fatal(err)
		}
	}, false)
}

// onlyFile returns the one file under path that has the given extension, or no extension if none is
// given.
func onlyFile(t *testing.T, path string, suffix ...string) string {
	t.Helper()
	want := ""
	if len(suffix) > 0 {
		want = suffix[0]
	}
	files, err := filepath.Glob(filepath.Join(path, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, file := range files {
		if filepath.Ext(file) == want {
			if found != "" {
				t.Fatalf("two files: %v", files)
			}
			found = file
		}
	}
	return found
}

func TestDirNotADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenDir(path); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// TestDirGone checks that Get and Update return an error after the directory was removed. The store
// must not look like one without records.
func TestDirGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := openDir(t, path)
	defer s.Close()
	storetest.Put(t, s, "k", "v")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(context.Background(), "k"); err == nil {
		t.Errorf("Get: %q", got)
	}
	if err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) { return []byte("w"), nil }); err == nil {
		t.Error("Update was acknowledged")
	}
}
