package audit_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRunningLog verifies a log and copies of it while it is written. It has no faults at any time.
func TestRunningLog(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	tries := 100
	if raceEnabled {
		tries = 25
	}
	for try := range tries {
		var writer sync.WaitGroup
		writer.Go(func() {
			for n := range 20 {
				time.Sleep(time.Millisecond)
				l.Event(waitingEvent(n))
			}
		})
		if r, faults := verify(t, dir); !r.OK() {
			t.Errorf("try %d: the log has the faults %q", try, faults)
		}
		if r, faults := verify(t, copyRunning(t, dir)); !r.OK() {
			t.Errorf("try %d: the copy has the faults %q", try, faults)
		}
		writer.Wait()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustBeSound(t, dir, uint64(20*tries+2))
}

// copyRunning copies a folder as cp does, in the order of the names. Like cp, a copy fails if a file
// that was listed has vanished, and is then made again.
func copyRunning(t *testing.T, dir string) (copied string) {
	t.Helper()
	for {
		copied, err := copyOnce(t, dir)
		if err == nil {
			return copied
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func copyOnce(t *testing.T, dir string) (copied string, err error) {
	t.Helper()
	copied = t.TempDir()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		to := filepath.Join(copied, strings.TrimPrefix(path, dir))
		if err == nil && e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		return err
	})
	return copied, err
}
