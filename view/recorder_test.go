package view

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

var then = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func started(host string, after time.Duration, delay time.Duration) *report.Event {
	return &report.Event{Kind: report.EventStarted, Time: then.Add(after), Host: host, RequestKind: report.RequestPage, Delay: delay}
}

func TestDots(t *testing.T) {
	var (
		first  = started("a.test", 0, time.Second)
		robots = &report.Event{Kind: report.EventStarted, Time: then, Host: "a.test", RequestKind: report.RequestRobots}
		answer = func(after, took time.Duration, status int, err error) *report.Event {
			return &report.Event{Kind: report.EventAnswered, Time: then.Add(after), Took: took, Host: "a.test", RequestKind: report.RequestPage, Status: status, Err: err}
		}
	)
	for _, test := range []struct {
		name   string
		events []*report.Event
		want   string // count and outcome of each dot
	}{
		{"a delay", []*report.Event{first, started("a.test", time.Second, time.Second)}, "1/0 1/0"},
		{"no delay: what is close is one", []*report.Event{started("a.test", 0, 0), started("a.test", 100e6, 0), started("a.test", 300e6, 0)}, "2/0 1/0"},
		{"another purpose", []*report.Event{robots, started("a.test", 0, 0)}, "1/0 1/0"},
		{"answered", []*report.Event{first, answer(5e8, 5e8, 200, nil)}, "1/1"},
		{"not found", []*report.Event{first, answer(5e8, 5e8, 404, nil)}, "1/2"},
		{"an error", []*report.Event{first, answer(5e8, 5e8, 0, errors.New("reset"))}, "1/3"},
		{"throttled", []*report.Event{first, answer(5e8, 5e8, 503, nil)}, "1/4"},
		{"the worst counts", []*report.Event{started("a.test", 0, 0), started("a.test", 1e6, 0), answer(5e6, 5e6, 500, nil), answer(6e6, 5e6, 200, nil)}, "2/3"},
		{"an answer to an earlier one", []*report.Event{first, started("a.test", 2e9, time.Second), answer(3e9, 3e9, 404, nil)}, "1/2 1/0"},
		{"an answer to nothing", []*report.Event{answer(5e8, 5e8, 200, nil)}, ""},
	} {
		r := newRecorder()
		for _, e := range test.events {
			r.hear(e)
		}
		var got []string
		for _, d := range r.starts.since("a.test", 0) {
			got = append(got, fmt.Sprintf("%d/%d", d.count, d.outcome))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestDenialsByRule checks that denials by one line of one robots.txt are counted in one entry.
func TestDenialsByRule(t *testing.T) {
	r := newRecorder()
	for i := range 5 {
		r.hear(&report.Event{Kind: report.EventDenied, Time: then, Host: "a.test", URL: fmt.Sprintf("http://a.test/cart/%d", i%4), Decision: &report.Decision{
			RobotsURL: "http://a.test/robots.txt", Reason: report.ReasonRule, Rule: dialect.Rule{Pattern: "/cart", Line: 2}, Group: "*"}})
	}
	r.hear(&report.Event{Kind: report.EventDenied, Time: then, Host: "a.test", URL: "http://a.test/10", Err: errors.New("private network")})
	denials := r.denialsFor(question{})
	if len(denials) != 2 || denials[0].Reason != "other" || denials[0].Error != "private network" {
		t.Fatalf("%+v", denials)
	}
	if d := denials[1]; d.Count != 5 || d.Line != 2 || d.Pattern != "/cart" || strings.Join(d.URLs, " ") != "http://a.test/cart/0 http://a.test/cart/3 http://a.test/cart/2" {
		t.Errorf("%+v", d)
	}
	if got := r.denialsFor(question{q: "b.test"}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestRecorderIsBounded checks that a recorder that receives too many events drops old ones.
func TestRecorderIsBounded(t *testing.T) {
	before := heap()
	r := newRecorder()
	long := strings.Repeat("x", 20_000)
	for i := range 5_000 {
		host := fmt.Sprintf("h%d.test", i)
		r.hear(started(host, time.Duration(i)*time.Second, time.Second))
		r.hear(&report.Event{Kind: report.EventDenied, Host: host, URL: "http://" + host + "/" + long[:i%len(long)], Err: errors.New(long),
			Decision: &report.Decision{RobotsURL: "http://" + host + "/robots.txt", Rule: dialect.Rule{Pattern: long, Line: i}}})
		r.hear(&report.Event{Kind: report.EventSitemap, Host: host, URL: "http://" + host + "/" + long, Err: errors.New(long)})
		r.hear(&report.Event{Kind: report.EventRobots, Host: host, URL: "http://" + host + "/robots.txt", Body: make([]byte, 1000)})
	}
	for i := range 100_000 { // one host with very many requests
		r.hear(started("h1.test", time.Duration(i)*time.Second, time.Second))
	}
	if used := heap() - before; used > 60<<20 {
		t.Errorf("%d MB are kept", used>>20)
	}
	if h, _ := r.starts.hosts.get("h1.test"); len(h.dots) > maxDots || len(h.dots) < maxDots/2 {
		t.Errorf("%d dots", len(h.dots))
	}
	if n := len(r.denials.byKey); n != maxDenials {
		t.Errorf("%d denials", n)
	}
	runtime.KeepAlive(r)
}

func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
