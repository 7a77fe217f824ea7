package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

func answeredAt(host string, after time.Duration, status int, err error) *report.Event {
	return &report.Event{Kind: report.EventAnswered, Time: then.Add(after), Host: host, URL: "http://" + host + "/", Status: status, Err: err, RequestKind: report.RequestPage}
}

// TestSlowHostsKeepTheirHistory checks that the histories of many slow hosts are kept while a few
// thousand others send very many requests.
func TestSlowHostsKeepTheirHistory(t *testing.T) {
	r := newRecorder()
	const slow, fast = 600, 1500
	for second := range 120 {
		at := time.Duration(second) * time.Second
		for i := range fast {
			r.hear(started(fmt.Sprintf("fast%d.test", i), at, time.Second))
		}
		if second%20 == 0 {
			for i := range slow {
				r.hear(started(fmt.Sprintf("slow%d.test", i), at, 20*time.Second))
			}
		}
	}
	for i := range slow {
		if n := len(r.starts.since(fmt.Sprintf("slow%d.test", i), 0)); n != 6 {
			t.Fatalf("slow%d.test has %d dots", i, n)
		}
	}
}

// TestShownHostsKeepTheirHistory checks that the histories of hosts that a page shows are kept when
// there are too many hosts, and that the memory stays bounded.
func TestShownHostsKeepTheirHistory(t *testing.T) {
	r := newRecorder()
	r.hear(started("shown.test", 0, time.Hour))
	r.hear(started("hidden.test", 0, time.Hour))
	for i := range 400_000 {
		at := time.Duration(i) * time.Millisecond
		if i%10_000 == 0 {
			r.starts.show("shown.test", then.Add(at))
		}
		r.hear(started(fmt.Sprintf("h%d.test", i), at, time.Second))
		if r.starts.bytes > maxHistory {
			t.Fatalf("%d bytes after %d hosts", r.starts.bytes, i)
		}
	}
	if n := len(r.starts.since("shown.test", 0)); n != 1 {
		t.Errorf("the shown host has %d dots", n)
	}
	if n := len(r.starts.since("hidden.test", 0)); n != 0 {
		t.Errorf("the other host has %d dots", n)
	}
	sum := 0
	for h := range r.starts.hosts.all() {
		sum += h.cost()
	}
	if sum != r.starts.bytes {
		t.Errorf("the histories cost %d bytes, but %d are counted", sum, r.starts.bytes)
	}
}

// TestStatuses checks that responses are counted by status for each host and in total.
func TestStatuses(t *testing.T) {
	r := newRecorder()
	for i, status := range []int{200, 204, 301, 304, 404, 401, 429, 503, 429, 500, 502} {
		r.hear(answeredAt(fmt.Sprintf("h%d.test", i%2), 0, status, nil))
	}
	r.hear(answeredAt("h0.test", 0, 0, errors.New("reset")))
	r.hear(answeredAt("h0.test", 0, 0, context.Canceled)) // the crawl has ended
	r.hear(answeredAt("h0.test", 0, 0, nil))              // a Turn without Answered
	if want := (statuses{OK: 2, Redirect: 2, Refused: 2, Throttled: 3, Failed: 2, NoResponse: 1}); r.counts.all != want {
		t.Errorf("all hosts: %+v, want %+v", r.counts.all, want)
	}
	if want := (statuses{OK: 1, Redirect: 1, Refused: 1, Throttled: 2, Failed: 1, NoResponse: 1}); r.counts.byHost["h0.test"] != want {
		t.Errorf("h0.test: %+v, want %+v", r.counts.byHost["h0.test"], want)
	}
	hosts := pick(question{sort: "failed", n: 10}, nil)
	for n, name := range []string{"none.test", "h1.test", "h0.test"} {
		hosts.add(report.HostStats{Host: name, HostCounts: report.HostCounts{Failed: n}})
	}
	if got := hosts.best[0].Host + " " + hosts.best[1].Host; got != "h0.test h1.test" {
		t.Errorf("the order by failures is %s", got)
	}
}

// TestSeries checks that no request is lost when the bins of a series become longer.
func TestSeries(t *testing.T) {
	var s series
	const n = 100_000
	for i := range n {
		s.at(then.Unix()+int64(i)).starts++
	}
	s.at(then.Unix()-5).starts++ // a late event
	sum := 0
	for _, b := range s.bins {
		sum += b.starts
	}
	if sum != n+1 || len(s.bins) > maxBins || len(s.bins) < maxBins/2 {
		t.Errorf("%d requests in %d bins of %d s", sum, len(s.bins), s.width)
	}
}

// TestRemaining checks the estimates for parts of the waiting pages.
func TestRemaining(t *testing.T) {
	for _, test := range []struct {
		name  string
		hosts [][3]time.Duration // first, last, number
		half  time.Duration
		most  time.Duration
	}{
		{"no host", nil, 0, 0},
		{"one page", [][3]time.Duration{{time.Minute, time.Minute, 1}}, time.Minute, time.Minute},
		{"one host", [][3]time.Duration{{0, 1000 * time.Second, 1001}}, 500 * time.Second, 900 * time.Second},
		{"one slow host", [][3]time.Duration{{0, time.Minute, 95}, {0, 240 * time.Hour, 5}}, 32 * time.Second, 57 * time.Second},
		{"forever", [][3]time.Duration{{0, 1<<63 - 1, 10}}, 1 << 62, 1<<63 - 1},
	} {
		var r remaining
		for _, h := range test.hosts {
			r.add(h[0], h[1], int(h[2]))
		}
		for part, want := range map[float64]time.Duration{0.5: test.half, 0.9: test.most} {
			got := r.until(part)
			if test.name == "forever" {
				if got < 365*24*time.Hour {
					t.Errorf("%s: %v of the pages in %v", test.name, part, got)
				}
				continue
			}
			if float64(got) < 0.99*float64(want) || float64(got) > 1.11*float64(want) {
				t.Errorf("%s: %v of the pages in %v, want %v", test.name, part, got, want)
			}
		}
	}
}

// TestDenialsOfAllHosts checks that the same rule of many hosts is one entry with the right totals,
// although the recorder has dropped the entries of most hosts.
func TestDenialsOfAllHosts(t *testing.T) {
	r := newRecorder()
	for i := range 1000 {
		for range 3 {
			r.hear(&report.Event{Kind: report.EventDenied, Time: then, Host: fmt.Sprintf("h%d.test", i), URL: "/cart", Decision: &report.Decision{
				Reason: report.ReasonRule, Rule: dialect.Rule{Pattern: "/cart", Line: 2 + i%7}}})
		}
	}
	r.hear(&report.Event{Kind: report.EventDenied, Time: then, Host: "h1.test", Decision: &report.Decision{Reason: report.ReasonBudget}})
	rules := r.rulesFor(question{})
	if len(rules) != 2 || rules[0].Reason != "budget" || rules[0].Count != 1 || rules[0].Hosts != 1 || rules[0].More {
		t.Fatalf("%+v", rules)
	}
	if got := rules[1]; got.Count != 3000 || got.Hosts != maxRuleHosts || !got.More || got.Pattern != "/cart" {
		t.Errorf("%+v", got)
	}
	if one := r.rulesFor(question{q: "h999.test"}); len(one) != 1 || one[0].Count != 3 || one[0].Hosts != 1 {
		t.Errorf("one host: %+v", one)
	}
	if r.notSent[report.EndingBudget] != 1 || len(r.notSent) != 1 {
		t.Errorf("not sent: %v", r.notSent)
	}
}

// TestFirstDenialOfSomeHosts checks that a rule of several hosts begins with the first denial of
// all of them, and not with that of the host that was denied last.
func TestFirstDenialOfSomeHosts(t *testing.T) {
	r := newRecorder()
	for i, host := range []string{"a.test", "b.test"} {
		r.hear(&report.Event{Kind: report.EventDenied, Time: then.Add(time.Duration(i) * time.Hour), Host: host, Decision: &report.Decision{Reason: report.ReasonBudget}})
	}
	rules := r.rulesFor(question{q: "test"})
	if len(rules) != 1 || !rules[0].First.Equal(then) || !rules[0].Last.Equal(then.Add(time.Hour)) {
		t.Errorf("%+v", rules)
	}
}

// TestRateOfLateStarts checks that a start that is reported late does not replace the count of a
// later second.
func TestRateOfLateStarts(t *testing.T) {
	var r rate
	for range 20 {
		r.count(then)
	}
	r.count(then.Add(-16 * time.Second))
	if got := r.perSecond(then.Add(time.Second)); got != 2 {
		t.Errorf("%v per second, want 2", got)
	}
}

// TestGaps checks the histogram of gaps.
func TestGaps(t *testing.T) {
	var g gaps
	for _, gap := range []time.Duration{0, 999 * time.Millisecond, time.Second, 1050 * time.Millisecond, 3 * time.Second, time.Hour} {
		g.add(gap, time.Second)
	}
	g.add(time.Second, 0)
	if want := (gaps{1, 2, 0, 0, 1, 0, 1}); g != want {
		t.Errorf("%v, want %v", g, want)
	}
}

// TestHostDetails checks host.json.
func TestHostDetails(t *testing.T) {
	c, p, h := newCrawl(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /no\n", "/1": http.StatusBadGateway, "/no": ""}, "aa.test": {}})
	c.Visit("http://a.test/1")
	c.Visit("http://a.test/no")
	p.Close()
	body := get(h, "/host.json?host=a.test").Body.String()
	for _, want := range []string{`"host":"a.test"`, `"url":"http://a.test/1","kind":"page","status":502`, `"5xx":1`, `"pattern":"/no"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing: %s", want, body)
		}
	}
	if body := get(h, "/host.json?host=.test").Body.String(); strings.Contains(body, `"stats"`) {
		t.Errorf("a part of a name: %s", body)
	}
	if w := get(h, "/host.json"); w.Code != http.StatusBadRequest {
		t.Errorf("without a host: status %d", w.Code)
	}
}

// TestSamplesAreBounded checks that many different questions do not use much memory.
func TestSamplesAreBounded(t *testing.T) {
	h := New(nil, Options{})
	for i := range 1000 {
		h.sampler.keep(question{q: fmt.Sprint(i)}, &sample{until: time.Now().Add(time.Hour)})
	}
	if n := len(h.sampler.last); n != maxSamples {
		t.Errorf("%d samples are kept", n)
	}
}

// TestWriteReport checks that the report is one file, and that texts of the crawl are no markup.
func TestWriteReport(t *testing.T) {
	c, p, _ := newCrawl(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /<script>x\n")})
	page := New(p, Options{Name: "<i>books"})
	var running bytes.Buffer
	if err := page.WriteReport(&running); err != nil || !strings.Contains(running.String(), "The crawl is running.") {
		t.Errorf("%v: %s", err, &running)
	}
	c.Visit("http://a.test/1")
	c.Visit("http://a.test/<script>x")
	p.Close()
	page.sampler = sampler{}
	var report bytes.Buffer
	if err := page.WriteReport(&report); err != nil {
		t.Fatal(err)
	}
	text := report.String()
	for _, want := range []string{"All pages were done.", "No page was left.", "&lt;i&gt;books", "&lt;script&gt;x", "a.test", "<td>2xx<td"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	for _, bad := range []string{"<script", "<i>", "src=", "href=", "@import", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the report", bad)
		}
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/report.html", nil))
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(text, "content=\"default-src &#39;none&#39;") {
		t.Errorf("the policy is %s", policy)
	}
	if err := page.WriteReport(failingWriter{}); err == nil {
		t.Error("no error of the writer")
	}
	var empty bytes.Buffer
	if err := New(nil, Options{}).WriteReport(&empty); err != nil {
		t.Error(err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
