package audit_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// verify returns the report of Verify and its faults, as "check: text".
func verify(t *testing.T, dirs ...string) (r *audit.Report, faults []string) {
	t.Helper()
	r, err := audit.Verify(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		faults = append(faults, string(f.Check)+": "+f.Text)
	}
	return r, faults
}

// variedSites have redirects, denials, 429 and a robots.txt that changes.
func variedSites() robotstest.Sites {
	busy := 0
	reads := 0
	return robotstest.Sites{
		"shop.test": {
			"/robots.txt": "User-agent: *\nDisallow: /cart\nAllow: /cart/help\nCrawl-delay: 2\n",
			"/a":          robotstest.Redirect("/b"), "/c": robotstest.Redirect("/cart"), "*": "",
		},
		"busy.test": {"/robots.txt": http.StatusNotFound, "/": func(w http.ResponseWriter, _ *http.Request) {
			busy++
			if busy%3 == 1 {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}},
		"new.test": {"*": "", "/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			reads++
			fmt.Fprintf(w, "User-agent: ExampleBot\nDisallow: /%d\nCrawl-delay: %d\n", reads, reads)
		}},
		"down.test":   {"/robots.txt": http.StatusServiceUnavailable},
		"closed.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
	}
}

// varied crawls variedSites for more than two days.
func varied(t *testing.T, dir string, opts ...collyrobots.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, variedSites())
		l := mustOpen(t, dir)
		var urls []string
		for _, u := range []string{"shop.test/", "shop.test/cart", "shop.test/cart/help", "shop.test/a", "shop.test/c", "busy.test/", "busy.test/", "new.test/1", "new.test/2", "down.test/", "closed.test/"} {
			urls = append(urls, "http://"+u)
		}
		for range 3 {
			crawl(t, l, web, urls, opts...)
			time.Sleep(23 * time.Hour)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestVerifyPoliteCrawl(t *testing.T) {
	for _, d := range dialect.All() {
		dir := t.TempDir()
		varied(t, dir, collyrobots.Dialect(d), collyrobots.RetryThrottled(1))
		r, faults := verify(t, dir)
		if !r.OK() || len(r.Exceptions) > 0 {
			t.Errorf("%v: got the faults\n%s\nand the exceptions %v", d, strings.Join(faults, "\n"), r.Exceptions)
		}
		l := r.Logs[0]
		if l.Starts < 30 || l.Denied < 6 && d != dialect.Temoto() || l.Open != 0 || !l.Closed || l.Unsigned != 0 || !l.OwnKey {
			t.Errorf("%v: got %+v", d, l)
		}
		if len(l.Readings) != 1 || l.Readings[0].Dialect != d || !strings.HasPrefix(l.Readings[0].Token, "ExampleBot") {
			t.Errorf("%v: got the readings %v", d, l.Readings)
		}
		for _, c := range r.Checks {
			if c.Checked < 6 {
				t.Errorf("%v: only %d things were checked for %s", d, c.Checked, c.Check)
			}
		}
	}
}

// TestVerifyUsage checks a crawl with a Purpose that also requests TDMRep files.
func TestVerifyUsage(t *testing.T) {
	dir := t.TempDir()
	varied(t, dir, collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true))
	_, faults := verify(t, dir)
	if len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
}

// forge writes a log with these events.
func forge(t *testing.T, dir string, events ...*report.Event) {
	t.Helper()
	l := mustOpen(t, dir)
	for _, e := range events {
		l.Event(e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// cloned returns a copy of an event, which a test may change.
func cloned(e *report.Event) *report.Event {
	c := *e
	return &c
}

// events returns the events of a log with a crawl of one host, two seconds apart.
func events(t *testing.T) (all []*report.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n", "*": ""}})
		c := mustCollector(web)
		robots, err := collyrobots.WithRobots(c, collyrobots.OnEveryEvent(func(e *report.Event) { all = append(all, e) }))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			c.Visit(fmt.Sprint("http://shop.test/", n))
		}
		robots.Close()
	})
	return all
}

// TestVerifyForgedEvents changes the events of a polite crawl before they are logged.
func TestVerifyForgedEvents(t *testing.T) {
	for _, test := range []struct {
		name  string
		forge func(all []*report.Event) []*report.Event
		want  string // the only fault; "" if there is none
	}{
		{"nothing", func(all []*report.Event) []*report.Event { return all }, ""},
		{"a request without a decision, as of a transport that bypasses the plugin", func(all []*report.Event) []*report.Event {
			e := cloned(all[last(all, report.EventStarted)])
			e.Decision = nil
			e.URL = "http://shop.test/cart"
			e.Time = e.Time.Add(2 * time.Second)
			end := cloned(all[last(all, report.EventAnswered)])
			end.URL = e.URL
			end.Time = e.Time
			return append(all, e, end)
		}, "rules: the request was sent without a decision"},
		{"another rule", func(all []*report.Event) []*report.Event {
			d := *all[last(all, report.EventStarted)].Decision
			d.URL = "http://shop.test/cart"
			e := all[last(all, report.EventStarted)]
			e.URL = d.URL
			e.Decision = &d
			all[last(all, report.EventAnswered)].URL = d.URL
			return all
		}, `rules: rfc9309 decides denied by "Disallow: /cart" in line 2, and the log has allowed`},
		{"a shorter crawl delay", func(all []*report.Event) []*report.Event {
			d := *all[last(all, report.EventStarted)].Decision
			d.CrawlDelay = time.Second
			all[last(all, report.EventStarted)].Decision = &d
			return all
		}, "rules: the crawl delay is 2s, and the log has 1s"},
		{"a gap", func(all []*report.Event) []*report.Event {
			i := last(all, report.EventStarted)
			for n := range all[i:] {
				all[i+n].Time = all[i+n].Time.Add(-time.Second)
			}
			all[i].Gap = time.Second
			return all
		}, "delay: 1s after the last request to the host, but the delay was 2s (crawl_delay)"},
		{"a clock that was set back", func(all []*report.Event) []*report.Event {
			i := last(all, report.EventStarted)
			for n := range all[i:] {
				all[i+n].Time = all[i+n].Time.Add(-time.Hour)
				all[i+n].Date = time.Time{}
			}
			return all
		}, "complete: the clock was set back: the log shows -59m58s since the last request to the host, and 2s have passed"},
		{"a start that is reported late", func(all []*report.Event) []*report.Event {
			return late(all, -4*time.Second, -2*time.Second)
		}, ""},
		{"a clock that was set back before a start is reported late", func(all []*report.Event) []*report.Event {
			return late(all, -time.Hour-4*time.Second, -2*time.Second)
		}, "complete: the clock was set back: the log shows -1h0m0s since the last request to the host, and 0s have passed"},
		{"a clock that was set forward before a start is reported late", func(all []*report.Event) []*report.Event {
			return late(all, -4*time.Second, -3*time.Second-1500*time.Millisecond)
		}, "complete: the clock was set forward, or a request is missing: the log shows 2.5s since the last request to the host, and 0s have passed"},
		{"a start that is not late", func(all []*report.Event) []*report.Event {
			return late(all, -1500*time.Millisecond, -time.Nanosecond)
		}, "delay: 500ms after the last request to the host, but the delay was 2s (crawl_delay)"},
		{"a start is missing", func(all []*report.Event) []*report.Event {
			i := last(all, report.EventStarted)
			return slices.Delete(all, i, i+1)
		}, "complete: the request has ended but not started"},
		{"events are missing", func(all []*report.Event) []*report.Event {
			return append(all, &report.Event{Kind: report.EventMissed, Time: all[len(all)-1].Time, Count: 7})
		}, "complete: 7 events are missing, because the listener was too slow"},
		{"an old file", func(all []*report.Event) []*report.Event {
			i := last(all, report.EventStarted)
			for n := range all[i:] {
				all[i+n].Time = all[i+n].Time.Add(30 * time.Hour)
				all[i+n].Date = time.Time{}
			}
			all[i].Gap += 30 * time.Hour
			return all
		}, "fresh: http://shop.test/robots.txt had expired 6h0m8s before"},
		{"another file", func(all []*report.Event) []*report.Event {
			d := *all[last(all, report.EventStarted)].Decision
			d.Fetched = d.Fetched.Add(time.Hour)
			all[last(all, report.EventStarted)].Decision = &d
			return all
		}, "fresh: the log has no http://shop.test/robots.txt of 2000-01-01 01:00:00"},
	} {
		dir := t.TempDir()
		forge(t, dir, test.forge(events(t))...)
		r, faults := verify(t, dir)
		if test.name == "an old file" && len(faults) > 0 {
			faults = faults[:1] // the file is also more than a day old
		}
		if test.want == "" && !r.OK() || test.want != "" && !slices.Equal(faults, []string{test.want}) {
			t.Errorf("%s: got the faults\n%s\nwant %q", test.name, strings.Join(faults, "\n"), test.want)
		}
	}
}

// late moves the last start by d and gives it a Gap.
func late(all []*report.Event, d, gap time.Duration) []*report.Event {
	e := all[last(all, report.EventStarted)]
	e.Time = e.Time.Add(d)
	e.Gap = gap
	return all
}

// last returns the index of the last event of a kind.
func last(all []*report.Event, kind report.EventKind) int {
	for i := len(all) - 1; ; i-- {
		if all[i].Kind == kind {
			return i
		}
	}
}

// TestVerifyTruncated checks that a log that was cut back to an earlier checkpoint is found by a
// party that holds the later one.
func TestVerifyTruncated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	forge(t, dir, events(t)...)
	short := filepath.Join(t.TempDir(), "short")
	if err := os.CopyFS(short, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	forgeMore(t, dir)
	v := audit.Verifier{Keys: []string{strings.TrimSpace(read(t, dir, "key.pub"))}, Checkpoints: [][]byte{[]byte(read(t, dir, "checkpoint"))}}
	for _, test := range []struct {
		dir  string
		want bool
	}{{dir, true}, {short, false}} {
		r, err := v.Verify(test.dir)
		if err != nil || r.OK() != test.want || r.Logs[0].OwnKey {
			t.Errorf("%s: OK is %v, %v, %v", test.dir, r.OK(), r.Findings, err)
		}
	}
	v.Checkpoints = [][]byte{[]byte(read(t, short, "checkpoint"))} // an earlier one
	if r, err := v.Verify(dir); err != nil || !r.OK() {
		t.Errorf("an earlier checkpoint is not accepted: %v, %v", r.Findings, err)
	}
	other := t.TempDir()
	key, _, err := note.GenerateKey(nil, v.Keys[0][:strings.IndexByte(v.Keys[0], '+')])
	if err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, other, audit.Key(key))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := v.Verify(other); err != nil || r.OK() {
		t.Errorf("a log with another key is accepted: %v", err)
	}
}

// TestKilled checks a log whose process was killed: the entries that were written are there, and
// the next process continues.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l := mustOpen(t, dir)
	all := events(t)
	half := last(all[:len(all)/2], report.EventAnswered) + 1
	for _, e := range all[:half] {
		l.Event(e)
	}
	waitUntil(t, func() bool {
		info, err := os.Stat(filepath.Join(dir, "pending-0"))
		return err == nil && info.Size() > 1000
	})
	copied := filepath.Join(t.TempDir(), "killed") // what another process would find after kill -9
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	r, faults := verify(t, copied)
	if !r.OK() || r.Logs[0].Closed || r.Logs[0].Unsigned != uint64(half) {
		t.Errorf("got %+v, %q", r.Logs[0], faults)
	}
	forge(t, copied, all[half:]...)
	if r, faults := verify(t, copied); !r.OK() || r.Logs[0].Unsigned != 0 || !r.Logs[0].Closed {
		t.Errorf("got %+v, %q", r.Logs[0], faults)
	}
}

func waitUntil(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not true after a minute")
		}
	}
}

func TestVerifyNothing(t *testing.T) {
	if _, err := audit.Verify(); err == nil {
		t.Error("no folder was accepted")
	}
	if _, err := audit.Verify(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing folder was accepted")
	}
	if r, err := audit.Verify(t.TempDir()); err != nil || r.OK() {
		t.Errorf("an empty folder: %v", err)
	}
}
