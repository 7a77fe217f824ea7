package collyrobots_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// shops returns n sites, shop000.test and so on, with a number of pages.
func shops(n, pages int, robots string) robotstest.Sites {
	sites := make(robotstest.Sites)
	for i := range n {
		sites[shopName(i)] = robotstest.Pages(pages, robots)
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
	inBubble(t, shops(n, 1, "User-agent: *\nCrawl-delay: 1\n"), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, async, collyrobots.MinDelay(time.Second), collyrobots.PaceBy(collyrobots.ByAddress))
		c.robots.SetLookup(onOneServer)
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

// TestFrontierOfShops records the pages of many shops on one server. They wait in the URLStore, and
// each shop gets its turn. Another host is not kept waiting.
func TestFrontierOfShops(t *testing.T) {
	const n = 300
	sites := shops(n, 3, "User-agent: *\nCrawl-delay: 1\n")
	sites["fast.test"] = robotstest.Pages(500, noDenys)
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		store := newMemoryStore()
		c := start(t, web, async, collyrobots.Frontier(store), collyrobots.PaceBy(collyrobots.ByAddress))
		c.robots.SetLookup(func(ctx context.Context, name string) ([]netip.Addr, error) {
			if name == "fast.test" {
				return []netip.Addr{netip.MustParseAddr("2001:db8::1")}, nil
			}
			return onOneServer(ctx, name)
		})
		requested := 0
		c.OnRequest(func(*colly.Request) { requested++ })
		for page := range 3 {
			for i := range n {
				c.Visit(fmt.Sprintf("http://%s/%d", shopName(i), page+1))
			}
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
		shop := c.robots.Stats().Hosts[1]
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
		t.Logf("%d requests in %v; OnRequest was called %d times", len(log), took, requested)
		if len(log) != 4*n || took > 4*n*11/10*time.Second {
			t.Errorf("%d requests in %v, want %d in about %v", len(log), took, 4*n, 4*n*time.Second)
		}
		first := make(map[string]time.Duration) // when the last page of a shop came
		for _, r := range log {
			first[r.Host] = r.Elapsed
		}
		for host, at := range first {
			if at < 2*n*time.Second {
				t.Errorf("the last page of %s came after %v, before other shops had two", host, at)
			}
		}
	})
}

// TestTimeLeftOfShops lets two pages of each of 500 shops wait. All of them need 1,000 seconds.
func TestTimeLeftOfShops(t *testing.T) {
	const n = 500
	inBubble(t, shops(n, 2, noDenys), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, async, collyrobots.MinDelay(time.Second), collyrobots.IgnoreRobotsWithPermission(), collyrobots.PaceBy(collyrobots.ByAddress))
		c.robots.SetLookup(onOneServer)
		for i := range n {
			c.Visit("http://" + shopName(i) + "/1")
			c.Visit("http://" + shopName(i) + "/2")
		}
		synctest.Wait()
		for _, host := range c.robots.Stats().Hosts {
			left := host.TimeLeft(time.Now())
			if left != (2*n-1)*time.Second && left != 0 || left == 0 && host.Waiting > 0 || host.Group != "192.0.2.7" || host.SharedWith != n-1 {
				t.Errorf("%v left: %+v", left, host)
			}
		}
		c.Wait()
		wantGap(t, web.Log(""), time.Second)
		stats := c.robots.Stats()
		if stats.Totals.Requests != 2*n || stats.GapOverDelay != 1 {
			t.Errorf("%d requests, smallest gap %v of the delay", stats.Totals.Requests, stats.GapOverDelay)
		}
		for _, host := range stats.Hosts {
			if host.Requests != 2 || host.Pages != 2 || host.Waiting != 0 {
				t.Errorf("%+v", host)
			}
		}
	})
}
