package operators

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
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

// TestStopRefused checks when a host that refuses everything gets requests, and that a probe that
// succeeds ends the stop.
func TestStopRefused(t *testing.T) { kit.ForEachClient(t, testStopRefused) }

func testStopRefused(t *testing.T, start kit.Starter) {
	site, open := refusing("User-agent: *\nCrawl-delay: 2\n")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := start(t, web, nil, collyrobots.StopRefused(3))
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

// TestStopRefusedEndsWaits checks that the pages that wait for a host are denied when it is
// stopped, and that of those that wait for the next try one is sent.
func TestStopRefusedEndsWaits(t *testing.T) { kit.ForEachClient(t, testStopRefusedEndsWaits) }

func testStopRefusedEndsWaits(t *testing.T, start kit.Starter) {
	site, _ := refusing("User-agent: *\nCrawl-delay: 30\n")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := start(t, web, kit.Async, collyrobots.StopRefused(2))
		visit := func() {
			for i := range 50 {
				c.Visit(fmt.Sprintf("http://a.test/%d?%d", i, time.Now().Unix()))
			}
			c.Wait()
		}
		visit()
		if took := time.Since(began); took != time.Minute || len(c.Denied) != 48 {
			t.Errorf("%d pages are denied after %v, want 48 after a minute", len(c.Denied), took)
		}
		time.Sleep(2 * time.Hour)
		visit()
		log := web.Log("a.test")
		if len(log) != 4 || len(c.Denied) != 97 {
			t.Errorf("%d pages are denied, want 97. The requests are\n%v", len(c.Denied), log)
		}
		if waiting := kit.HostStats(t, c.Robots, "a.test").Waiting; waiting != 0 {
			t.Errorf("%d pages wait", waiting)
		}
	})
}

// TestRefusals checks which responses count as refusals and which start the count again.
func TestRefusals(t *testing.T) { kit.ForEachClient(t, testRefusals) }

func testRefusals(t *testing.T, start kit.Starter) {
	const refused, accepted, neither = "refused", "accepted", "neither"
	for _, test := range []struct {
		status int
		header string
		want   string
	}{
		{401, "", refused},
		{403, "", refused},
		{451, "", refused},
		{403, "Cf-Mitigated: challenge", refused},
		{200, "Cf-Mitigated: challenge", refused},
		{503, "Cf-Mitigated: Challenge", refused},
		{429, "Cf-Mitigated: challenge", refused},
		{202, "X-Amzn-Waf-Action: challenge", refused},
		{405, "X-Amzn-Waf-Action: captcha", refused},
		{200, "Cf-Mitigated: other", accepted},
		{200, "", accepted},
		{204, "", accepted},
		{304, "", accepted},
		{404, "", accepted},
		{410, "", accepted},
		{302, "", neither},
		{400, "", neither},
		{407, "", neither},
		{429, "", neither},
		{500, "", neither},
		{503, "", neither},
	} {
		t.Run(fmt.Sprint(test.status, " ", test.header), func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": kit.NoDenys,
				"/refused":    http.StatusForbidden,
				"/page": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if name, value, ok := strings.Cut(test.header, ": "); ok {
						w.Header().Set(name, value)
					}
					w.WriteHeader(test.status)
				}),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.StopRefused(5), collyrobots.MaxBackOff(0))
				c.Visit("http://a.test/refused")
				c.Visit("http://a.test/page")
				s := kit.HostStats(t, c.Robots, "a.test")
				got := map[string]string{"1 1": neither, "2 2": refused, "1 0": accepted}[fmt.Sprint(s.Refusals, " ", s.RefusalsInRow)]
				if got != test.want {
					t.Errorf("%d refusals, %d in a row, want %s", s.Refusals, s.RefusalsInRow, test.want)
				}
			})
		})
	}
}

// TestRefusalsAreNoBackOff checks that refusals do not change the pace, that 429 does, and that a
// challenge with status 429 is not retried by RetryThrottled.
func TestRefusalsAreNoBackOff(t *testing.T) {
	challenge := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cf-Mitigated", "challenge")
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden},
		"b.test": {"/robots.txt": kit.NoDenys, "*": challenge},
	}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := kit.Start(t, web, nil, collyrobots.RetryThrottled(3))
		for i := range 30 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		if took := time.Since(began); took != 0 || len(web.Log("a.test")) != 31 {
			t.Errorf("%d requests in %v, want 31 at once", len(web.Log("a.test")), took)
		}
		c.Visit("http://b.test/")
		if s := kit.HostStats(t, c.Robots, "b.test"); len(web.Log("b.test")) != 2 || s.Refusals != 1 || s.Throttled != 1 || s.NotBefore.Sub(began) != 100*time.Second {
			t.Errorf("the host has %+v", s)
		}
	})
}

// TestRefusalsWithoutOption checks that without StopRefused no host is stopped, and that ten
// refusals in a row are reported once.
func TestRefusalsWithoutOption(t *testing.T) { kit.ForEachClient(t, testRefusalsWithoutOption) }

func testRefusalsWithoutOption(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden}}, func(t *testing.T, web *robotstest.Web) {
		var events []collyrobots.Event
		c := start(t, web, nil, collyrobots.OnEvent(func(e collyrobots.Event) {
			if e.Kind == report.EventRefused {
				events = append(events, e)
			}
		}))
		for i := range 40 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Robots.Close()
		if len(web.Log("a.test")) != 41 || len(c.Denied) != 0 {
			t.Errorf("%d requests, %d denied", len(web.Log("a.test")), len(c.Denied))
		}
		if len(events) != 1 || events[0].Count != 10 || events[0].Status != 403 || events[0].URL != "http://a.test/9" || events[0].Host != "a.test" || !events[0].Until.IsZero() {
			t.Errorf("the events are %+v", events)
		}
		if log := c.Logged.String(); strings.Count(log, "host refuses requests") != 1 || !strings.Contains(log, "count=10 option=StopRefused") {
			t.Errorf("the log is\n%s", log)
		}
	})
}

// TestStopRefusedIsReported checks the events and the log of a host that is stopped.
func TestStopRefusedIsReported(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusUnauthorized}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		var events []string
		c := kit.Start(t, web, nil, collyrobots.StopRefused(2), collyrobots.OnEvent(func(e collyrobots.Event) {
			if e.Kind == report.EventRefused {
				events = append(events, fmt.Sprint(e.Time.Sub(began), " ", e.Status, " ", e.Count, " ", e.Until.Sub(began)))
			}
		}))
		for i := range 13 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			if i >= 5 {
				time.Sleep(time.Hour)
			}
		}
		c.Robots.Close()
		want := "[0s 401 2 1h0m0s 1h0m0s 401 3 3h0m0s 3h0m0s 401 4 7h0m0s 7h0m0s 401 5 15h0m0s]"
		if fmt.Sprint(events) != want {
			t.Errorf("the events are %v, want %v", events, want)
		}
		if n := strings.Count(c.Logged.String(), "host refuses requests, its pages are not sent"); n != 4 {
			t.Errorf("%d warnings:\n%s", n, c.Logged)
		}
	})
}

// TestProtectedPages checks that single pages that are refused between others do not stop a host.
func TestProtectedPages(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/private": http.StatusForbidden, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()}, collyrobots.StopRefused(3))
		for range 20 {
			c.Visit("http://a.test/private")
			c.Visit("http://a.test/private")
			c.Visit("http://a.test/")
		}
		if len(web.Log("a.test")) != 61 || len(c.Denied) != 0 {
			t.Errorf("%d requests, %d denied", len(web.Log("a.test")), len(c.Denied))
		}
	})
}

// TestRefusedRobotsTxt checks that 403 for robots.txt and sitemaps is not a refusal of a page.
func TestRefusedRobotsTxt(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.StatusForbidden, "/sitemap.xml": http.StatusForbidden, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(1), collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: true}))
		kit.Must(t, c.Visit("http://a.test/"))
		kit.Must(t, c.Visit("http://a.test/2"))
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Refusals != 0 || s.Pages != 2 {
			t.Errorf("the host has %+v", s)
		}
	})
}

// TestRetriesOfRefusedPages checks that a program that retries every refused page sends no more
// requests than StopRefused allows, and ends.
func TestRetriesOfRefusedPages(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden}}, func(t *testing.T, web *robotstest.Web) {
				began := time.Now()
				c := kit.Start(t, web, options, collyrobots.StopRefused(4))
				c.OnError(func(r *colly.Response, _ error) { r.Request.Retry() })
				for i := range 3 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				if n := len(web.Log("a.test")); n < 5 || n > 7 || time.Since(began) > time.Minute { // up to three pages are under way at once
					t.Errorf("%d requests in %v", n, time.Since(began))
				}
			})
		})
	}
}

// TestStopRefusedWithFrontier checks that the pages of a stopped host are postponed, and that the
// next run fetches them.
func TestStopRefusedWithFrontier(t *testing.T) {
	site, open := refusing("User-agent: *\nCrawl-delay: 1\n")
	kit.InBubble(t, robotstest.Sites{"a.test": site, "b.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		run := func() *kit.Crawl {
			c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.StopRefused(2))
			for i := range 6 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
			c.Wait()
			return c
		}
		c := run()
		if states := store.States(); len(states[kit.IsDone]) != 2 || len(states[kit.Postponed]) != 4 {
			t.Errorf("the pages are %v", states)
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Ended != report.EndingRefused {
			t.Errorf("the host ended: %q", s.Ended)
		}
		kit.Must(t, c.Robots.Close())
		time.Sleep(time.Minute)
		store = store.Reopen()
		open.Store(true)
		run()
		kit.WantStates(t, store, "done: /0 /1 /2 /3 /4 /5")
	})
}

// TestStopRefusedSurvives checks that a host stays stopped when the registry of hosts forgets it.
func TestStopRefusedSurvives(t *testing.T) {
	if kit.UnderRace {
		t.Skip("checks the URLs of very many hosts in one goroutine")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(1), collyrobots.MaxPages(7), collyrobots.ForHosts("*.other.test", collyrobots.IgnoreRobotsWithPermission()))
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

// TestCheckTakesNoProbe checks that Check shows the reason and leaves the probe to a page.
func TestCheckTakesNoProbe(t *testing.T) {
	site, open := refusing(kit.NoDenys)
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(1))
		c.Visit("http://a.test/")
		d, err := c.Robots.Check(t.Context(), "http://a.test/x")
		if err != nil || d.Allowed || d.Reason != report.ReasonRefused || time.Until(d.NextTry) != time.Hour {
			t.Errorf("%v, %v", d, err)
		}
		time.Sleep(time.Hour)
		for range 3 {
			d, err := c.Robots.Check(t.Context(), "http://a.test/x")
			if err != nil || !d.Allowed {
				t.Errorf("%v, %v", d, err)
			}
		}
		open.Store(true)
		kit.Must(t, c.Visit("http://a.test/probe"))
		kit.Must(t, c.Visit("http://a.test/next"))
	})
}

// TestStopRefusedByTurns checks refusals of requests that the program sends itself.
func TestStopRefusedByTurns(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(2))
		send := func(status int, header http.Header) error {
			req, _ := http.NewRequest("GET", "http://a.test/", nil)
			turn, err := c.Robots.Acquire(t.Context(), req)
			if err == nil && status != 0 {
				turn.Answered(status, header)
			}
			turn.End()
			return err
		}
		kit.Must(t, send(403, nil))
		kit.Must(t, send(200, http.Header{"Cf-Mitigated": {"challenge"}}))
		var denied *collyrobots.DisallowedError
		if err := send(200, nil); !errors.As(err, &denied) || denied.Decision.Reason != report.ReasonRefused {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(time.Hour)
		kit.Must(t, send(0, nil)) // the response is never reported
		if err := send(200, nil); err == nil {
			t.Error("a second probe was sent")
		}
		time.Sleep(time.Hour)
		kit.Must(t, send(200, nil))
		kit.Must(t, send(200, nil))
	})
}

// TestProbeThatIsNotSent checks that another page takes the place of a probe that was not sent, and
// that one of many is sent.
func TestProbeThatIsNotSent(t *testing.T) {
	site, _ := refusing(kit.NoDenys)
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.StopRefused(1))
		var broken atomic.Bool
		dial := c.Transport.DialContext
		c.Transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if broken.Load() {
				return nil, errors.New("no route")
			}
			return dial(ctx, network, addr)
		}
		c.Transport.DisableKeepAlives = true
		c.Visit("http://a.test/0")
		c.Wait()
		time.Sleep(time.Hour)
		broken.Store(true)
		c.Visit("http://a.test/1")
		c.Wait()
		broken.Store(false)
		for i := range 20 {
			c.Visit(fmt.Sprint("http://a.test/2?", i))
		}
		c.Wait()
		if log := web.Log("a.test"); len(log) != 3 || len(c.Denied) != 19 {
			t.Errorf("%d denied, requests:\n%v", len(c.Denied), log)
		}
	})
}

// TestProbeFollowsRedirects checks that the redirect of a probe within its host is sent, and that
// its result counts.
func TestProbeFollowsRedirects(t *testing.T) { kit.ForEachClient(t, testProbeFollowsRedirects) }

func testProbeFollowsRedirects(t *testing.T, start kit.Starter) {
	site, open := refusing(kit.NoDenys)
	site["/old1"] = robotstest.Redirect("/new")
	site["/old2"] = robotstest.Redirect("/new?")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.StopRefused(1))
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

// TestStopRefusedInDryRun checks that a dry run reports what would be denied, and sends it.
func TestStopRefusedInDryRun(t *testing.T) {
	site, open := refusing(kit.NoDenys)
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(2), collyrobots.DryRun())
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		open.Store(true) // those that would not be sent do not end the stop
		c.Visit("http://a.test/5")
		c.Visit("http://a.test/6")
		if len(web.Log("a.test")) != 8 || len(c.Denied) != 5 {
			t.Errorf("%d requests, denied: %v", len(web.Log("a.test")), c.Denied)
		}
		kit.WantDenied(t, c, "http://a.test/6", report.ReasonRefused, 0)
		time.Sleep(time.Hour)
		c.Visit("http://a.test/7")
		c.Visit("http://a.test/8")
		if s := kit.HostStats(t, c.Robots, "a.test"); len(c.Denied) != 5 || !s.Stopped.IsZero() || s.Ended != report.EndingDone {
			t.Errorf("denied: %v, %+v", c.Denied, s)
		}
	})
}

// TestStopRefusedForHosts checks that the option may differ between hosts.
func TestStopRefusedForHosts(t *testing.T) {
	refuses := robotstest.Site{"/robots.txt": kit.NoDenys, "*": http.StatusForbidden}
	kit.InBubble(t, robotstest.Sites{"a.test": refuses, "b.test": refuses, "c.test": refuses}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.StopRefused(2), collyrobots.ForHosts("b.test", collyrobots.StopRefused(4)), collyrobots.ForHosts("c.test", collyrobots.StopRefused(0)))
		for i := range 20 {
			for _, host := range []string{"a", "b", "c"} {
				c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
			}
		}
		for host, want := range map[string]int{"a.test": 3, "b.test": 5, "c.test": 21} {
			if n := len(web.Log(host)); n != want {
				t.Errorf("%s: %d requests, want %d", host, n, want)
			}
		}
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
	robots, err := collyrobots.WithRobots(c, append(opts, collyrobots.IgnoreRobotsWithPermission(), collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
	kit.Must(t, err)
	t.Cleanup(func() { robots.Close() })
	return c, robots
}

// TestResetConnections checks which lost connections count as refusals, on real connections.
func TestResetConnections(t *testing.T) {
	for name, test := range map[string]struct {
		handle  func(conn *net.TCPConn, rw *bufio.ReadWriter)
		refused int
	}{
		"reset":                     {func(conn *net.TCPConn, _ *bufio.ReadWriter) { conn.SetLinger(0) }, 2},
		"closed without a response": {func(*net.TCPConn, *bufio.ReadWriter) {}, 0},
		"reset in the body": {func(conn *net.TCPConn, rw *bufio.ReadWriter) {
			fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			rw.Flush()
			conn.SetLinger(0)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var served atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				served.Add(1)
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				test.handle(conn.(*net.TCPConn), rw)
				conn.Close()
			}))
			defer server.Close()
			transport := &http.Transport{DisableKeepAlives: true}
			c, robots := unruled(t, transport, collyrobots.StopRefused(2))
			for i := range 4 {
				c.Visit(fmt.Sprint(server.URL, "/", i))
			}
			want := 4 - test.refused
			if s := robots.Stats().Totals; s.Refusals != test.refused || int(served.Load()) != want {
				t.Errorf("%d refusals, %d requests, want %d and %d", s.Refusals, served.Load(), test.refused, want)
			}
		})
	}
}

// TestResetLater checks that a connection that is reset long after the request is no refusal.
func TestResetLater(t *testing.T) {
	for wait, want := range map[time.Duration]int{0: 1, 9 * time.Second: 1, 11 * time.Second: 0} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys}}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil)
			c.SetRequestTimeout(time.Minute)
			c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/robots.txt" {
					return c.Transport.RoundTrip(r)
				}
				time.Sleep(wait)
				return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
			}))
			c.Visit("http://a.test/")
			if s := kit.HostStats(t, c.Robots, "a.test"); s.Refusals != want {
				t.Errorf("%d refusals after %v, want %d", s.Refusals, wait, want)
			}
		})
	}
}
