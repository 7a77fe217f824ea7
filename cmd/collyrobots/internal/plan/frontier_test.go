package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// newFrontier returns a folder with a waitingFile.
func newFrontier(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.WriteFile(filepath.Join(dir, waitingFile), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

const firstLine = `{"version":1,"written":"2026-11-22T13:00:00Z"}`

// TestFrontier checks the plan for the pages in a frontier. Only robots.txt is requested.
func TestFrontier(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{
		"slow.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nSitemap: http://slow.test/map.xml\n", "/map.xml": listing("slow.test", 5, "")},
		"fast.test": {"/robots.txt": 404},
	})
	dir := newFrontier(t, firstLine, `{"host":"fast.test","waiting":40}`, `{"host":"gone.test","waiting":1}`, `{"host":"slow.test","waiting":900}`)
	status, out, progress := web.Run(t, "", "-frontier", dir)
	t.Log("\n" + out)
	if status != 0 {
		t.Errorf("status %d\n%s", status, progress)
	}
	for _, want := range []string{
		`^The crawl takes at least 30m for 940 known pages .*; the pages of 1 host are not known\.\n(?s:.*)Checked 3 hosts in .*, 1 without a response\.`,
		`\nThe pages are those that waited in the frontier at 2026-11-22 13:00:00\.\n`,
		`\n  slow\.test +0 +0 +900 +2s +2 +30m0?s? *\n`,
		`\n  fast\.test +0 +0 +40 +250ms +- +10s\n`,
		`\n  gone\.test +- +- +- +- +- +- +unreachable: `,
		`\n  crawl +1 at once +2 at once +all 3\n  as planned +≥30m10s +≥30m0?s? `,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the plan does not match %s", want)
		}
	}
	for _, r := range web.Log("") {
		if r.URI != "/robots.txt" {
			t.Errorf("request for %s%s", r.Host, r.URI)
		}
	}
}

func TestFrontierJSON(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/robots.txt": 404}})
	_, out, _ := web.Run(t, "", "-json", "-frontier", newFrontier(t, firstLine, `{"host":"a.test","waiting":8}`))
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || len(p.Hosts) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if h := p.Hosts[0]; h.Waiting != 8 || h.Pages != 8 || h.Listed != 0 {
		t.Errorf("waiting %d, pages %d, listed %d; want 8, 8, 0", h.Waiting, h.Pages, h.Listed)
	}
}

// TestExitStatus checks the status of plans with nothing to plan.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := (*tooltest.World)(nil).Run(t, "", "-frontier", newFrontier(t, firstLine))
	if status != 0 || stdout != "" || stderr != "collyrobots plan: no page waits in the frontier\n" {
		t.Errorf("a finished crawl: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, stderr = tooltest.New(t, robotstest.Sites{}).Run(t, "", "http://gone.test/")
	if status != 2 || !strings.Contains(stdout, "unreachable") {
		t.Errorf("no host has answered: status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// TestFrontierFaults checks that each fault of the folder is reported on one line.
func TestFrontierFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want string
		args []string
	}{
		{"no such file", []string{"-frontier", t.TempDir()}},
		{"names version 1", []string{"-frontier", newFrontier(t, `{"version":2}`)}},
		{"names version 1", []string{"-frontier", newFrontier(t, "nonsense")}},
		{"line has more than 65536 bytes", []string{"-frontier", newFrontier(t, firstLine, `{"host":"`+strings.Repeat("a", 70_000)+`"}`)}},
		{"line 3: ", []string{"-frontier", newFrontier(t, firstLine, `{"host":"a.test","waiting":8}`, `{"host":`)}},
		{`line 2: "a b" is not a host`, []string{"-frontier", newFrontier(t, firstLine, `{"host":"a b","waiting":8}`)}},
		{"line 2: the number of waiting pages is -1", []string{"-frontier", newFrontier(t, firstLine, `{"host":"a.test","waiting":-1}`)}},
		{"remove -from and the other arguments", []string{"-frontier", newFrontier(t, firstLine), "a.test"}},
	} {
		status, stdout, stderr := (*tooltest.World)(nil).Run(t, "", test.args...)
		if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "collyrobots plan: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.args, status, stdout, stderr)
		}
	}
}
