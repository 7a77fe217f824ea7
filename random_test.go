package collyrobots_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// randomHost makes the site of a host with links and redirects to others, pages that fail, and
// connections that end.
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
			answer = dropFirst(robotstest.Page(anywhere()))
		case 3:
			answer = 500
		default:
			answer = robotstest.Page(anywhere(), anywhere(), anywhere())
		}
		s[fmt.Sprint("/", i)] = answer
	}
	return s
}

// A crawl of anything, however it is set up, asks for nothing that is disallowed, leaves the delay
// between any two requests to a host, ends, and tells how each request ended.
func TestRandomCrawlsKeepThePromise(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			delays, sites := map[string]time.Duration{}, robotstest.Sites{"proxy.test:3128": nil}
			for i := range 4 {
				host := fmt.Sprintf("h%d.test", i)
				delays[host] = time.Duration(rng.IntN(4)) * 700 * time.Millisecond
				sites[host] = randomHost(rng, delays[host])
			}
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) { randomCrawl(t, web, rng, delays) })
		})
	}
}

// randomCrawl crawls all hosts with random settings, and judges by the log.
func randomCrawl(t *testing.T, web *robotstest.Web, rng *rand.Rand, delays map[string]time.Duration) {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	c.Async, c.CheckHead = rng.IntN(3) > 0, rng.IntN(4) == 0
	c.WithTransport(web.Transport())
	if rng.IntN(4) == 0 {
		must(t, c.SetProxy("http://proxy.test:3128"))
	}
	if n := rng.IntN(4); n > 0 {
		must(t, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: n, Delay: time.Duration(rng.IntN(2)) * 500 * time.Millisecond}))
	}
	open := requests{open: map[uint32]string{}, told: map[string]bool{}}
	c.OnRequest(func(r *colly.Request) { open.begin(r) })
	_, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)),
		collyrobots.OnDenied(func(r *colly.Request, _ error) { open.end(r); open.denied(r) }))
	must(t, err)
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
		if c.CheckHead && open.told[what[strings.IndexByte(what, ' ')+1:]] {
			continue // OnDenied is told once of a HEAD and its GET
		}
		t.Errorf("nothing told how request %d, %s, ended", id, what)
	}
	for host, delay := range delays {
		log := web.Log(host)
		for i, r := range log {
			// Of the robots.txt for http and that for https, neither says how soon the other may be
			// asked for.
			first := i == 0 || i == 1 && r.URI == "/robots.txt"
			if !first && r.Time.Sub(log[i-1].Time) < delay-time.Microsecond {
				t.Errorf("%s was asked for %s sooner than after %v:\n%s", host, r.URI, delay, log.Schedule())
			}
			if strings.HasPrefix(r.URI, "/1") {
				t.Errorf("%s was asked for %s", host, r.URI)
			}
		}
		if n := strings.Count(log.URIs(), "/robots.txt"); n > 2 {
			t.Errorf("%s was asked for robots.txt %d times, want once for http and once for https", host, n)
		}
	}
	robotstest.Verify(t, web, dialect.RFC9309())
}

// requests are those that have begun and not ended.
type requests struct {
	mu   sync.Mutex
	open map[uint32]string
	told map[string]bool // URLs of which OnDenied was told
}

func (r *requests) begin(req *colly.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[req.ID] = req.Method + " " + req.URL.String()
}

func (r *requests) denied(req *colly.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[req.URL.String()] = true
}

func (r *requests) end(req *colly.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, req.ID)
}
