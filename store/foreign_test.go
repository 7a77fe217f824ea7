//go:build unix

package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/storetest"
)

// recordOf writes a record for key and returns the path of its file.
func recordOf(t *testing.T, path, key string) string {
	t.Helper()
	s := openDir(t, path)
	storetest.Put(t, s, key, "value")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return onlyFile(t, path)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within fails the test if f takes longer than d.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("still running after %v", d)
	}
}

// TestDirNoFile checks that something other than a regular file in the place of a record is neither
// opened nor followed, is moved aside, and is reported once.
func TestDirNoFile(t *testing.T) {
	for name, put := range map[string]func(path, secret string) error{
		"pipe":          func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"link":          func(path, secret string) error { return os.Symlink(secret, path) },
		"dangling link": func(path, secret string) error { return os.Symlink(secret+".none", path) },
		"link to a pipe": func(path, secret string) error {
			return errors.Join(syscall.Mkfifo(secret+".pipe", 0o600), os.Symlink(secret+".pipe", path))
		},
		"folder": func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, update := range []bool{false, true} {
				path, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
				must(t, os.WriteFile(secret, []byte("mine"), 0o600))
				s := openDir(t, path)
				within(t, 10*time.Second, func() {
					storetest.Damaged(t, s, func() {
						record := onlyFile(t, path)
						must(t, os.Remove(record))
						must(t, put(record, secret))
					}, update)
				})
				must(t, s.Close())
				if got, err := os.ReadFile(secret); string(got) != "mine" {
					t.Errorf("the target of the link contains %q, %v", got, err)
				}
			}
		})
	}
}

// TestDirPlantedTemporary checks that a link with a name that earlier versions used for temporary
// files is not followed. Its target must not be overwritten, and the link must remain.
func TestDirPlantedTemporary(t *testing.T) {
	path, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("mine"), 0o600))
	record := recordOf(t, path, "k")
	must(t, os.Symlink(secret, record+".new"))
	must(t, syscall.Mkfifo(record+".new-1", 0o600))
	s := openDir(t, path)
	within(t, 10*time.Second, func() { storetest.Put(t, s, "k", "again") })
	must(t, s.Close())
	if got, err := os.ReadFile(secret); string(got) != "mine" {
		t.Errorf("the target of the link contains %q, %v", got, err)
	}
	for _, planted := range []string{".new", ".new-1"} {
		if _, err := os.Lstat(record + planted); err != nil {
			t.Error(err)
		}
	}
}

// TestDirSweeps checks that OpenDir removes the temporary files that killed processes have left,
// and no other files. It must keep a new temporary file, because another process may be writing it.
func TestDirSweeps(t *testing.T) {
	path := t.TempDir()
	record := recordOf(t, path, "k")
	folder := filepath.Dir(record)
	left := []string{record + ".new", record + ".new-123456", filepath.Join(folder, strings.Repeat("0", 62)+".new-7")}
	others := []string{record + ".damaged", record + ".newer", record + ".new-x", filepath.Join(folder, "notes.new"), filepath.Join(path, "README.new")}
	for _, name := range append(left, others...) {
		must(t, os.WriteFile(name, []byte("half"), 0o600))
		old := time.Now().Add(-2 * time.Hour)
		must(t, os.Chtimes(name, old, old))
	}
	written := record + ".new-1"
	must(t, os.WriteFile(written, []byte("half"), 0o600))
	others = append(others, written)
	s := openDir(t, path)
	for _, name := range left {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", filepath.Base(name))
		}
	}
	for _, name := range others {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Get(context.Background(), "k"); string(got) != "value" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, s.Close())
}

// TestDirLeavesNoTemporaries checks that no temporary file is left after a successful write and
// after one that fails.
func TestDirLeavesNoTemporaries(t *testing.T) {
	path := t.TempDir()
	s := openDir(t, path)
	for range 20 {
		storetest.Put(t, s, "k", "value")
	}
	record := onlyFile(t, path)
	must(t, os.Remove(record))
	err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
		must(t, os.Mkdir(record, 0o700)) // a file cannot be renamed to this path
		return []byte("v"), nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "store: ") || !strings.Contains(err.Error(), record) {
		t.Errorf("%v", err)
	}
	must(t, s.Close())
	entries, err := os.ReadDir(filepath.Dir(record))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestDirFolderAside checks that a record can be moved aside even if a folder has the name that Dir
// tries first.
func TestDirFolderAside(t *testing.T) {
	path := t.TempDir()
	s := openDir(t, path)
	record := recordOf(t, path, "k")
	must(t, os.MkdirAll(filepath.Join(record+".damaged", "x"), 0o700))
	for range 3 {
		must(t, s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) { return nil, nil }))
		storetest.Damaged(t, s, func() { must(t, os.WriteFile(record, []byte("damaged"), 0o600)) }, false)
	}
	must(t, os.Remove(record))
	must(t, os.Mkdir(record, 0o700))
	_, err := s.Get(context.Background(), "k")
	var corrupt *store.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Aside == "" {
		t.Errorf("%v", err)
	}
	storetest.Put(t, s, "k", "again")
	must(t, s.Close())
}

// TestDirLongFile checks that a file that is longer than a record is reported as damaged and is not
// read into memory.
func TestDirLongFile(t *testing.T) {
	for name, head := range map[string]string{"record": "", "no record": "hello", "later version": "collyrobots record 2\n"} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			record := recordOf(t, path, "k")
			if head != "" {
				must(t, os.WriteFile(record, []byte(head), 0o600))
			}
			must(t, os.Truncate(record, 1<<30))
			s := openDir(t, path)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Get(context.Background(), "k")
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*store.MaxRecord {
				t.Errorf("%d bytes were allocated", allocated)
			}
			var corrupt *store.CorruptError
			var version *store.VersionError
			if later := name == "later version"; errors.As(err, &version) != later || errors.As(err, &corrupt) == later {
				t.Errorf("%v", err)
			}
			must(t, s.Close())
		})
	}
}

// TestDirLongValue checks that OpenDir rejects values that it could not read back.
func TestDirLongValue(t *testing.T) {
	s := openDir(t, t.TempDir())
	for _, n := range []int{store.MaxRecord, store.MaxRecord + 1} {
		err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) { return make([]byte, n), nil })
		if (err == nil) != (n == store.MaxRecord) {
			t.Errorf("%d bytes: %v", n, err)
		}
		got, err := s.Get(context.Background(), "k")
		if len(got) != store.MaxRecord || err != nil {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	must(t, s.Close())
}

// TestDirFolderLink checks that OpenDir does not follow a link in the place of one of the 256
// folders.
func TestDirFolderLink(t *testing.T) {
	path, other := t.TempDir(), t.TempDir()
	record := recordOf(t, path, "k")
	folder := filepath.Dir(record)
	must(t, os.Rename(folder, filepath.Join(other, "folder")))
	must(t, os.Symlink(filepath.Join(other, "folder"), folder))
	temporary := filepath.Join(other, "folder", filepath.Base(record)+".new-1")
	must(t, os.WriteFile(temporary, nil, 0o600))
	old := time.Now().Add(-2 * time.Hour)
	must(t, os.Chtimes(temporary, old, old))
	s := openDir(t, path)
	got, err := s.Get(context.Background(), "k")
	if got != nil || err == nil || !strings.Contains(err.Error(), "store: "+folder+" is not a folder") {
		t.Errorf("Get: %q, %v", got, err)
	}
	err = s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
		t.Error("Update ran its function")
		return nil, nil
	})
	if err == nil {
		t.Error("Update was acknowledged")
	}
	storetest.Put(t, s, "in another folder", "value")
	must(t, s.Close())
	entries, err := os.ReadDir(filepath.Join(other, "folder"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestDirWhileOthersOpen checks that no update fails while other processes open the store and
// remove old temporary files.
func TestDirWhileOthersOpen(t *testing.T) {
	path := t.TempDir()
	s := openDir(t, path)
	end := make(chan struct{})
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				other, err := store.OpenDir(path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 200 {
		err := s.Update(context.Background(), strconv.Itoa(n%3), 0, func([]byte) ([]byte, error) { return []byte("value"), nil })
		if err != nil {
			t.Error(err)
		}
	}
	close(end)
	others.Wait()
	must(t, s.Close())
}

// TestDirNotWritable checks that OpenDir returns an error that names the path if it cannot write
// there.
func TestDirNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{notWritable(t), filepath.Join(notWritable(t), "store"), file, filepath.Join(file, "store")} {
		_, err := store.OpenDir(path)
		if err == nil || !strings.HasPrefix(err.Error(), "store: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// notWritable returns a folder where this user cannot create a file. Root can create files in all
// folders except those of the kernel.
func notWritable(t *testing.T) string {
	t.Helper()
	if os.Geteuid() == 0 {
		const path = "/proc/self"
		if _, err := os.Stat(path); err != nil {
			t.Skip("root can write to all folders here")
		}
		return path
	}
	path := t.TempDir()
	must(t, os.Chmod(path, 0o500))
	return path
}

// TestDirLaterVersion checks that a record that a later version wrote is reported as such and left
// unchanged.
func TestDirLaterVersion(t *testing.T) {
	for text, later := range map[string]bool{
		"collyrobots record 2\nwhatever": true, "collyrobots record 10\n": true,
		"collyrobots record \n": false, "collyrobots record 2": false, "collyrobots record -2\n": false, "collyrobots record 0\n": false, "collyrobots record": false,
	} {
		path := t.TempDir()
		record := recordOf(t, path, "k")
		must(t, os.WriteFile(record, []byte(text), 0o600))
		s := openDir(t, path)
		for range 2 {
			_, err := s.Get(context.Background(), "k")
			version := (*store.VersionError)(nil)
			if errors.As(err, &version) != later || later && (version.Path != record || !strings.Contains(err.Error(), record)) {
				t.Errorf("%q: Get: %v", text, err)
			}
			if !later {
				break
			}
			err = s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
				t.Error("Update ran its function")
				return nil, nil
			})
			if !errors.As(err, &version) {
				t.Errorf("%q: Update: %v", text, err)
			}
			if got, err := os.ReadFile(record); string(got) != text {
				t.Errorf("%q was changed to %q, %v", text, got, err)
			}
		}
		must(t, s.Close())
	}
}

// TestDirModes checks that only the owner can access the files and folders.
func TestDirModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "a", "store")
	record := recordOf(t, path, "k")
	for name, want := range map[string]fs.FileMode{record: 0o600, filepath.Dir(record): fs.ModeDir | 0o700, path: fs.ModeDir | 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}
