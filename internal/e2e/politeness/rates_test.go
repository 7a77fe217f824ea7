package politeness

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests run in bubbles, which begin at midnight in UTC. Therefore the times in the log of a web
// are times of the day.

// timesOf returns the times of the requests to a host.
func timesOf(web *robotstest.Web, host string) string {
	var times []string
	for _, r := range web.Log(host) {
		times = append(times, r.Elapsed.String())
	}
	return strings.Join(times, " ")
}

// TestRealRates crawls sites whose robots.txt files are written as those of Czech and Russian sites
// are, and compares the times of the requests in the server's log.
func TestRealRates(t *testing.T) {
	for _, test := range []struct {
		name     string
		robots   string
		from     time.Duration // since midnight
		opts     []collyrobots.Option
		want     string
		impolite bool // by the rules of RFC 9309
	}{
		{"a Czech shop",
			"User-agent: *\nDisallow: /kosik\nDisallow: /*?razeni=\nRequest-rate: 10/1m\n\nSitemap: https://obchod.test/sitemap.xml\n",
			0, []collyrobots.Option{collyrobots.Dialect(dialect.Seznam())},
			"0s 6s 12s 18s 24s", false},
		{"a Czech newspaper, slow by day",
			"User-agent: SeznamBot\nDisallow: /diskuze/\n\nUser-agent: *\nDisallow: /hledani\nRequest-rate: 1/10s 0600-1459\nRequest-rate: 30/1m 1500-0559\n",
			15*time.Hour - 25*time.Second, []collyrobots.Option{collyrobots.Dialect(dialect.Seznam())},
			"14h59m35s 14h59m45s 14h59m55s 15h0m0s 15h0m2s", false},
		{"the same in the morning",
			"User-agent: *\nRequest-rate: 1/10s 0600-1459\nRequest-rate: 30/1m 1500-0559\nDisallow: /hledani\n",
			6*time.Hour - 5*time.Second, []collyrobots.Option{collyrobots.Dialect(dialect.Seznam())},
			"5h59m55s 5h59m57s 5h59m59s 6h0m9s 6h0m19s", false},
		{"a Czech rate under RFC 9309",
			"User-agent: *\nDisallow: /kosik\nRequest-rate: 10/1m\n",
			0, nil,
			"0s 0s 0s 0s 0s", false},
		{"a Czech rate under RFC 9309, honoured",
			"User-agent: *\nDisallow: /kosik\nRequest-rate: 10/1m\n",
			0, []collyrobots.Option{collyrobots.HonorDelays(true)},
			"0s 6s 12s 18s 24s", false},
		{"a Czech rate and a Crawl-delay",
			"User-agent: *\nCrawl-delay: 5\nRequest-rate: 300/1m\nDisallow: /admin\n",
			0, []collyrobots.Option{collyrobots.HonorDelays(true)},
			"0s 5s 10s 15s 20s", false},
		{"a Russian shop under Yandex",
			"User-agent: Yandex\nDisallow: /basket/\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /basket/\nDisallow: /*sort=\nCrawl-delay: 4.5\nClean-param: utm_source&utm_medium /\nHost: shop.test\n",
			0, []collyrobots.Option{collyrobots.Dialect(dialect.Yandex())},
			"0s 0s 0s 0s 0s", true},
		{"a Russian shop under Yandex, its Crawl-delay honoured",
			"User-agent: Yandex\nDisallow: /basket/\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /basket/\nDisallow: /*sort=\nCrawl-delay: 4.5\nClean-param: utm_source&utm_medium /\nHost: shop.test\n",
			0, []collyrobots.Option{collyrobots.Dialect(dialect.Yandex()), collyrobots.HonorDelays(true)},
			"0s 4.5s 9s 13.5s 18s", false},
		{"a Russian forum by night",
			"User-agent: *\nDisallow: /profile\nVisit-time: 0100-0559 # only at night\nRequest-rate: 1/5 # a page every 5 seconds\n",
			30 * time.Minute, []collyrobots.Option{collyrobots.Dialect(dialect.Yandex()), collyrobots.HonorDelays(true)},
			"30m0s 1h0m0s 1h0m5s 1h0m10s 1h0m15s", false},
		{"a window that closes while pages wait",
			"User-agent: *\nVisit-time: 2200-0059\nRequest-rate: 1/30s\nDisallow: /profile\n",
			59*time.Minute + 15*time.Second, []collyrobots.Option{collyrobots.HonorDelays(true)},
			"59m15s 59m45s 22h0m0s 22h0m30s 22h1m0s", false},
		{"a window that spans midnight, and robots.txt has to be read again in it",
			"User-agent: *\nVisit-time: 2359-0000\nRequest-rate: 1/40s\nDisallow: /profile\n",
			12 * time.Hour, []collyrobots.Option{collyrobots.HonorDelays(true)},
			"12h0m0s 23h59m0s 23h59m40s 24h0m20s 47h59m0s 47h59m40s", false},
		{"MaxCrawlDelay",
			"User-agent: *\nRequest-rate: 1/10m\nDisallow: /profile\n",
			0, []collyrobots.Option{collyrobots.HonorDelays(true), collyrobots.MaxCrawlDelay(3 * time.Second)},
			"0s 3s 6s 9s 12s", false},
		{"ForHosts",
			"User-agent: *\nRequest-rate: 1/2\nDisallow: /profile\n",
			0, []collyrobots.Option{collyrobots.ForHosts("*.test", collyrobots.HonorDelays(true))},
			"0s 2s 4s 6s 8s", false},
		{"ForHosts for another host",
			"User-agent: *\nRequest-rate: 1/2\nDisallow: /profile\n",
			0, []collyrobots.Option{collyrobots.ForHosts("b.test", collyrobots.HonorDelays(true))},
			"0s 0s 0s 0s 0s", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := robotstest.Pages(4, test.robots)
				web := robotstest.New(t, robotstest.Sites{"a.test": site})
				time.Sleep(test.from)
				c := kit.Start(t, web, kit.Async, test.opts...)
				c.Impolite = test.impolite
				kit.VisitPages(c, "a.test", 4)
				if got := timesOf(web, "a.test"); got != test.want {
					t.Errorf("requests at %s, want %s", got, test.want)
				}
			})
		})
	}
}
