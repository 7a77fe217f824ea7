package audit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

// waitingEvent returns an event that has no rules to check.
func waitingEvent(n int) *report.Event {
	return &report.Event{Kind: report.EventWaiting, Time: time.Now(), URL: fmt.Sprint("http://shop.test/", n), Count: n}
}

// writeLog writes a log with n events.
func writeLog(t *testing.T, dir string, n int, opts ...audit.Option) {
	t.Helper()
	l := mustOpen(t, dir, opts...)
	for i := range n {
		l.Event(waitingEvent(i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// mustBeSound fails the test if a log has faults or another number of entries.
func mustBeSound(t *testing.T, dir string, entries uint64) {
	t.Helper()
	r, faults := verify(t, dir)
	if !r.OK() || r.Logs[0].Signed != entries {
		t.Errorf("the log has %d entries, want %d, and the faults %q", r.Logs[0].Signed, entries, faults)
	}
}

// TestOpenAtOnce checks that one of many goroutines gets the log. One of them uses another name of
// the folder.
func TestOpenAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	link := dir + "-link"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	logs := make(chan *audit.Log, 50)
	for i := range 50 {
		tasks.Go(func() {
			l, err := audit.Open([]string{dir, link}[i%2])
			if err == nil {
				logs <- l
			} else if !errors.Is(err, audit.ErrInUse) {
				t.Errorf("Open returned the error %v", err)
			}
		})
	}
	tasks.Wait()
	if len(logs) != 1 {
		t.Fatalf("%d goroutines have the log open", len(logs))
	}
	l := <-logs
	l.Event(waitingEvent(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	writeLog(t, link, 1) // the file lock is still there
	mustBeSound(t, dir, 6)
}

// TestKeyMishaps checks that an Open that fails because of the key changes nothing.
func TestKeyMishaps(t *testing.T) {
	other, _, err := note.GenerateKey(nil, "example.com/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		mishap  func(dir string) error
		options []audit.Option
		want    error // of Open; nil if it works
	}{
		{"another key", func(string) error { return nil }, []audit.Option{audit.Key(other)}, audit.ErrKey},
		{"the key is lost", func(dir string) error { return os.Remove(filepath.Join(dir, "key")) }, nil, audit.ErrKey},
		{"the key was replaced", func(dir string) error { return os.WriteFile(filepath.Join(dir, "key"), []byte(other), 0o600) }, nil, audit.ErrKey},
		{"the key is empty", func(dir string) error { return os.Truncate(filepath.Join(dir, "key"), 0) }, nil, audit.ErrKey},
		{"the public key is lost", func(dir string) error { return os.Remove(filepath.Join(dir, "key.pub")) }, nil, nil},
	} {
		dir := t.TempDir()
		writeLog(t, dir, 5)
		public := read(t, dir, "key.pub")
		if err := test.mishap(dir); err != nil {
			t.Fatal(err)
		}
		before := files(t, dir)
		l, err := audit.Open(dir, test.options...)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: Open returned the error %v, want %v", test.name, err, test.want)
		}
		if l != nil {
			l.Close()
		} else if after := files(t, dir); !reflect.DeepEqual(after, before) {
			t.Errorf("%s: Open has changed files", test.name)
		}
		if got := read(t, dir, "key.pub"); got != public {
			t.Errorf("%s: key.pub was %s, and is %s", test.name, public, got)
		}
		r, faults := verify(t, dir)
		if !r.OK() {
			t.Errorf("%s: the log has the faults %q", test.name, faults)
		}
	}
	dir := t.TempDir()
	writeLog(t, dir, 5)
	os.Remove(filepath.Join(dir, "key.pub"))
	if r, faults := verify(t, dir); r.OK() || !strings.Contains(faults[0], "there is no key.pub") {
		t.Errorf("without key.pub, the faults are %q", faults)
	}
}

// files returns the content of all files of a log by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOtherFiles checks that a log leaves the other files of its folder alone, and that its folder
// may have another mode.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "lock", "tile.txt", "pending-x", "checkpoint.new", "robots.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeLog(t, dir, 300)
	writeLog(t, dir, 300)
	mustBeSound(t, dir, 604)
	for _, name := range []string{"notes.txt", "tile.txt", "pending-x", "robots.txt"} {
		if read(t, dir, name) != "mine" {
			t.Errorf("%s has changed", name)
		}
	}
}

// TestFolderInPlaceOfFile checks that Open and Verify fail if a file of a log is a folder, or the
// reverse.
func TestFolderInPlaceOfFile(t *testing.T) {
	for _, name := range []string{"checkpoint", "key", "key.pub", "lock", "robots", "tile", "tile/0/000.p/7", "tile/entries/000.p/7", "pending-0"} {
		dir := t.TempDir()
		writeLog(t, dir, 5)
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		err = os.RemoveAll(path)
		if info.IsDir() {
			err = errors.Join(err, os.WriteFile(path, nil, 0o600))
		} else {
			err = errors.Join(err, os.Mkdir(path, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		l, openErr := audit.Open(dir)
		if l != nil {
			l.Close()
		}
		r, verifyErr := audit.Verify(dir)
		matters := name != "key" && name != "lock" && name != "robots" // to Verify; this log has no robots.txt
		if openErr == nil && !strings.HasPrefix(name, "tile/") || matters && verifyErr == nil && r.OK() && openErr != nil {
			t.Errorf("%s: Open returned %v, Verify %v", name, openErr, verifyErr)
		}
	}
}

// TestManyGoroutines logs events from 64 goroutines. Those of each goroutine are in order.
func TestManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	var tasks sync.WaitGroup
	const goroutines, each = 64, 200
	for g := range goroutines {
		tasks.Go(func() {
			for n := range each {
				e := waitingEvent(n)
				e.Host = fmt.Sprint(g)
				l.Event(e)
			}
		})
	}
	tasks.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustBeSound(t, dir, goroutines*each+2)
	next := make(map[string]int)
	for e, err := range audit.Entries(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == nil {
			continue
		}
		if e.Event.Count != next[e.Event.Host] {
			t.Fatalf("event %d of goroutine %s comes after event %d", e.Event.Count, e.Event.Host, next[e.Event.Host]-1)
		}
		next[e.Event.Host]++
	}
}

// TestLostFolder checks what happens if the folder of a log is removed or renamed while it is
// written: the log says that it cannot be written.
func TestLostFolder(t *testing.T) {
	for name, lose := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"renamed": func(dir string) error { return os.Rename(dir, dir+"-away") },
	} {
		dir := filepath.Join(t.TempDir(), "log")
		told := make(chan error, 10)
		l := mustOpen(t, dir, audit.OnError(func(err error) { told <- err }))
		for n := range 100 {
			l.Event(waitingEvent(n))
		}
		waitUntil(t, func() bool {
			info, err := os.Stat(filepath.Join(dir, "pending-0"))
			return err == nil && info.Size() > 1000
		})
		if err := lose(dir); err != nil {
			t.Fatal(err)
		}
		for n := range 400 {
			l.Event(waitingEvent(n))
		}
		if err := <-told; !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: OnError was told %v", name, err)
		}
		if err := l.Close(); !errors.Is(err, fs.ErrNotExist) || len(told) > 0 {
			t.Errorf("%s: Close returned %v, and OnError was told %d more errors", name, err, len(told))
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a folder again", name)
		}
		if name == "removed" {
			continue
		}
		if r, faults := verify(t, dir+"-away"); !r.OK() || r.Logs[0].Unsigned < 100 || r.Logs[0].Closed {
			t.Errorf("the renamed log is %+v, with the faults %q", r.Logs[0], faults)
		}
		writeLog(t, dir+"-away", 1)
	}
}

// TestNewerVersion checks that Verify says that it does not know the version of the entries.
func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	writeLog(t, dir, 3)
	rewrite(t, dir, "", func(entries [][]byte) [][]byte {
		for i, e := range entries {
			entries[i] = []byte(strings.Replace(string(e), `"v":1}`, `"new":true,"v":2}`, 1))
		}
		return entries
	})
	r, faults := verify(t, dir)
	want := slices.Repeat([]string{"complete: the entry cannot be read: version 2 of the format is not known"}, 5)
	if r.OK() || !slices.Equal(faults, want) {
		t.Errorf("the faults are %q", faults)
	}
	for _, err := range audit.Entries(dir) {
		if err == nil || !strings.Contains(err.Error(), "version 2 of the format is not known") {
			t.Errorf("Entries returned the error %v", err)
		}
	}
}
