package audit_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

func TestSite(t *testing.T) {
	dir := t.TempDir()
	varied(t, dir)
	s, err := audit.Site("new.test", dir)
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK || len(s.Findings) > 0 || len(s.Exceptions) > 0 {
		t.Errorf("got %v, %v", s.Findings, s.Exceptions)
	}
	if len(s.Files) != 3 || s.Files[0].Hash == s.Files[1].Hash || s.Requests[report.RequestRobots] != 3 || s.Requests[report.RequestPage] != 4 || s.Denied[report.ReasonRule] != 1+1 {
		t.Errorf("got %d files, %v requests, %v denials", len(s.Files), s.Requests, s.Denied)
	}
	if s.MinGap < time.Second || s.MinGap < s.Delay || len(s.Gaps) != 3 { // one for each run, because a period has five minutes
		t.Errorf("got the smallest gap %v with the delay %v, and %d gaps", s.MinGap, s.Delay, len(s.Gaps))
	}
	var text, html bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"requests (4 for pages, 3 for robots.txt) to new.test between 2000-01-01", "It looked for the name ExampleBot in robots.txt.", "The log was verified without a fault."} {
		if !strings.Contains(text.String(), want) || !strings.Contains(html.String(), want) {
			t.Errorf("the report does not contain %q:\n%s", want, text.String())
		}
	}
	if n := strings.Count(html.String(), "<circle"); n != len(s.Gaps) {
		t.Errorf("the chart has %d dots", n)
	}
	if _, err := audit.Site("none.test", dir); err == nil {
		t.Error("there is a report about a host that was not crawled")
	}
	if name := os.Getenv("COLLYROBOTS_SITE_HTML"); name != "" { // to look at the page
		os.WriteFile(name, html.Bytes(), 0o600)
	}
}

// TestSiteOfHostileLog checks that texts of a log are escaped in the page.
func TestSiteOfHostileLog(t *testing.T) {
	dir := t.TempDir()
	at := time.Now()
	const hostile = "http://a.test/<script>alert(1)</script>"
	d := &report.Decision{URL: hostile, Token: "<b>bot</b>", Allowed: true, Reason: report.ReasonRule, RobotsURL: hostile}
	forge(t, dir,
		&report.Event{Kind: report.EventRobots, Time: at, Host: "a.test", URL: hostile, RobotsStatus: "<i>"},
		&report.Event{Kind: report.EventStarted, Time: at, Host: "a.test", URL: hostile, RequestKind: report.RequestPage, Decision: d})
	s, err := audit.Site("a.test", dir)
	if err != nil {
		t.Fatal(err)
	}
	var html bytes.Buffer
	if err := s.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<b>", "<i>"} {
		if strings.Contains(html.String(), bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
	if s.OK || !strings.Contains(html.String(), "Faults") {
		t.Error("the page has no faults")
	}
}
