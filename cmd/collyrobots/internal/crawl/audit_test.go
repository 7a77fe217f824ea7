package crawl

import (
	"path/filepath"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestAuditDemo crawls the demo sites with -audit. The log has each request of the access log, and
// no faults.
func TestAuditDemo(t *testing.T) {
	t.Parallel()
	sites := make(robotstest.Sites)
	for host := range demo.Sites {
		sites[host] = robotstest.Site{"*": new(demo.Server).ServeHTTP}
	}
	web := tooltest.New(t, sites)
	dir := filepath.Join(t.TempDir(), "log")
	status, out, errs := web.Run(t, "", append([]string{"-delay=100ms", "-audit", dir}, demo.Starts()...)...)
	if status != 0 {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	r, err := audit.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if requests := len(web.Log("")); !r.OK() || r.Logs[0].Starts != requests || requests < 25 || r.Logs[0].Denied != 9 || !r.Logs[0].Closed {
		t.Errorf("the access log has %d requests, the log is %+v, and the faults are %v", requests, r.Logs[0], r.Findings)
	}
}
