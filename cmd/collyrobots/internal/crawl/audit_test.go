package crawl

import (
	"fmt"
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
	if requests := len(web.Log("")); !r.OK() || r.Logs[0].Starts != requests || requests < 25 || r.Logs[0].Denied != len(demoDenied()) || !r.Logs[0].Closed {
		t.Errorf("the access log has %d requests, the log is %+v, and the faults are %v", requests, r.Logs[0], r.Findings)
	}
}

// TestAuditWithoutDelay crawls a site without a delay, so that several requests are in flight at once.
// Their log has no faults.
func TestAuditWithoutDelay(t *testing.T) {
	t.Parallel()
	var links []string
	for n := range 200 {
		links = append(links, fmt.Sprintf("/%d", n))
	}
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/": robotstest.Page(links...), "*": ""}})
	for range 3 {
		dir := filepath.Join(t.TempDir(), "log")
		status, _, errs := web.Run(t, "", "-delay=0s", "-audit", dir, "http://a.test/")
		r, err := audit.Verify(dir)
		if err != nil {
			t.Fatal(err)
		}
		if status != 0 || !r.OK() || r.Logs[0].Starts < len(links) {
			t.Errorf("status %d, errors %q, %d requests, faults %v", status, errs, r.Logs[0].Starts, r.Findings)
		}
	}
}
