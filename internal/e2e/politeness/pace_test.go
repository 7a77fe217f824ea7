package politeness

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestGapsKeepCrawlDelay checks the gaps between requests in each mode of a collector, at exact
// instants.
func TestGapsKeepCrawlDelay(t *testing.T) { kit.ForEachClient(t, testGapsKeepCrawlDelay) }

func testGapsKeepCrawlDelay(t *testing.T, start kit.Starter) {
	modes := map[string]struct {
		options []colly.CollectorOption
		limit   *colly.LimitRule
	}{
		"sync":                   {},
		"async":                  {options: kit.Async},
		"async, parallelism 1":   {kit.Async, &colly.LimitRule{DomainGlob: "*", Parallelism: 1}},
		"async, parallelism 2":   {kit.Async, &colly.LimitRule{DomainGlob: "*", Parallelism: 2}},
		"async, LimitRule.Delay": {kit.Async, &colly.LimitRule{DomainGlob: "*", Delay: 10 * time.Millisecond}},
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"slow.test": kit.SlowSite(), "fast.test": robotstest.Pages(20, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, mode.options)
				kit.Limited(t, c, mode.limit)
				keepsTheDelay(t, web, c, 200*time.Millisecond)
				kit.WantNoSooner(t, web, "slow.test", 200*time.Millisecond, 9)
			})
		})
	}
}

// TestGapsKeepCrawlDelayOnLoopback does the same on real connections with the real clock. On a busy
// machine the server may log a request late and the next one at once. Therefore the test measures
// from the time at which the transport got a request to the time at which the next one arrived.
func TestGapsKeepCrawlDelayOnLoopback(t *testing.T) {
	kit.ForEachClient(t, testGapsKeepCrawlDelayOnLoopback)
}

func testGapsKeepCrawlDelayOnLoopback(t *testing.T, start kit.Starter) {
	const delay = 500 * time.Millisecond
	slow := kit.SlowSite()
	slow["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.5\n"
	web := robotstest.New(t, robotstest.Sites{"slow.test": slow, "fast.test": robotstest.Pages(20, kit.NoDenys)})
	c := start(t, web, kit.Async)
	c.Impolite = true // Verify would use the log alone
	kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 2})
	var uris []string   // in the order of the transport
	var had []time.Time // when the transport got them
	c.Transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "slow.test" {
			c.Note(func() { uris, had = append(uris, r.URL.Path), append(had, time.Now()) })
		}
		return nil, nil
	}
	keepsTheDelay(t, web, c, delay)
	came := map[string]time.Time{}
	for _, r := range web.Log("slow.test") {
		came[r.URI] = r.Time
	}
	if len(came) != 9 || len(uris) != 9 {
		t.Fatalf("%d requests sent, %d logged, want 9", len(uris), len(came))
	}
	for i, before := range had[:8] {
		if gap := came[uris[i+1]].Sub(before); gap < delay {
			t.Errorf("%s arrived %v after %s was sent, want %v", uris[i+1], gap, uris[i], delay)
		}
	}
}

// keepsTheDelay crawls both hosts and checks the delay in Stats.
func keepsTheDelay(t *testing.T, web *robotstest.Web, c *kit.Crawl, delay time.Duration) {
	t.Helper()
	c.Follow()
	c.Visit("http://slow.test/")
	c.Visit("http://fast.test/")
	c.Wait()
	if got := len(web.Log("fast.test")); got != 22 {
		t.Errorf("fast.test got %d requests, want 22", got)
	}
	if s := c.Robots.Stats().Hosts; len(s) != 2 || s[1].Host != "slow.test" || s[1].Requests != 9 || s[1].Pages != 7 ||
		s[1].MinGap < delay*99/100 || s[1].CrawlDelay != delay || s[1].Delay != delay {
		t.Errorf("got stats %+v", s)
	}
}

// TestFastHostDoesNotWait checks that the pages of a fast host are requested as soon as they are
// found, while other hosts wait.
func TestFastHostDoesNotWait(t *testing.T) { kit.ForEachClient(t, testFastHostDoesNotWait) }

func testFastHostDoesNotWait(t *testing.T, start kit.Starter) {
	for _, parallelism := range []int{1, 2, 50} {
		t.Run(fmt.Sprint("parallelism ", parallelism), func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"hour.test":   robotstest.Pages(20, "User-agent: *\nCrawl-delay: 3600"),
				"silent.test": {"/robots.txt": kit.Hang},
				"fast.test":   robotstest.Pages(100, kit.NoDenys),
			}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, kit.Async).Follow()
				kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: parallelism})
				for i := range 20 {
					c.Visit(fmt.Sprint("http://hour.test/", i))
					c.Visit(fmt.Sprint("http://silent.test/", i))
				}
				time.Sleep(time.Second)
				c.Visit("http://fast.test/")
				c.Wait()
				fast := web.Log("fast.test")
				if last := fast[len(fast)-1].Elapsed; len(fast) != 102 || last != time.Second {
					t.Errorf("fast.test got %d requests, the last after %v; want 102 and 1s", len(fast), last)
				}
				kit.WantNoSooner(t, web, "hour.test", time.Hour, 21)
				if asked := kit.URIsOf(web.Log("silent.test")); strings.ReplaceAll(asked+" ", "/robots.txt ", "") != "" || len(c.Denied) != 20 {
					t.Errorf("requests to silent.test: %q, %d of 20 denied", asked, len(c.Denied))
				}
			})
		})
	}
}

// TestRequestsInFlight checks how many requests to one host are in flight at once.
func TestRequestsInFlight(t *testing.T) { kit.ForEachClient(t, testRequestsInFlight) }

func testRequestsInFlight(t *testing.T, start kit.Starter) {
	cases := []struct {
		name, robots string
		opts         []collyrobots.Option
		most         int32
		gap          time.Duration
	}{
		{"no delay", kit.NoDenys, nil, 4, 0},
		{"one under a delay", "User-agent: *\nCrawl-delay: 0.1", nil, 1, 300 * time.Millisecond},
		{"MaxInFlightPerHost", "User-agent: *\nCrawl-delay: 0.1", []collyrobots.Option{collyrobots.MaxInFlightPerHost(2)}, 2, 100 * time.Millisecond},
		{"MaxInFlightPerHost without a delay", kit.NoDenys, []collyrobots.Option{collyrobots.MaxInFlightPerHost(3)}, 3, 0},
		{"DelayFromEnd", "User-agent: *\nCrawl-delay: 0.1", []collyrobots.Option{collyrobots.DelayFromEnd(true)}, 1, 400 * time.Millisecond},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var under, most atomic.Int32
			s := robotstest.Site{"/robots.txt": tc.robots}
			for i := range 4 {
				s[fmt.Sprint("/", i)] = kit.Slowly(300*time.Millisecond, &under, &most)
			}
			kit.InBubble(t, robotstest.Sites{"a.test": s}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, kit.Async, tc.opts...)
				for i := range 4 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				if most.Load() != tc.most || len(c.Pages) != 4 {
					t.Errorf("%d requests in flight and %d pages, want %d and 4", most.Load(), len(c.Pages), tc.most)
				}
				log := web.Log("a.test")[1:] // robots.txt is answered at once
				for i := 1; i < len(log); i++ {
					if gap := log[i].Time.Sub(log[i-1].Time); gap < tc.gap && tc.name != "MaxInFlightPerHost" {
						t.Errorf("gap %v, want at least %v", gap, tc.gap)
					}
				}
			})
		})
	}
}

// TestSeveral503AtOnceCountOnce checks that 503 responses to requests in flight at once are one
// reason to back off.
func TestSeveral503AtOnceCountOnce(t *testing.T) { kit.ForEachClient(t, testSeveral503AtOnceCountOnce) }

func testSeveral503AtOnceCountOnce(t *testing.T, start kit.Starter) {
	s := robotstest.Site{"/robots.txt": kit.NoDenys}
	for i := range 10 {
		s[fmt.Sprint("/", i)] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(100 * time.Millisecond) // so that all requests are in flight
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	}
	kit.InBubble(t, robotstest.Sites{"a.test": s}, wantOneBackOff)
}

func wantOneBackOff(t *testing.T, web *robotstest.Web) {
	c := kit.Start(t, web, kit.Async)
	c.Robots.Check(t.Context(), "http://a.test/")
	for i := range 10 {
		c.Visit(fmt.Sprint("http://a.test/", i))
	}
	c.Wait()
	d, _ := c.Robots.Check(t.Context(), "http://a.test/")
	if s := c.Robots.Stats().Hosts[0]; s.Throttled != 1 || d.BackOff <= 0 || d.BackOff > 1500*time.Millisecond || d.Delay != d.BackOff {
		t.Errorf("got stats %+v and decision %v", s, d)
	}
}
