package audit_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

var kills = flag.Int("kills", 2, "TestKill: number of processes that are killed")

// startsIn returns the paths of the requests in a log.
func startsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths := make(map[string]bool)
	for e, err := range audit.Entries(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event != nil && e.Event.Kind == report.EventStarted {
			paths[pathOf(e.Event.URL)] = true
		}
	}
	return paths
}

// probeDisk measures how long this machine needs to write a small file to the disk, again and again.
// stop returns the longest time.
func probeDisk(t *testing.T) (stop func() (slowest time.Duration)) {
	end := make(chan struct{})
	result := make(chan time.Duration)
	name := filepath.Join(t.TempDir(), "probe")
	go func() {
		var slowest time.Duration
		for {
			began := time.Now()
			f, err := os.Create(name)
			if err == nil {
				f.Write([]byte("x"))
				f.Sync()
				f.Close()
			}
			time.Sleep(10 * time.Millisecond)
			slowest = max(slowest, time.Since(began))
			select {
			case <-end:
				result <- slowest
				return
			default:
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-result
	}
}

// TestKill kills spiders with SIGKILL at random moments. Each loses at most the requests of its last
// second, and the next one continues the log.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	site := newAccessLog(t)
	for run := range *kills {
		stop := probeDisk(t)
		cmd := spiderOrder{Dir: dir, Site: site.URL, Run: run}.mustStart(t, os.Stderr)
		time.Sleep(time.Duration(rand.IntN(2500)) * time.Millisecond) // also while the log is being opened
		cmd.Process.Kill()
		killed := time.Now()
		cmd.Wait()
		slowest := stop()
		r, faults := verify(t, dir)
		if r.Logs[0].Origin == "" {
			continue // killed before there was a checkpoint
		}
		if !r.OK() {
			t.Fatalf("run %d: the log has the faults %q", run, faults)
		}
		logged := startsIn(t, dir)
		lost := 0
		site.mu.Lock()
		for path, at := range site.got {
			if logged[path] || path == "/robots.txt" {
				continue
			}
			lost++
			if age := killed.Sub(at); age > time.Second+slowest {
				t.Errorf("run %d: the request for %s was lost, %v before the end (a write took up to %v)", run, path, age, slowest)
			}
		}
		for path := range logged {
			if site.got[path].IsZero() {
				t.Errorf("run %d: the log has a request for %s, and the access log has none", run, path)
			}
		}
		t.Logf("run %d: %d requests, %d of them not in the log", run, len(site.got), lost)
		clear(site.got)
		for path := range logged { // those that later runs must still have
			site.got[path] = killed.Add(-time.Hour)
		}
		site.mu.Unlock()
	}
	l := mustOpen(t, dir)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, faults := verify(t, dir)
	if !r.OK() || !r.Logs[0].Closed || r.Logs[0].Unsigned > 0 {
		t.Errorf("the log is %+v, with the faults %q", r.Logs[0], faults)
	}
}
