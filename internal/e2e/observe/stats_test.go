package observe

import (
	"context"
	"fmt"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestStatsMatchServerLog checks that the numbers in Stats are those of the server's log.
func TestStatsMatchServerLog(t *testing.T) {
	slow := robotstest.Pages(6, "User-agent: *\nDisallow: /2$\nCrawl-delay: 1.5\n")
	slow["/"], slow["/1"] = kit.Takes(time.Second, slow["/"].(string)), kit.Takes(4*time.Second, "")
	slow["/0"], slow["/next"] = robotstest.Redirect("/next"), robotstest.Page()
	sites := robotstest.Sites{"slow.test": slow, "fast.test": robotstest.Pages(5, kit.NoDenys), "down.test": {"/robots.txt": 503}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		start := time.Now()
		c := startWith(t, web, collyrobots.ForHosts("fast.test", collyrobots.MinDelay(100*time.Millisecond)))
		for _, host := range []string{"slow", "fast", "down"} {
			c.Visit("http://" + host + ".test/")
		}
		c.Wait()
		s := c.Robots.Stats()
		if !s.Started.Equal(start) || s.Totals.Requests != len(web.Log("")) || s.Totals.Pages != 6+6 || s.Totals.Denied != 2 || s.Totals.Waiting != 0 {
			t.Errorf("got stats %+v", s)
		}
		kit.Must(t, c.Robots.Close())
		if s.Closed || !c.Robots.Stats().Closed {
			t.Errorf("Closed is %t before Close and %t after it", s.Closed, c.Robots.Stats().Closed)
		}
		if want := (map[report.Reason]int{report.ReasonRule: 1 + 6, report.ReasonUnreachable: 1, report.ReasonNoRule: 7}); !reflect.DeepEqual(s.Decisions, want) {
			t.Errorf("got decisions %v, want %v", s.Decisions, want)
		}
		if p := s.Policies; len(p) != 2 || p[report.RobotsRules].Count != 2 || p[report.RobotsUnreachable].Count != 1 || !p[report.RobotsRules].Oldest.Equal(start) {
			t.Errorf("got policies %+v", p)
		}
		least := 0.0
		for _, host := range s.Hosts {
			log := web.Log(host.Host)
			if host.Requests != len(log) {
				t.Errorf("%s: got %d requests, want %d as in the log", host.Host, host.Requests, len(log))
			}
			if host.Delay == 0 {
				continue
			}
			over := float64(log.MinGap()) / float64(host.Delay)
			if host.GapOverDelay != over || over < 1 || host.MinGap != log.MinGap() {
				t.Errorf("%s: got gap %v and ratio %v, want %v and %v", host.Host, host.MinGap, host.GapOverDelay, log.MinGap(), over)
			}
			if least == 0 || over < least {
				least = over
			}
		}
		if s.GapOverDelay != least || least != 1 {
			t.Errorf("got GapOverDelay %v, want %v", s.GapOverDelay, least)
		}
		down, fast, slow := s.Hosts[0], s.Hosts[1], s.Hosts[2]
		if down.LastStatus != 503 || fast.LastStatus != 200 || fast.Source != report.SourceMinDelay || fast.Line != 0 {
			t.Errorf("got stats %+v\n%+v", down, fast)
		}
		if slow.Source != report.SourceCrawlDelay || slow.Line != 3 {
			t.Errorf("got stats %+v", slow)
		}
		kit.Survives(t, s)
	})
}

// TestTurnOfAbortedPageExpires checks that a page that a later callback aborts stops waiting when
// its turn expires, although no other page follows.
func TestTurnOfAbortedPageExpires(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "User-agent: *\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
		c := startWith(t, web)
		c.OnRequest(func(r *colly.Request) { r.Abort() })
		c.Visit("http://a.test/0")
		if n := c.Robots.Stats().Totals.Waiting; n != 1 {
			t.Errorf("%d pages wait before the turn expires, want 1", n)
		}
		time.Sleep(2 * time.Second)
		if n := c.Robots.Stats().Totals.Waiting; n != 0 {
			t.Errorf("%d pages wait at the end, want 0", n)
		}
	})
}

// TestStatsFunc checks that StatsFunc returns what Stats returns, and that visit may use the
// plugin.
func TestStatsFunc(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\n"), "b.test": robotstest.Pages(2, kit.NoDenys), "down.test": {"/robots.txt": 503}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := startWith(t, web)
		for host := range sites {
			c.Visit("http://" + host + "/")
		}
		want := c.Robots.Stats()
		var hosts []report.HostStats
		got := c.Robots.StatsFunc(func(host report.HostStats) {
			if n := len(c.Robots.Stats().Hosts); n != 3 {
				t.Errorf("%d hosts, want 3", n)
			}
			hosts = append(hosts, host)
		})
		if got.Hosts != nil {
			t.Errorf("got Hosts %+v, want nil", got.Hosts)
		}
		slices.SortFunc(hosts, func(a, b report.HostStats) int { return strings.Compare(a.Host, b.Host) })
		got.Hosts = hosts
		if !reflect.DeepEqual(got, want) {
			t.Errorf("StatsFunc returned %+v\nStats returned     %+v", got, want)
		}
	})
	var none *collyrobots.Plugin
	if s := none.StatsFunc(func(report.HostStats) { t.Error("visit was called for a nil Plugin") }); !reflect.DeepEqual(s, collyrobots.Stats{}) {
		t.Errorf("got stats %+v", s)
	}
}

// startWith is start for a crawl that follows links.
func startWith(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) *kit.Crawl {
	t.Helper()
	return kit.Start(t, web, nil, opts...).Follow()
}

// TestTimeLeft checks the estimate of the time that a host needs for its waiting pages.
func TestTimeLeft(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		host report.HostStats
		want time.Duration
	}{
		{report.HostStats{}, 0},
		{report.HostStats{Delay: time.Hour, NextStart: now.Add(time.Hour)}, 0}, // no page waits for it
		{report.HostStats{Waiting: 3}, 0},
		{report.HostStats{Waiting: 1, Delay: time.Minute, NextStart: now.Add(10 * time.Second)}, 10 * time.Second},
		{report.HostStats{Waiting: 3, Delay: time.Minute, NextStart: now.Add(10 * time.Second)}, 130 * time.Second},
		{report.HostStats{Waiting: 3, Delay: time.Minute, NextStart: now.Add(-time.Hour)}, 2 * time.Minute},
		{report.HostStats{Waiting: 3, Delay: math.MaxInt64}, math.MaxInt64},
		{report.HostStats{OnDisk: 3, Delay: time.Minute}, 2 * time.Minute},
		{report.HostStats{Waiting: 1, OnDisk: 2, Delay: time.Minute, NextStart: now.Add(10 * time.Second)}, 130 * time.Second},
		{report.HostStats{Waiting: 2, Delay: math.MaxInt64, NextStart: now.Add(time.Hour)}, math.MaxInt64},
	} {
		if got := test.host.TimeLeft(now); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.host, got, test.want)
		}
	}
}

// TestUnsentRequestsDoNotCount checks that only requests that were sent count, and that listeners
// are called for them alone. Connections that are refused, or end before the request is written,
// are not in the server's log.
func TestUnsentRequestsDoNotCount(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		heard := kit.Hear(report.EventStarted, report.EventAnswered)
		c := kit.Start(t, web, nil, heard.On())
		dial := c.Transport.DialContext
		c.Transport.DisableKeepAlives = true
		refused := 0
		c.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if len(web.Log("a.test")) >= 4 {
				refused++
				conn.Close()
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return conn, nil
		}
		for i := range 6 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		s := c.Robots.Stats()
		if sent := len(web.Log("a.test")); sent != 4 || refused != 3 || s.Totals.Requests != sent || s.Hosts[0].Requests != sent {
			t.Errorf("%d requests in all, %d of the host, want the %d in the log; %d connections were refused",
				s.Totals.Requests, s.Hosts[0].Requests, sent, refused)
		}
		if n := len(heard.Wait()); n != 2*4 {
			t.Errorf("%d events, want a start and an end of each of the 4 requests in the log", n)
		}
	})
}
