package operators

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestMaxRateOnTheWire checks the requests to three hosts together. Each page of a host is requested
// when the page before it has been called.
func TestMaxRateOnTheWire(t *testing.T) {
	delay := "User-agent: *\nCrawl-delay: 4\n"
	for _, test := range []struct {
		name   string
		robots string
		opts   []collyrobots.Option
		want   string // the times of all requests in seconds
	}{
		{"alone", kit.NoDenys, nil, "0 1 2 3 4 5 6 7 8"},
		{"a burst", kit.NoDenys, []collyrobots.Option{collyrobots.MaxRate(1, 4)}, "0 0 0 0 1 2 3 4 5"},
		{"a shorter MinDelay", kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(2 * time.Second)}, "0 1 2 3 4 5 6 7 8"},
		{"a longer MinDelay", kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(4 * time.Second)}, "0 1 2 4 5 6 8 9 10"},
		{"a longer Crawl-delay", delay, nil, "0 1 2 4 5 6 8 9 10"},
		{"PaceBy", kit.NoDenys, []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.MinDelay(4 * time.Second)}, "0 1 2 4 5 6 8 9 10"},
		{"MaxInFlightPerHost", kit.NoDenys, []collyrobots.Option{collyrobots.MaxInFlightPerHost(1)}, "0 1 2 3 4 5 6 7 8"},
		{"SharedPace", kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(4 * time.Second)}, "0 1 2 4 5 6 8 9 10"},
		{"Frontier", kit.NoDenys, nil, "0 1 2 3 4 5 6 7 8"},
		{"Frontier and Crawl-delay", delay, nil, "0 1 2 4 5 6 8 9 10"},
		{"CrawlHours", kit.NoDenys, []collyrobots.Option{collyrobots.CrawlHours("06:00", "07:00", time.UTC)}, "0 1 2 21600 21601 21602 21603 21604 21605"},
		{"off", kit.NoDenys, []collyrobots.Option{collyrobots.MaxRate(0, 0)}, "0 0 0 0 0 0 0 0 0"},
		{"rate.Inf", kit.NoDenys, []collyrobots.Option{collyrobots.MaxRate(rate.Inf, 1)}, "0 0 0 0 0 0 0 0 0"},
		{"a dry run", delay, []collyrobots.Option{collyrobots.DryRun(true)}, "0 0 0 0 0 0 0 0 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sites := robotstest.Sites{}
			for _, host := range []string{"a.test", "b.test", "c.test"} {
				sites[host] = robotstest.Pages(2, test.robots)
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				switch test.name { // the channels of a Pacer and a urlstore.Store must belong to the bubble
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier", "Frontier and Crawl-delay":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := kit.Start(t, web, kit.Async, append([]collyrobots.Option{collyrobots.MaxRate(1, 1)}, test.opts...)...)
				c.Impolite = test.name == "a dry run"
				for i := range 2 {
					for host := range sites {
						c.Visit(fmt.Sprintf("http://%s/%d", host, i))
					}
				}
				c.Wait()
				if got := secondsOf(web.Log("")); got != test.want {
					t.Errorf("got  %s\nwant %s\n%v", got, test.want, web.Log(""))
				}
				if len(c.Pages) != 6 {
					t.Errorf("%d pages: %q", len(c.Pages), c.Pages)
				}
			})
		})
	}
}

// secondsOf returns the times of the requests in a log in seconds since the first one.
func secondsOf(log robotstest.Log) string {
	var times []string
	for _, r := range log {
		times = append(times, fmt.Sprint(r.Time.Sub(log[0].Time).Seconds()))
	}
	return strings.Join(times, " ")
}

// TestMaxRateEstimates compares the estimate of the last start of each host with the time of its last
// request. The hosts take turns, so a host with few pages ends early, and a slow host leaves tokens to the
// others.
func TestMaxRateEstimates(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages []int // of each host
		delay time.Duration
		most  time.Duration // between the estimate and the last request
	}{
		{"equal hosts", []int{19, 19, 19, 19, 19}, 0, 5 * time.Second},
		{"one host", []int{30}, 0, time.Second},
		{"hosts of many sizes", []int{1, 2, 5, 20, 40}, 0, 5 * time.Second},
		{"hosts that are slower than the rate", []int{3, 3, 4}, 10 * time.Second, 3 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			sites := make(robotstest.Sites)
			for i := range test.pages {
				sites[fmt.Sprintf("h%d.test", i)] = robotstest.Pages(40, kit.NoDenys)
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, collyrobots.MaxRate(1, 1), collyrobots.MinDelay(test.delay))
				for i, pages := range test.pages {
					c.Visit(fmt.Sprintf("http://h%d.test/0", i)) // reads robots.txt
					for n := 1; n < pages; n++ {
						c.Visit(fmt.Sprintf("http://h%d.test/%d", i, n))
					}
				}
				synctest.Wait()
				time.Sleep(time.Duration(2*len(test.pages))*time.Second + test.delay)
				synctest.Wait()
				last := make(map[string]time.Time)
				for _, h := range c.Robots.Stats().Hosts {
					if h.Waiting > 0 {
						last[h.Host] = h.LastStart
					}
				}
				if len(last) == 0 {
					t.Fatal("no page waits")
				}
				c.Wait()
				for host, estimate := range last {
					log := web.Log(host)
					if late := log[len(log)-1].Time.Sub(estimate); late.Abs() > test.most {
						t.Errorf("%s: the last request came %v after the estimate, want at most %v", host, late, test.most)
					}
				}
			})
		})
	}
}
