package politeness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// randomHost returns a site with links and redirects to other hosts, pages that fail, and
// connections that break.
func randomHost(rng *rand.Rand, delay time.Duration) robotstest.Site {
	anywhere := func() string {
		return fmt.Sprintf("%s://h%d.test/%d", []string{"http", "https"}[rng.IntN(2)], rng.IntN(4), rng.IntN(12))
	}
	s := robotstest.Site{"/robots.txt": fmt.Sprintf("User-agent: *\nDisallow: /1\nCrawl-delay: %g\n", delay.Seconds())} // 1, 10 and 11
	for i := range 12 {
		var answer any
		switch rng.IntN(8) {
		case 0, 1:
			answer = robotstest.Redirect(anywhere())
		case 2:
			answer = kit.DropFirst(robotstest.Page(anywhere()))
		case 3:
			answer = 500
		default:
			answer = robotstest.Page(anywhere(), anywhere(), anywhere())
		}
		s[fmt.Sprint("/", i)] = answer
	}
	return s
}

// TestRandomCrawls checks that crawls with random sites and settings request nothing that is
// disallowed, keep the delay of each host, end, and report the end of each request.
func TestRandomCrawls(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			delays, sites := map[string]time.Duration{}, robotstest.Sites{"proxy.test:3128": nil}
			for i := range 4 {
				host := fmt.Sprintf("h%d.test", i)
				delays[host] = time.Duration(rng.IntN(4)) * 700 * time.Millisecond
				sites[host] = randomHost(rng, delays[host])
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) { randomCrawl(t, web, rng, delays) })
		})
	}
}

// randomCrawl crawls all hosts with random settings and checks the log of the server.
func randomCrawl(t *testing.T, web *robotstest.Web, rng *rand.Rand, delays map[string]time.Duration) {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	c.Async, c.CheckHead = rng.IntN(3) > 0, rng.IntN(4) == 0
	c.WithTransport(web.Transport())
	if rng.IntN(4) == 0 {
		kit.Must(t, c.SetProxy("http://proxy.test:3128"))
	}
	if n := rng.IntN(4); n > 0 {
		kit.Must(t, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: n, Delay: time.Duration(rng.IntN(2)) * 500 * time.Millisecond}))
	}
	open := requests{open: map[uint32]string{}}
	c.OnRequest(func(r *colly.Request) { open.begin(r) })
	_, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)),
		collyrobots.OnDenied(func(r *colly.Request, _ error) { open.end(r) }))
	kit.Must(t, err)
	c.OnRequest(func(r *colly.Request) {
		if r.URL.Path == "/2" {
			r.Abort()
			open.end(r)
		}
	})
	c.OnRequestHeaders(func(r *colly.Request) {
		if r.URL.Path == "/3" {
			r.Abort()
		}
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.OnError(func(r *colly.Response, _ error) { open.end(r.Request) })
	c.OnScraped(func(r *colly.Response) { open.end(r.Request) })
	for host := range delays {
		for i := range 6 {
			c.Visit(fmt.Sprintf("http://%s/%d", host, i))
		}
	}
	c.Wait()
	for id, what := range open.open {
		t.Errorf("no callback was called at the end of request %d, %s", id, what)
	}
	for host, delay := range delays {
		log := web.Log(host)
		for i, r := range log {
			// The robots.txt for http does not delay the one for https, or the other way round.
			first := i == 0 || i == 1 && r.URI == "/robots.txt"
			if !first && r.Time.Sub(log[i-1].Time) < delay-time.Microsecond {
				t.Errorf("%s got the request for %s before the delay of %v:\n%s", host, r.URI, delay, log)
			}
			if strings.HasPrefix(r.URI, "/1") {
				t.Errorf("%s got the disallowed request %s", host, r.URI)
			}
		}
		if n := strings.Count(kit.URIsOf(log), "/robots.txt"); n > 2 {
			t.Errorf("%s got %d requests for robots.txt, want one for http and one for https", host, n)
		}
	}
	robotstest.Verify(t, web, dialect.RFC9309())
}

// TestRandomSettingsCountRequests checks that the server's log, Stats and the events have the same
// requests under any settings, that nothing waits at the end, and that all leases of a Pacer are
// released.
func TestRandomSettingsCountRequests(t *testing.T) {
	for seed := range 40 {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			sites := robotstest.Sites{}
			for i := range 4 {
				sites[fmt.Sprintf("h%d.test", i)] = busySite(i, (seed+i)%3, seed%2 == 0)
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) { countingCrawl(t, web, seed) })
		})
	}
}

// busySite returns a site with a crawl delay in seconds. It has a redirect to the next site, a
// connection that breaks, and a page that answers 429, with a Retry-After if wait is set.
func busySite(i, delay int, wait bool) robotstest.Site {
	s := robotstest.Pages(8, fmt.Sprintf("User-agent: *\nDisallow: /3\nCrawl-delay: %d\nSitemap: http://h%d.test/map.xml\n", delay, i))
	next := (i + 1) % 4
	s["/1"], s["/2"] = robotstest.Redirect(fmt.Sprintf("https://h%d.test/4", next)), kit.DropFirst(robotstest.Page())
	s["/5"] = func(w http.ResponseWriter, _ *http.Request) {
		if wait {
			w.Header().Set("Retry-After", "3")
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}
	s["/map.xml"] = robotstest.Sitemap(fmt.Sprintf("http://h%d.test/6", i), fmt.Sprintf("http://h%d.test/1", i), fmt.Sprintf("http://h%d.test/7", next))
	return s
}

// countingSettings returns the settings for a seed.
func countingSettings(t *testing.T, seed int) (options []colly.CollectorOption, opts []collyrobots.Option) {
	options = []colly.CollectorOption{colly.AllowURLRevisit()}
	opts = []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}), collyrobots.RetryThrottled(seed % 3)}
	for _, o := range []struct {
		in, is int
		opt    func() collyrobots.Option
	}{
		{4, 1, func() collyrobots.Option { return collyrobots.SharedPace(kit.Shared(t)) }},
		{5, 2, func() collyrobots.Option { return collyrobots.DryRun(true) }},
		{7, 3, func() collyrobots.Option {
			return collyrobots.ForHosts("*", collyrobots.MinDelay(time.Second), collyrobots.DelayFromEnd(true))
		}},
		{7, 4, func() collyrobots.Option { return collyrobots.MaxInFlightPerHost(2) }},
		{6, 5, func() collyrobots.Option { return collyrobots.ShardByHost(2, 0) }},
	} {
		if seed%o.in == o.is {
			opts = append(opts, o.opt())
		}
	}
	if seed%3 != 0 {
		options = append(options, colly.Async())
	}
	if seed%8 == 6 {
		options = append(options, colly.CacheDir(t.TempDir()))
	}
	return options, opts
}

func countingCrawl(t *testing.T, web *robotstest.Web, seed int) {
	started, answered := kit.Hear(report.EventStarted), kit.Hear(report.EventAnswered)
	options, opts := countingSettings(t, seed)
	c := kit.Start(t, web, options, append(opts, started.On())...)
	defer c.Robots.Listen(answered.Hear)()
	c.Impolite, c.CheckHead = seed%5 == 2, seed%9 == 7
	if seed%4 == 3 {
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 2, Delay: 300 * time.Millisecond})
	}
	var retries atomic.Int32
	c.OnError(func(r *colly.Response, _ error) {
		if retries.Add(1) < 30 {
			r.Request.Retry()
		}
	})
	c.OnRequestHeaders(func(r *colly.Request) {
		switch retries.Load() % 5 {
		case 3:
			r.Abort()
		case 4:
			time.Sleep(1500 * time.Millisecond)
		}
	})
	c.OnRequest(func(r *colly.Request) {
		if r.URL.Path == "/0" && seed%2 == 0 {
			r.Abort()
		}
	})
	for i := range 32 {
		c.Visit(fmt.Sprintf("http://h%d.test/%d", i/8, i%8))
	}
	c.Wait()
	time.Sleep(time.Hour) // the turn of a page that a callback has aborted expires
	n, s := len(web.Log("")), c.Robots.Stats().Totals
	told, unsent := len(started.Wait()), 0
	for _, e := range answered.Wait() {
		if e.Took == 0 && e.Status == 0 && errors.Is(e.Err, context.Canceled) {
			unsent++ // possibly canceled at the instant at which it could start
		}
	}
	if told != s.Requests || len(answered.Wait()) != s.Requests || n > s.Requests || n < s.Requests-unsent || s.Waiting != 0 {
		t.Errorf("%d requests in the log, %d in Stats, %d of them canceled at once; events: %d started, %d answered; %d waiting",
			n, s.Requests, unsent, told, len(answered.Wait()), s.Waiting)
	}
}

// requests are the requests that have begun and not ended.
type requests struct {
	mu   sync.Mutex
	open map[uint32]string
}

func (r *requests) begin(req *colly.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[req.ID] = req.Method + " " + req.URL.String()
}

func (r *requests) end(req *colly.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, req.ID)
}
