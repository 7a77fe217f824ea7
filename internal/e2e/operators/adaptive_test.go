package operators

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// pagesAfter returns a site whose pages /0 to /(n-1) are answered after d.
func pagesAfter(n int, robots string, d time.Duration) robotstest.Site {
	site := robotstest.Pages(n, robots)
	for i := range n {
		site[fmt.Sprint("/", i)] = kit.Takes(d, "x")
	}
	return site
}

// TestAdaptiveDelayOnTheWire checks the schedule of the pages of a host that answers each after a
// second.
func TestAdaptiveDelayOnTheWire(t *testing.T) {
	crawl := "User-agent: *\nCrawl-delay: 5\n"
	for _, test := range []struct {
		name   string
		robots string
		opts   []collyrobots.Option
		want   string
	}{
		{"factor 1", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1)},
			"0s /robots.txt, 0s /0, 1s /1, 2s /2, 3s /3"},
		{"factor 3", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(3)},
			"0s /robots.txt, 0s /0, 3s /1, 6s /2, 9s /3"},
		{"factor 0.5", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(0.5)},
			"0s /robots.txt, 0s /0, 0s /1, 1s /2, 1.5s /3"},
		{"the later option applies", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(3), collyrobots.AdaptiveDelay(1)},
			"0s /robots.txt, 0s /0, 1s /1, 2s /2, 3s /3"},
		{"0 switches it off", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(3), collyrobots.AdaptiveDelay(0)},
			"0s /robots.txt, 0s /0, 0s /1, 0s /2, 0s /3"},
		{"ForHosts", kit.NoDenys, []collyrobots.Option{collyrobots.ForHosts("a.*", collyrobots.AdaptiveDelay(3))},
			"0s /robots.txt, 0s /0, 3s /1, 6s /2, 9s /3"},
		{"Crawl-delay is longer", crawl, []collyrobots.Option{collyrobots.AdaptiveDelay(3)},
			"0s /robots.txt, 5s /0, 10s /1, 15s /2, 20s /3"},
		{"Crawl-delay is shorter", crawl, []collyrobots.Option{collyrobots.AdaptiveDelay(10)},
			"0s /robots.txt, 5s /0, 15s /1, 25s /2, 35s /3"},
		{"MaxCrawlDelay does not limit it", crawl, []collyrobots.Option{collyrobots.AdaptiveDelay(10), collyrobots.MaxCrawlDelay(2 * time.Second)},
			"0s /robots.txt, 2s /0, 12s /1, 22s /2, 32s /3"},
		{"MinDelay is longer", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1), collyrobots.MinDelay(4 * time.Second)},
			"0s /robots.txt, 4s /0, 8s /1, 12s /2, 16s /3"},
		{"MaxBackOff", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(100), collyrobots.MaxBackOff(7 * time.Second)},
			"0s /robots.txt, 0s /0, 7s /1, 14s /2, 21s /3"},
		{"MaxBackOff(0)", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1000), collyrobots.MaxBackOff(0)},
			"0s /robots.txt, 0s /0, 5m0s /1, 10m0s /2, 15m0s /3"},
		{"DelayFromEnd", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1), collyrobots.DelayFromEnd(true)},
			"0s /robots.txt, 0s /0, 2s /1, 4s /2, 6s /3"},
		{"MaxInFlightPerHost", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1), collyrobots.MaxInFlightPerHost(2)},
			"0s /robots.txt, 0s /0, 0s /1, 1s /2, 2s /3"},
		{"robots.txt is ignored", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(2), kit.IgnoreRobots()},
			"0s /0, 2s /1, 4s /2, 6s /3"},
		{"a dry run", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(2), collyrobots.DryRun(true)},
			"0s /robots.txt, 0s /0, 0s /1, 0s /2, 0s /3"},
		{"Frontier", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(2)},
			"0s /robots.txt, 0s /0, 2s /1, 4s /2, 6s /3"},
		{"SharedPace", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(1)},
			"0s /robots.txt, 0s /0, 2s /1, 4s /2, 6s /3"}, // the pace counts from the end of a request
		{"CrawlHours", kit.NoDenys, []collyrobots.Option{collyrobots.AdaptiveDelay(10), collyrobots.CrawlHours("00:00", "00:01", time.UTC), collyrobots.MaxBackOff(25 * time.Second), collyrobots.AdaptiveDelay(100)},
			"0s /robots.txt, 0s /0, 25s /1, 50s /2, 24h0m0s /robots.txt, 24h0m25s /3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": pagesAfter(4, test.robots, time.Second)}, func(t *testing.T, web *robotstest.Web) {
				switch test.name { // the channels of a Pacer and a urlstore.Store must belong to the bubble
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := kit.Start(t, web, kit.Async, test.opts...)
				c.Impolite = true
				for i := range 4 {
					c.Visit(fmt.Sprint("http://a.test/", i))
					synctest.Wait()
				}
				c.Wait()
				kit.WantSchedule(t, web, "a.test", test.want)
			})
		})
	}
}
