package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// tried is the content of robots.json.
type tried struct {
	URL, Name, Robots string
	File              *robotsFile
	Kept              bool
	Total, From       int
	Lines             []string
	Readings          []struct {
		Dialect    dialect.Dialect
		Allowed    bool
		Rule       dialect.Rule
		Group      string
		CrawlDelay float64 `json:"crawl_delay"`
		Error      string
	}
	Decision *report.Decision
	Error    string
}

func triedFor(t *testing.T, h http.Handler, parameters string) (answer tried) {
	t.Helper()
	w := get(h, "/robots.json?"+parameters)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", parameters, w.Code, err, w.Body)
	}
	return answer
}

// hasHeardOf waits until the handler has received a robots.txt. Events arrive a little later than
// the response.
func (h *Page) hasHeardOf(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		h.recorder.mu.Lock()
		_, ok := h.recorder.files.get(url)
		h.recorder.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the handler has not received %s", url)
		}
	}
}

const twoGroups = "User-agent: *\r\nDisallow: /\r\n\nUser-agent: Other\nCrawl-delay: 2.5\nDisallow: /a*c$\rAllow: /abc\n"

// TestTryEveryDialect checks the decision of each dialect about one URL, for a product token that
// is not the crawl's.
func TestTryEveryDialect(t *testing.T) {
	c, _, h := newCrawl(t, robotstest.Sites{"a.test": {"/robots.txt": twoGroups}})
	c.Visit("http://a.test/")
	h.hasHeardOf(t, "http://a.test/robots.txt")
	got := triedFor(t, h, "robots=http://a.test/robots.txt&url=/abc&name=Other")
	var said []string
	for _, r := range got.Readings {
		said = append(said, fmt.Sprintf("%v %v %d %s %v", r.Dialect, r.Allowed, r.Rule.Line, r.Group, r.CrawlDelay))
	}
	want := []string{"rfc9309 false 6 Other 2.5", "google false 6 Other 0", "coccoc false 6 Other 3", "original1994 true 0 Other 0"}
	if len(said) != len(dialect.All()) || !slices.Equal(said[:len(want)], want) {
		t.Errorf("%q, want %q", said, want)
	}
	if got.Decision == nil || got.Decision.Allowed || got.Decision.Rule.Line != 2 {
		t.Errorf("the crawl decides %+v", got.Decision)
	}
	if got.Total != 7 || got.Lines[5] != "Disallow: /a*c$" || got.Lines[6] != "Allow: /abc" {
		t.Errorf("%d lines: %q", got.Total, got.Lines)
	}
}

// TestTryFetchesNothing checks that a question about a site that the crawl has not visited does not
// fetch anything.
func TestTryFetchesNothing(t *testing.T) {
	_, p, h := newCrawl(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")})
	if got := triedFor(t, h, "url=http://a.test/0"); got.File != nil || got.Decision != nil || got.Kept {
		t.Errorf("%+v", got)
	}
	if n := len(p.Stats().Hosts); n != 0 {
		t.Errorf("%d hosts", n)
	}
	for _, parameters := range []string{"", "url=/x", "url=ftp://a.test/", "url=http://", "url=" + url.QueryEscape("http://a b/"), "url=:", "robots=:&url=x",
		"url=http://a.test/" + strings.Repeat("x", 2*maxText), "url=http://a.test/&name=" + strings.Repeat("x", maxQ+1)} {
		if w := get(h, "/robots.json?"+parameters); w.Code != http.StatusBadRequest {
			t.Errorf("%.40s: status %d: %s", parameters, w.Code, w.Body)
		}
	}
}

// TestLongFile checks that the lines around the deciding line of a long file are returned.
func TestLongFile(t *testing.T) {
	body := "User-agent: *\n" + strings.Repeat("# nothing\n", 3000) + "Disallow: /x\n" + strings.Repeat("Disallow: /y\n", 3000)
	c, _, h := newCrawl(t, robotstest.Sites{"a.test": {"/robots.txt": body}})
	c.Visit("http://a.test/")
	h.hasHeardOf(t, "http://a.test/robots.txt")
	got := triedFor(t, h, "robots=http://a.test/robots.txt&url=/x")
	if got.Total != 6002 || len(got.Lines) != maxLines || got.Lines[3002-got.From] != "Disallow: /x" {
		t.Errorf("%d of %d lines from %d", len(got.Lines), got.Total, got.From)
	}
	if got = triedFor(t, h, "robots=http://a.test/robots.txt&url=/x&from=6000"); got.From != 6000 || len(got.Lines) != 3 {
		t.Errorf("%d lines from %d", len(got.Lines), got.From)
	}
}

// TestFilesAreBounded checks that only the latest files are kept.
func TestFilesAreBounded(t *testing.T) {
	f := newFiles(100 * fileCost)
	for i := range 1000 {
		f.put(&report.Event{Kind: report.EventRobots, URL: fmt.Sprint("http://h", i, "/robots.txt"), Hash: "x", Body: make([]byte, 9*fileCost)})
	}
	if n := f.recent.order.Len(); n != 10 || n != len(f.recent.byKey) || f.bytes != 100*fileCost {
		t.Errorf("%d files, %d bytes", n, f.bytes)
	}
	if _, ok := f.get("http://h990/robots.txt"); !ok {
		t.Error("one of the last files is gone")
	}
	f.put(&report.Event{URL: "http://h990/robots.txt", Hash: "x", Status: 304}) // as it was
	if file, _ := f.get("http://h990/robots.txt"); len(file.body) == 0 || file.Status != 304 {
		t.Errorf("%+v", file)
	}
	f.put(&report.Event{URL: "http://h990/robots.txt", Hash: "y", Status: 200, Change: &report.RobotsChange{}, Time: time.Unix(9, 0)})
	if file, _ := f.get("http://h990/robots.txt"); file.body != nil || file.Changed.Unix() != 9 {
		t.Errorf("%+v", file)
	}
	f.put(&report.Event{URL: "http://large/robots.txt", Hash: "z", Body: make([]byte, 60*fileCost)})
	if file, _ := f.get("http://large/robots.txt"); file.body != nil || f.bytes > 100*fileCost {
		t.Errorf("the files have %d bytes", f.bytes)
	}
}
