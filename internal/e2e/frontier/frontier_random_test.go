package frontier

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestFrontierRandomCrawls compares random crawls with Frontier with the same crawls without it.
// Both must scrape and deny the same pages, also if the one with Frontier is interrupted several
// times.
func TestFrontierRandomCrawls(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			settings := newSpiderSettings(rand.New(rand.NewPCG(seed, 1)))
			var want, got pageSets
			kit.InBubble(t, linkedSites(seed), func(t *testing.T, web *robotstest.Web) {
				settings.run(t, web, nil, 0, &want)
			})
			kit.InBubble(t, linkedSites(seed), func(t *testing.T, web *robotstest.Web) {
				rng := rand.New(rand.NewPCG(seed, 2))
				store := kit.NewMemoryStore()
				for range rng.IntN(4) {
					settings.run(t, web, store, time.Duration(rng.Int64N(int64(30*time.Second))), &got)
					store = store.Reopen()
				}
				settings.run(t, web, store, 0, &got)
				states := store.States()
				if len(states[kit.Waits])+len(states[kit.IsOut])+len(states[kit.Postponed]) > 0 {
					t.Errorf("after the crawl: %v", states)
				}
			})
			for name, sets := range map[string][2]map[string]bool{
				"scraped": {got.scraped, want.scraped}, "denied": {got.denied, want.denied}, "failed": {got.failed, want.failed},
			} {
				if !maps.Equal(sets[0], sets[1]) {
					t.Errorf("%s pages: got\n\t%v\nwant\n\t%v", name, sorted(sets[0]), sorted(sets[1]))
				}
			}
		})
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// pageSets are the pages of a crawl by their results.
type pageSets struct {
	mu                      sync.Mutex
	scraped, denied, failed map[string]bool
}

func (s *pageSets) add(set *map[string]bool, r *colly.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *set == nil {
		*set = make(map[string]bool)
	}
	(*set)[r.Ctx.Get("found")+" "+r.URL.String()] = true
}

// linkedSites returns three sites with links, redirects, pages that fail and pages that are denied.
func linkedSites(seed uint64) robotstest.Sites {
	rng := rand.New(rand.NewPCG(seed, 3))
	sites := robotstest.Sites{}
	for h := range 3 {
		robots := fmt.Sprintf("User-agent: *\nDisallow: /1\nCrawl-delay: %g\n", float64(rng.IntN(3)))
		site := robotstest.Site{"/robots.txt": robots}
		for i := range 14 {
			var links []string
			for range 1 + rng.IntN(4) {
				links = append(links, fmt.Sprintf("http://h%d.test/%d", (h+rng.IntN(6)/4)%3, rng.IntN(14)))
			}
			switch rng.IntN(10) {
			case 0:
				site[fmt.Sprint("/", i)] = http.StatusNotFound
			case 1:
				site[fmt.Sprint("/", i)] = robotstest.Redirect(fmt.Sprint("/moved/", i))
				site[fmt.Sprint("/moved/", i)] = robotstest.Page(links...)
			default:
				site[fmt.Sprint("/", i)] = robotstest.Page(links...)
			}
		}
		sites[fmt.Sprintf("h%d.test", h)] = site
	}
	return sites
}

// spiderSettings are what differs between spiders.
type spiderSettings struct {
	parallelism int
	detail      int // 0 one collector, 1 a clone for other hosts, 2 a collector of its own
	retry, slow bool
	attachFirst bool
	abort       bool
}

func newSpiderSettings(rng *rand.Rand) spiderSettings {
	return spiderSettings{
		parallelism: rng.IntN(4),
		detail:      rng.IntN(3),
		retry:       rng.IntN(3) == 0,
		slow:        rng.IntN(3) == 0,
		attachFirst: rng.IntN(2) == 0,
		abort:       rng.IntN(3) == 0,
	}
}

// run crawls the sites. If after is not 0, it interrupts the crawl after that time, like a kill.
func (s spiderSettings) run(t *testing.T, web *robotstest.Web, store *kit.MemoryStore, after time.Duration, sets *pageSets) {
	c := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	if s.parallelism > 0 {
		kit.Must(t, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: s.parallelism}))
	}
	options := []collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.OnDenied(func(r *colly.Request, err error) {
		if !errors.Is(err, collyrobots.ErrClosed) {
			sets.add(&sets.denied, r)
		}
	})}
	if store != nil {
		options = append(options, collyrobots.Frontier(store))
	}
	collectors := []*colly.Collector{c}
	switch s.detail {
	case 1:
		collectors = append(collectors, c.Clone())
	case 2:
		d := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
		d.WithTransport(web.Transport())
		collectors = append(collectors, d)
	}
	attach := func() *collyrobots.Plugin {
		p, err := collyrobots.New(options...)
		kit.Must(t, err)
		for _, c := range collectors {
			kit.Must(t, p.Attach(c))
		}
		return p
	}
	var p *collyrobots.Plugin
	if s.attachFirst {
		p = attach()
	}
	for _, c := range collectors {
		s.callbacks(c, collectors, sets)
	}
	if !s.attachFirst {
		p = attach()
	}
	c.Visit("http://h0.test/0")
	c.Visit("http://h1.test/0")
	if after > 0 {
		time.Sleep(after)
		store.Close()
		p.Close()
	}
	for _, c := range append(collectors, collectors...) { // they visit pages of each other
		c.Wait()
	}
	p.Close()
}

// callbacks registers the callbacks of a spider. Links to other hosts go to the last collector.
func (s spiderSettings) callbacks(c *colly.Collector, all []*colly.Collector, sets *pageSets) {
	tries := make(map[string]int)
	var mu sync.Mutex
	c.OnRequest(func(r *colly.Request) {
		if s.slow {
			time.Sleep(30 * time.Millisecond)
		}
		if s.abort && strings.HasSuffix(r.URL.Path, "/7") {
			r.Abort()
		}
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		link := e.Request.AbsoluteURL(e.Attr("href"))
		if strings.HasPrefix(link, "http://"+e.Request.URL.Host) {
			e.Request.Visit(link)
			return
		}
		all[len(all)-1].Request("GET", link, nil, nil, nil)
	})
	c.OnScraped(func(r *colly.Response) { sets.add(&sets.scraped, r.Request) })
	c.OnError(func(r *colly.Response, err error) {
		if r.StatusCode == 0 {
			return
		}
		sets.add(&sets.failed, r.Request)
		mu.Lock()
		tries[r.Request.URL.String()]++
		again := s.retry && tries[r.Request.URL.String()] < 2
		mu.Unlock()
		if again {
			r.Request.Retry()
		}
	})
}
