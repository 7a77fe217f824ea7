package operators

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// refusing is a site that refuses every page until its field open is set.
func refusing(robots string) (site robotstest.Site, open *atomic.Bool) {
	open = new(atomic.Bool)
	return robotstest.Site{
		"/robots.txt": robots,
		"*": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !open.Load() {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, robotstest.Page())
		}),
	}, open
}

// TestStopAfterRefusals checks when a host that refuses everything gets requests, and that a probe
// that succeeds ends the stop.
func TestStopAfterRefusals(t *testing.T) { kit.ForEachClient(t, testStopAfterRefusals) }

func testStopAfterRefusals(t *testing.T, start kit.Starter) {
	site, open := refusing("User-agent: *\nCrawl-delay: 2\n")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := start(t, web, nil, collyrobots.StopAfterRefusals(3))
		page := 0
		visit := func(at time.Duration) {
			time.Sleep(time.Until(began.Add(at)))
			c.Visit(fmt.Sprint("http://a.test/", page))
			page++
		}
		for range 5 {
			visit(0)
		}
		kit.WantDenied(t, c, "http://a.test/3", report.ReasonRefused, 0)
		err := c.Denied["http://a.test/4"]
		want := fmt.Sprintf("denied: the host has refused 3 requests in a row; next try at %s (rfc9309)", began.Add(time.Hour+6*time.Second).Format("15:04"))
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the error is %q, want %q", err, want)
		}
		s := kit.HostStats(t, c.Robots, "a.test")
		if s.Refusals != 3 || s.RefusalsInRow != 3 || s.Stopped.Sub(began) != 6*time.Second || s.NextTry.Sub(s.Stopped) != time.Hour || s.Throttled != 0 || s.BackOff != 0 {
			t.Errorf("the host has %+v", s)
		}
		visit(time.Hour + 5*time.Second)    // /5
		visit(time.Hour + 7*time.Second)    // /6, a probe
		visit(time.Hour + 20*time.Second)   // /7
		visit(3*time.Hour + 6*time.Second)  // /8
		visit(3*time.Hour + 10*time.Second) // /9, a probe
		open.Store(true)
		visit(7*time.Hour + 9*time.Second)  // /10
		visit(7*time.Hour + 12*time.Second) // /11, a probe
		visit(7*time.Hour + 12*time.Second) // /12
		if s := kit.HostStats(t, c.Robots, "a.test"); s.RefusalsInRow != 0 || !s.Stopped.IsZero() || !s.NextTry.IsZero() || s.Refusals != 5 || s.Denied != 6 {
			t.Errorf("the host has %+v", s)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2s /0, 4s /1, 6s /2, 1h0m7s /6, 3h0m10s /9, 7h0m12s /11, 7h0m14s /12")
		if n := c.Robots.Stats().Decisions[report.ReasonRefused]; n != 6 {
			t.Errorf("%d decisions are refused, want 6", n)
		}
	})
}

// TestRefusedRobotsTxt checks that 403 for robots.txt and sitemaps is not a refusal of a page.
func TestRefusedRobotsTxt(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.StatusForbidden, "/sitemap.xml": http.StatusForbidden, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopAfterRefusals(1), collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: true}))
		kit.Must(t, c.Visit("http://a.test/"))
		kit.Must(t, c.Visit("http://a.test/2"))
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Refusals != 0 || s.Pages != 2 {
			t.Errorf("the host has %+v", s)
		}
	})
}

// TestStopAfterRefusalsSurvives checks that a host stays stopped when the registry of hosts
// forgets it.
func TestStopAfterRefusalsSurvives(t *testing.T) {
	if kit.UnderRace {
		t.Skip("checks the URLs of very many hosts in one goroutine")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopAfterRefusals(1), collyrobots.MaxPagesPerHost(7), collyrobots.ForHosts("*.other.test", kit.IgnoreRobots()))
		c.Visit("http://a.test/")
		time.Sleep(11 * time.Minute)
		forgetIdleHosts(t, c.Robots, "a.test")
		d, err := c.Robots.Check(t.Context(), "http://a.test/2")
		if err != nil || d.Reason != report.ReasonRefused || d.Refusals != 1 {
			t.Errorf("%v, %v", d, err)
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.PagesSent != 1 || s.RefusalsInRow != 1 {
			t.Errorf("the host has %+v", s)
		}
		if s := c.Robots.Stats(); s.Totals.Refusals != 1 {
			t.Errorf("%d refusals in total", s.Totals.Refusals)
		}
	})
}

// forgetIdleHosts makes the registry forget host, by many others.
func forgetIdleHosts(t *testing.T, p *collyrobots.Plugin, host string) {
	t.Helper()
	for i := range 300_000 {
		_, err := p.Check(t.Context(), fmt.Sprintf("http://%d.other.test/", i))
		kit.Must(t, err)
		if i%5_000 == 4_999 && !isKnown(p, host) {
			return
		}
	}
	t.Fatalf("%s is still in the registry", host)
}

// isKnown reports whether the registry has a host.
func isKnown(p *collyrobots.Plugin, host string) bool {
	known := false
	p.StatsFunc(func(s report.HostStats) {
		if s.Host == host {
			known = true
		}
	})
	return known
}

// TestProbeFollowsRedirects checks that the redirect of a probe within its host is sent, and that
// its result counts.
func TestProbeFollowsRedirects(t *testing.T) { kit.ForEachClient(t, testProbeFollowsRedirects) }

func testProbeFollowsRedirects(t *testing.T, start kit.Starter) {
	site, open := refusing(kit.NoDenys)
	site["/old1"] = robotstest.Redirect("/new")
	site["/old2"] = robotstest.Redirect("/new?")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.StopAfterRefusals(1))
		c.Visit("http://a.test/0")
		time.Sleep(time.Hour)
		c.Visit("http://a.test/old1")
		if s := kit.HostStats(t, c.Robots, "a.test"); time.Until(s.NextTry) != 2*time.Hour {
			t.Errorf("the next try is in %v", time.Until(s.NextTry))
		}
		time.Sleep(2 * time.Hour)
		open.Store(true)
		c.Visit("http://a.test/old2")
		kit.Must(t, c.Visit("http://a.test/3"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /old1 /new /old2 /new? /3")
	})
}

// TestRefusalsOfProxies checks which errors of a proxy do not count as refusals of the host.
func TestRefusalsOfProxies(t *testing.T) {
	for name, test := range map[string]struct {
		url     string
		proxy   http.HandlerFunc
		refused int
	}{
		"407 for http":    {"http://a.test/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) }, 0},
		"403 for CONNECT": {"https://a.test/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, 0},
		"403 of Squid": {"http://a.test/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Squid-Error", "ERR_ACCESS_DENIED 0")
			w.WriteHeader(403)
		}, 0},
		"403 with Proxy-Status": {"http://a.test/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Proxy-Status", `proxy.test; error=http_request_denied`)
			w.WriteHeader(403)
		}, 0},
		"403 that the proxy has passed on": {"http://a.test/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Proxy-Status", `proxy.test; received-status=403`)
			w.WriteHeader(403)
		}, 3},
		"403 without a header, which could be of either": {"http://a.test/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := httptest.NewServer(test.proxy)
			defer proxy.Close()
			transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }}
			defer transport.CloseIdleConnections()
			c, robots := unruled(t, transport)
			for i := range 3 {
				c.Visit(fmt.Sprint(test.url, i))
			}
			if s := kit.HostStats(t, robots, "a.test"); s.Refusals != test.refused {
				t.Errorf("%d refusals, want %d", s.Refusals, test.refused)
			}
		})
	}
}

// unruled returns a collector on real connections that reads no robots.txt.
func unruled(t *testing.T, transport *http.Transport, opts ...collyrobots.Option) (*colly.Collector, *collyrobots.Plugin) {
	t.Helper()
	c := colly.NewCollector()
	c.WithTransport(transport)
	robots, err := collyrobots.WithRobots(c, append(opts, kit.IgnoreRobots(), collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
	kit.Must(t, err)
	t.Cleanup(func() { robots.Close() })
	return c, robots
}
