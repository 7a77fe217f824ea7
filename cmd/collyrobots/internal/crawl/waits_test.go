package crawl

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// TestWaits checks the lines about waiting pages.
func TestWaits(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := func(name string, waiting int, next, delay time.Duration, source report.DelaySource) report.HostStats {
		h := report.HostStats{Host: name, Waiting: waiting, Delay: delay, Source: source}
		if source == report.SourceCrawlDelay {
			h.CrawlDelay = delay
		}
		if next != 0 {
			h.NextStart = now.Add(next)
		}
		return h
	}
	slow := host("slow.test", 12, 100*time.Second, 2*time.Minute, report.SourceCrawlDelay)
	slow.Line = 3
	for _, test := range []struct {
		name  string
		hosts []report.HostStats
		most  int
		want  string
	}{
		{"no hosts", nil, 1, "waiting for responses"},
		{"an idle host", []report.HostStats{host("a.test", 0, -time.Second, time.Second, "")}, 1, "waiting for responses"},
		{"a slow host", []report.HostStats{slow}, 1, "12 pages waiting for slow.test, next in 1m40s, about 23m40s left (Crawl-delay: 120, line 3)"},
		{"several hosts", []report.HostStats{
			host("a.test", 2, 40*time.Millisecond, 1500*time.Millisecond, report.SourceMinDelay), slow,
			host("b.test", 1, time.Minute, time.Second, report.SourceRetryAfter),
			host("c.test", 1, 0, 0, ""), host("idle.test", 0, time.Hour, time.Hour, report.SourceBackOff),
		}, 3, `12 pages waiting for slow.test, next in 1m40s, about 23m40s left (Crawl-delay: 120, line 3)
1 page waiting for b.test, next in 1m (Retry-After)
2 pages waiting for a.test, next in 100ms, about 2s left (-delay 1.5s)
1 more page waiting for 1 other host`},
		{"only sitemaps", []report.HostStats{host("a.test", 0, 9*time.Second, 10*time.Second, report.SourceBackOff)}, 1,
			"waiting for a.test, next request in 9s (back-off of 10s after 429 or 503)"},
		{"a host with a request in flight", []report.HostStats{host("a.test", 3, -time.Hour, 1250*time.Millisecond, report.SourceCrawlDelay)}, 1,
			"3 pages waiting for a.test, next after its response, about 3s left (Crawl-delay: 1.25)"},
		{"the rate of all hosts", []report.HostStats{host("a.test", 3, 9*time.Second, 0, report.SourceMaxRate)}, 1,
			"3 pages waiting for a.test, next in 9s, about 9s left (-max-rate)"},
		{"the longest delay", []report.HostStats{host("a.test", 1000, math.MaxInt64, math.MaxInt64, report.SourceMinDelay)}, 1,
			"1,000 pages waiting for a.test, next in 292y171d, about 292y171d left (-delay 2562047h47m16.854775807s)"},
	} {
		s := collyrobots.Stats{Hosts: test.hosts}
		for _, h := range test.hosts {
			s.Totals.Waiting += h.Waiting
		}
		if got := strings.Join(waits(s, now, test.most), "\n"); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// TestHeartbeat checks that, if the output is not a terminal, there is a line for each event, and a
// line from time to time while there are no events.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out)
		begin := time.Now()
		p.watch(func() collyrobots.Stats {
			return collyrobots.Stats{Totals: report.HostStats{Waiting: 1}, Hosts: []report.HostStats{{Host: "a.test", Waiting: 1, NextStart: begin.Add(100 * time.Second)}}}
		})
		time.Sleep(38*time.Second + 100*time.Millisecond)
		p.page(200, "http://joe:secret@a.test/\x1b[2J")
		p.Write([]byte("a log line\x07\n"))
		time.Sleep(6 * time.Second)
		p.failed(failure{URL: "http://a.test/b", Status: 404})
		p.failed(failure{URL: "http://a.test/c", Error: errors.New("no\nanswer").Error()})
		p.denied(collyrobots.Decision{URL: "http://a.test/d", Reason: report.ReasonNoRule, Allowed: true})
		p.close()
		const want = `   5.0s  1 page waiting for a.test, next in 1m35s
  15.0s  1 page waiting for a.test, next in 1m25s
  35.0s  1 page waiting for a.test, next in 1m5s
  38.1s  200      http://xxxxx@a.test/\x1b[2J
a log line\a
  43.2s  1 page waiting for a.test, next in 57s
  44.1s  failed   http://a.test/b  (404 Not Found)
  44.1s  failed   http://a.test/c  (no\nanswer)
  44.1s  denied   http://a.test/d  (no rule matches)
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}
