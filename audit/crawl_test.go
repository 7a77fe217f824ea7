package audit_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

var crawlPages = flag.Int("pages", 3000, "TestVerifyLargeCrawl: number of pages")

// A busySite is a site that changes its robots.txt, redirects to other sites, denies pages, and
// throttles its visitors.
type busySite struct {
	n  int
	of int // the number of sites

	mu     sync.Mutex
	random *rand.Rand
	reads  int // of robots.txt
}

// hostOf returns the name of a site.
func hostOf(n int) string { return fmt.Sprintf("host%02d.site%d.test", n, n/10) }

// robots serves a robots.txt that is different each time. One site in ten has none.
func (s *busySite) robots(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.n%10 == 7 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprintf(w, "# read %d\nUser-agent: *\nDisallow: /%d\nDisallow: /*/secret\nAllow: /9/secret\nCrawl-delay: %d\n", s.reads, s.reads%10, (s.n+s.reads)%3)
}

// page serves a page, a redirect to a page of any site, or an error.
func (s *busySite) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	luck := s.random.IntN(1000)
	target := fmt.Sprintf("http://%s/%d/target", hostOf(s.random.IntN(s.of)), s.random.IntN(10))
	s.mu.Unlock()
	switch {
	case luck < 3:
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusTooManyRequests)
	case luck < 6:
		w.WriteHeader(http.StatusServiceUnavailable)
	case luck < 50 && !strings.HasSuffix(r.URL.Path, "/target"):
		http.Redirect(w, r, target, http.StatusFound)
	}
}

// busySites returns n of them.
func busySites(n int) robotstest.Sites {
	sites := make(robotstest.Sites)
	for i := range n {
		s := &busySite{n: i, of: n, random: rand.New(rand.NewPCG(1, uint64(i)))}
		sites[hostOf(i)] = robotstest.Site{"/robots.txt": s.robots, "*": s.page}
	}
	return sites
}

// visitAll visits pages of n sites, in parallel.
func visitAll(c *colly.Collector, sites, pages int) {
	for i := range pages {
		path := fmt.Sprintf("/%d/page%d", i/sites%10, i)
		if i%23 == 0 {
			path = fmt.Sprintf("/%d/secret", i%10)
		}
		c.Visit("http://" + hostOf(i%sites) + path)
	}
	c.Wait()
}

// TestVerifyLargeCrawl checks the log of a crawl of 50 sites for several days. The number of its
// requests is that of the access log.
func TestVerifyLargeCrawl(t *testing.T) {
	const sites = 50
	pages := *crawlPages
	if raceEnabled {
		pages /= 5
	}
	for _, opts := range [][]collyrobots.Option{
		{collyrobots.RetryThrottled(2)},
		{collyrobots.RetryThrottled(2), collyrobots.MinDelay(500 * time.Millisecond), collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.DelayFromEnd(true)},
	} {
		dir := t.TempDir()
		requests := 0
		synctest.Test(t, func(t *testing.T) {
			web := robotstest.New(t, busySites(sites))
			l := mustOpen(t, dir)
			c := mustCollector(web)
			c.Async = true
			opts := append(opts, quiet, collyrobots.OnEveryEvent(l.Event), collyrobots.OnDenied(func(*colly.Request, error) {}))
			robots, err := collyrobots.WithRobots(c, opts...)
			if err != nil {
				t.Fatal(err)
			}
			const rounds = 5
			for range rounds {
				visitAll(c, sites, pages/rounds)
				time.Sleep(25 * time.Hour)
			}
			robots.Close()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			requests = len(web.Log(""))
		})
		began := time.Now()
		r, faults := verify(t, dir)
		t.Logf("%d requests, %d denials, verified in %v", r.Logs[0].Starts, r.Logs[0].Denied, time.Since(began))
		if !r.OK() {
			t.Errorf("%d faults, the first are\n%s", len(faults), strings.Join(faults[:min(len(faults), 10)], "\n"))
		}
		if l := r.Logs[0]; l.Starts != requests || l.Denied < pages/50 || l.Open > 0 {
			t.Errorf("the access log has %d requests, and the report is %+v", requests, l)
		}
		for _, c := range r.Checks {
			if c.Checked < pages/2 || c.Unchecked > 0 {
				t.Errorf("%s: %d things were checked, and %d could not be checked", c.Check, c.Checked, c.Unchecked)
			}
		}
	}
}
