package crawl

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// TestWarnings checks that warnings are sentences without zero values, and that hosts that are
// unreachable are left to the denials.
func TestWarnings(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(&warnings{w: &out}).With("host", "a.test")
	log.Info("page fetched")
	log.Warn("host is throttling, slowing down", "delay", 2*time.Second, "status", 0, "stale", false, "until", time.Time{}, "retry_after", "none")
	log.Error("two\nlines")
	log.Warn("robots.txt could not be read", "robots_status", report.RobotsUnreachable)
	const want = "warning: host is throttling, slowing down (host a.test, delay 2s, retry after none)\n" +
		"warning: two lines (host a.test)\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
