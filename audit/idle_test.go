package audit_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

// TestIdleLog checks that a log without new events does nothing: it does not notice that its folder
// was renamed. The next event wakes it, and is written at the next multiple of 250 ms.
func TestIdleLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		var failed time.Duration
		opened := time.Now()
		l, err := audit.Open(dir, audit.OnError(func(error) { failed = time.Since(opened) }))
		if err != nil {
			t.Fatal(err)
		}
		l.Event(&report.Event{Kind: report.EventStarted, Time: time.Now()})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if r, err := audit.Verify(dir); err != nil || r.Logs[0].Signed != 2 || r.Logs[0].Unsigned != 0 {
			t.Errorf("after 11 s: %v, %+v", err, r.Logs)
		}
		if err := os.Rename(dir, dir+".moved"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1000*time.Hour + 300*time.Millisecond)
		synctest.Wait()
		if failed != 0 {
			t.Errorf("the log has looked at its folder after %v", failed)
		}
		l.Event(&report.Event{Kind: report.EventStarted, Time: time.Now()})
		time.Sleep(time.Second)
		synctest.Wait()
		if want := 1000*time.Hour + 11*time.Second + 500*time.Millisecond; failed != want {
			t.Errorf("the error came after %v, want %v", failed, want)
		}
		l.Close()
	})
}
