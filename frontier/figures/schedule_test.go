//go:build linux

package figures

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/robotstest"
)

var pacedFlag = flag.Int("paced", 0, "TestSchedule: number of hosts; if 0, 50")

// mostDuration is the goal of TestSchedule: the duration of a crawl, divided by the time that the
// delays need.
const mostDuration = 1.02

// delays are the crawl delays of the hosts in turn.
var delays = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}

// responseTime is the time that a page takes.
const responseTime = 200 * time.Millisecond

// TestSchedule crawls hosts with different delays by the clock of a bubble. Each host has a page
// that links to all others. The host that needs most time determines how long the crawl must take.
func TestSchedule(t *testing.T) {
	n := max(*pacedFlag, 50)
	synctest.Test(t, func(t *testing.T) {
		sites := make(robotstest.Sites)
		plans := make(map[string]plan)
		for i := range n {
			host := fmt.Sprintf("host%d.test", i)
			delay := delays[i%len(delays)]
			pages := 20 + i%50
			sites[host] = slowPages(pages, delay)
			plans[host] = plan{requests: pages + 2, delay: delay}
		}
		web := robotstest.New(t, sites)
		crawlSites(t, web, sites)
		robotstest.Verify(t, web, dialect.RFC9309())
		reportSchedule(t, web, plans)
	})
}

// A plan is what a host must get.
type plan struct {
	requests int // including robots.txt and the page with the links
	delay    time.Duration
}

// ideal returns when the last request starts if none is late.
func (p plan) ideal() time.Duration { return time.Duration(p.requests-1) * p.delay }

// slowPages returns a site like robotstest.Pages, with a delay. Its pages take the responseTime.
func slowPages(n int, delay time.Duration) robotstest.Site {
	site := robotstest.Pages(n, fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", delay/time.Second))
	for path, answer := range site {
		if path == "/robots.txt" {
			continue
		}
		site[path] = func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(responseTime)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, answer.(string))
		}
	}
	return site
}

// crawlSites crawls all pages of all sites with a Frontier.
func crawlSites(t *testing.T, web *robotstest.Web, sites robotstest.Sites) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	f, err := frontier.Open(t.TempDir(), frontier.Logger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async(true))
	c.WithTransport(web.Transport())
	p, err := collyrobots.WithRobots(c, collyrobots.Frontier(f), collyrobots.Logger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	for host := range sites {
		if err := c.Visit("http://" + host + "/"); err != nil {
			t.Fatal(err)
		}
	}
	c.Wait()
}

// reportSchedule compares the time of the last request of each host to the time that its delay
// needs.
func reportSchedule(t *testing.T, web *robotstest.Web, plans map[string]plan) {
	t.Helper()
	requests := make(map[string]int)
	last := make(map[string]time.Duration)
	for _, r := range web.Log("") {
		requests[r.Host]++
		last[r.Host] = r.Elapsed
	}
	var ideal, duration time.Duration
	var sum float64
	for host, p := range plans {
		if requests[host] != p.requests {
			t.Errorf("%s: %d requests, want %d", host, requests[host], p.requests)
		}
		ideal = max(ideal, p.ideal())
		duration = max(duration, last[host])
		sum += float64(last[host]) / float64(p.ideal())
	}
	ratio := float64(duration) / float64(ideal)
	t.Logf("%d hosts in %v, the delays need %v: ratio %.3f; mean of the ratios of single hosts %.3f",
		len(plans), duration, ideal, ratio, sum/float64(len(plans)))
	if ratio > mostDuration {
		t.Errorf("the crawl took %.3f times as long as the delays need, want at most %.2f", ratio, mostDuration)
	}
}
