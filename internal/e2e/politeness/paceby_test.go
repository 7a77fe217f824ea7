package politeness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// shops returns n sites, shop000.test and so on, with a number of pages.
func shops(n, pages int, robots string) robotstest.Sites {
	sites := make(robotstest.Sites)
	for i := range n {
		sites[shopName(i)] = robotstest.Pages(pages+1, robots)
	}
	return sites
}

func shopName(i int) string { return fmt.Sprintf("shop%03d.test", i) }

// onOneServer is a lookup that finds all hosts at one address.
func onOneServer(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
}

// TestShopsOnOneServer crawls 500 shops on one server, each with a crawl delay of one second. The
// server gets a request per second.
func TestShopsOnOneServer(t *testing.T) {
	const n = 500
	kit.Resolve(t, onOneServer)
	kit.InBubble(t, shops(n, 1, "User-agent: *\nCrawl-delay: 1\n"), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.MinDelay(time.Second), collyrobots.PaceBy(collyrobots.ByAddress))
		for i := range n {
			c.Visit("https://" + shopName(i) + "/1")
		}
		c.Wait()
		log := web.Log("")
		if len(log) != 2*n {
			t.Errorf("%d requests, want %d", len(log), 2*n)
		}
		wantGap(t, log, time.Second)
		if took := log[len(log)-1].Elapsed - log[0].Elapsed; took != (2*n-1)*time.Second {
			t.Errorf("the crawl took %v", took)
		}
	})
}

// wantGap checks that all requests in a log, whatever their hosts, are at least delay apart.
func wantGap(t *testing.T, log robotstest.Log, delay time.Duration) {
	t.Helper()
	for i := 1; i < len(log); i++ {
		if gap := log[i].Time.Sub(log[i-1].Time); gap < delay-time.Microsecond {
			t.Errorf("%s%s after %s%s: gap %v, want at least %v", log[i].Host, log[i].URI, log[i-1].Host, log[i-1].URI, gap, delay)
		}
	}
}

// TestFrontierOfShops records the pages of many shops on one server. They wait in the urlstore.Store, and
// each shop gets its turn. Another host is not kept waiting.
func TestFrontierOfShops(t *testing.T) {
	const n = 300
	sites := shops(n, 3, "User-agent: *\nCrawl-delay: 1\n")
	sites["fast.test"] = robotstest.Pages(501, kit.NoDenys)
	kit.Resolve(t, func(ctx context.Context, name string) ([]netip.Addr, error) {
		if name == "fast.test" {
			return []netip.Addr{netip.MustParseAddr("2001:db8::1")}, nil
		}
		return onOneServer(ctx, name)
	})
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.PaceBy(collyrobots.ByAddress))
		var requested atomic.Int64
		c.OnRequest(func(*colly.Request) { requested.Add(1) })
		for page := range 3 {
			for i := range n {
				c.Visit(fmt.Sprintf("http://%s/%d", shopName(i), page+1))
			}
			synctest.Wait() // until the addresses are known, and all pages are recorded
		}
		for i := range 500 {
			c.Visit(fmt.Sprintf("http://fast.test/%d", i+1))
		}
		time.Sleep(10 * time.Second)
		if got := len(web.Log("fast.test")); got != 501 {
			t.Errorf("%d requests to the other host after ten seconds, want 501", got)
		}
		if goroutines := runtime.NumGoroutine(); goroutines > 1000 {
			t.Errorf("%d goroutines", goroutines)
		}
		shop := c.Robots.Stats().Hosts[1]
		if left := shop.TimeLeft(time.Now()); shop.SharedWith != n-1 || left < time.Duration(shop.GroupWaiting-1)*time.Second {
			t.Errorf("%v left, %d other hosts: %+v", left, shop.SharedWith, shop)
		}
		c.Wait()
		var log robotstest.Log
		for _, r := range web.Log("") {
			if r.Host != "fast.test" {
				log = append(log, r)
			}
		}
		wantGap(t, log, time.Second)
		took := log[len(log)-1].Elapsed - log[0].Elapsed
		t.Logf("%d requests in %v; OnRequest was called %d times", len(log), took, requested.Load())
		if len(log) != 4*n || took > 4*n*11/10*time.Second {
			t.Errorf("%d requests in %v, want %d in about %v", len(log), took, 4*n, 4*n*time.Second)
		}
		first := make(map[string]time.Duration) // when the last page of a shop came
		for _, r := range log {
			first[r.Host] = r.Elapsed
		}
		var early []string // shops whose last page came before other shops had two
		for host, at := range first {
			if at < 2*n*time.Second {
				early = append(early, host)
			}
		}
		if len(early) > n/20 { // the order of goroutines decides which of two shops asks first
			t.Errorf("the last pages of %d shops came before other shops had two: %v", len(early), early)
		}
	})
}

// TestGroupsUnderAttack crawls 60 shops on one server with random delays, links and redirects
// between them, sitemaps, and responses with 429. All requests that the server gets are at least
// the shortest delay apart, and those after the first robots.txt files the longest.
func TestGroupsUnderAttack(t *testing.T) {
	seeds := uint64(4)
	if kit.UnderRace {
		seeds = 1
	}
	for seed := range seeds {
		for name, options := range map[string][]collyrobots.Option{
			"plain":                nil,
			"MaxInFlightPerHost 1": {collyrobots.MaxInFlightPerHost(1)},
			"MaxInFlightPerHost 3": {collyrobots.MaxInFlightPerHost(3), collyrobots.RetryThrottled(2)},
			"from the end":         {collyrobots.DelayFromEnd(true)},
			"sitemaps":             {collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny, Window: 4})},
			"retries":              {collyrobots.RetryThrottled(2)},
			"adaptive":             {collyrobots.AdaptiveDelay(2)},
			"shared":               {}, // the Pacer is made in the bubble
		} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) { attackGroup(t, rand.New(rand.NewPCG(seed, 5)), name, options) })
		}
	}
}

// attackGroup crawls shops in a bubble.
func attackGroup(t *testing.T, random *rand.Rand, name string, options []collyrobots.Option) {
	const n = 60
	least := 100 * time.Millisecond
	sites := make(robotstest.Sites)
	link := func() string { return fmt.Sprintf("http://%s/%d", shopName(random.IntN(n)), random.IntN(3)) }
	for i := range n {
		site := robotstest.Site{"/robots.txt": fmt.Sprintf("User-agent: *\nCrawl-delay: %d.%d\nSitemap: http://%s/map.xml\n", random.IntN(3), 1+random.IntN(9), shopName(i))}
		for page := range 3 {
			switch random.IntN(5) {
			case 0:
				site[fmt.Sprintf("/%d", page)] = robotstest.Redirect(link())
			case 1:
				site[fmt.Sprintf("/%d", page)] = sometimesBusy(random.IntN(3))
			default:
				site[fmt.Sprintf("/%d", page)] = robotstest.Page(link(), link())
			}
		}
		site["/map.xml"] = robotstest.Sitemap(link(), link())
		if random.IntN(5) == 0 {
			site["/robots.txt"] = robotstest.Redirect(fmt.Sprintf("http://%s/robots.txt", shopName(random.IntN(n))))
		}
		sites[shopName(i)] = site
	}
	kit.Resolve(t, onOneServer)
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		if name == "shared" {
			options = append(options, collyrobots.SharedPace(kit.Shared(t)))
		}
		c := kit.Start(t, web, kit.Async, append(options, collyrobots.MinDelay(least), collyrobots.PaceBy(collyrobots.ByAddress), collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
		c.Impolite = true // it follows redirects of robots.txt to other sites, whose answers differ
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		for i := range n {
			c.Visit("http://" + shopName(i) + "/0")
		}
		c.Wait()
		log := web.Log("")
		wantGap(t, log, least)
		stats := c.Robots.Stats()
		if len(log) < 2*n || stats.Totals.Requests != len(log) || stats.Totals.Waiting != 0 {
			t.Errorf("%d requests, %d counted, %d waiting", len(log), stats.Totals.Requests, stats.Totals.Waiting)
		}
		if stats.GapOverDelay < 1 {
			t.Errorf("smallest gap %v of the delay", stats.GapOverDelay)
		}
		longest := stats.Hosts[0].CrawlDelay
		wantGap(t, log[len(log)-n/2:], longest)
	})
}

// sometimesBusy returns a handler that answers the first n requests with 429.
func sometimesBusy(n int) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= int64(n) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, robotstest.Page())
	}
}

// TestSlowLookup checks that a lookup ends after five seconds, and the host is paced alone.
func TestSlowLookup(t *testing.T) {
	kit.Resolve(t, func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	kit.InBubble(t, shops(1, 1, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.PaceBy(collyrobots.ByAddress))
		c.Visit("http://" + shopName(0) + "/1")
		c.Wait()
		kit.WantSchedule(t, web, shopName(0), "5s /robots.txt, 5s /1")
	})
}
