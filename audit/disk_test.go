package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

// TestFullDisk runs spiders whose log cannot grow: the system refuses to write to files that have
// more than 100 kB. One spider goes on without the log, and its log then says how many events are
// missing. The other one stops.
func TestFullDisk(t *testing.T) {
	if !canLimitFiles {
		t.Skip("this system cannot limit the size of files")
	}
	for _, stop := range []bool{true, false} {
		if raceEnabled && !stop {
			continue // the same, with many more pages
		}
		dir := t.TempDir()
		site := newAccessLog(t)
		const pages = 5000 // more than wait in the queue of the log, about 2,000, when the disk is full
		var output bytes.Buffer
		err := spiderOrder{Dir: dir, Site: site.URL, Limit: 100_000, Stop: stop, Pages: pages}.mustStart(t, &output).Wait()
		if err != nil || strings.Count(output.String(), "OnError: audit: cannot write to "+dir) != 1 {
			t.Errorf("stop is %t: the spider ended with %v, and has printed\n%s", stop, err, &output)
		}
		r, faults := verify(t, dir)
		requests := len(site.got)
		switch starts := r.Logs[0].Starts; {
		case stop && (requests > pages || starts != requests || !r.OK()):
			t.Errorf("the spider stopped after %d requests, of which %d are in the log, and the faults are %q", requests, starts, faults)
		case !stop && (requests != pages+1 || starts >= requests || len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), "events are missing, because the disk could not be written")):
			t.Errorf("the spider sent %d requests, of which %d are in the log, and the faults are %q", requests, starts, faults)
		}
		t.Logf("stop is %t: %d requests, of which %d are in the log", stop, requests, r.Logs[0].Starts)
	}
}

// TestNoSpace writes to the device that is always full. The log keeps the entries that were written
// before, and the next process continues it.
func TestNoSpace(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	dir := t.TempDir()
	told := make(chan error, 10)
	l := mustOpen(t, dir, audit.OnError(func(err error) { told <- err }))
	full := filepath.Join(dir, "pending-1") // for the second 256 entries
	err := os.Symlink("/dev/full", full)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for range 400 {
		l.Event(&report.Event{Kind: report.EventWaiting, Time: at})
	}
	if err := <-told; !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("OnError was told %v", err)
	}
	if err := l.Close(); err == nil {
		t.Error("Close returned no error")
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Error(err)
	}
	r, faults := verify(t, dir)
	if got := r.Logs[0]; !r.OK() || got.Signed != 256+2 {
		t.Errorf("the log is %+v, with the faults %q", got, faults)
	}
}
