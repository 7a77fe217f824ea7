package operators

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// countPages returns how many requests of a log are not for robots.txt.
func countPages(log robotstest.Log) (n int) {
	for _, uri := range log.URIs() {
		if uri != "/robots.txt" {
			n++
		}
	}
	return n
}

// wantBudget checks how many pages of a.test were sent, and how many were denied by
// MaxPagesPerHost.
func wantBudget(t *testing.T, c *kit.Crawl, web *robotstest.Web, sent, denied int) {
	t.Helper()
	if n := countPages(web.Log("a.test")); n != sent {
		t.Errorf("%d pages were sent, want %d", n, sent)
	}
	n := 0
	c.Note(func() {
		for _, err := range c.Denied {
			var why *collyrobots.DeniedError
			if errors.As(err, &why) && why.Decision.Reason == report.ReasonBudget {
				n++
			}
		}
	})
	if n != denied {
		t.Errorf("%d pages are denied, want %d", n, denied)
	}
}

// TestMaxPagesPerHost checks that of many pages at once exactly as many are sent as the option
// allows.
func TestMaxPagesPerHost(t *testing.T) { kit.ForEachClient(t, testMaxPagesPerHost) }

func testMaxPagesPerHost(t *testing.T, start kit.Starter) {
	for _, n := range []int{1, 10, 63, 64} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, kit.Async, collyrobots.MaxPagesPerHost(n))
			for i := range 64 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
			c.Wait()
			wantBudget(t, c, web, n, 64-n)
			s := kit.HostStats(t, c.Robots, "a.test")
			ended := report.EndingBudget
			if n == 64 {
				ended = report.EndingDone
			}
			if s.PagesSent != n || s.MaxPagesPerHost != n || s.Denied != 64-n || s.Ended != ended {
				t.Errorf("the host has %+v", s)
			}
		})
	}
}

// TestMaxPages checks that of many pages at once, of many hosts, exactly as many are sent as the option allows.
func TestMaxPages(t *testing.T) { kit.ForEachClient(t, testMaxPages) }

func testMaxPages(t *testing.T, start kit.Starter) {
	for _, n := range []int{1, 10, 63, 64} {
		sites := make(robotstest.Sites)
		for i := range 16 {
			sites[fmt.Sprintf("%d.test", i)] = robotstest.Site{"/robots.txt": kit.NoDenys, "*": robotstest.Page()}
		}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, kit.Async, collyrobots.MaxPages(n))
			for i := range 64 {
				c.Visit(fmt.Sprintf("http://%d.test/%d", i%16, i))
			}
			c.Wait()
			if got := countPages(web.Log("")); got != n {
				t.Errorf("%d pages were sent, want %d", got, n)
			}
			if denied := c.Robots.Stats().Totals.Denied; denied != 64-n {
				t.Errorf("%d pages are denied, want %d", denied, 64-n)
			}
		})
	}
}

// TestMaxPagesCounts checks what MaxPages counts beside the pages of one collector: the pages of sitemaps,
// turns, and a page that is redirected to another host once. It does not count sitemaps, pages from the
// cache, and turns that were not used.
func TestMaxPagesCounts(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys + "Sitemap: http://a.test/s.xml\n", "/s.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2"), "*": robotstest.Page()},
		"b.test": {"/robots.txt": kit.NoDenys, "/moved": robotstest.Redirect("http://c.test/new"), "*": robotstest.Page()},
		"c.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, []colly.CollectorOption{colly.CacheDir(t.TempDir()), colly.AllowURLRevisit()},
			collyrobots.MaxPages(7), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		for range 3 { // the second and the third time from the cache
			kit.Must(t, c.Visit("http://a.test/"))
		}
		c.Wait() // with the sitemap, 3 pages
		kit.Must(t, c.Visit("http://b.test/moved"))
		for i := range 3 {
			turn, err := c.Robots.Acquire(t.Context(), kit.NewRequest(t, fmt.Sprint("http://b.test/turn", i)))
			kit.Must(t, err)
			if i == 0 {
				turn.Failed(collyrobots.ErrNotSent)
				continue
			}
			turn.Answered(200, nil)
			turn.End()
		}
		kit.Must(t, c.Visit("http://c.test/last"))
		err := c.Visit("http://c.test/beyond")
		var denied *collyrobots.DeniedError
		if !errors.As(err, &denied) || denied.Decision.MaxPages != 7 || denied.Decision.Reason != report.ReasonBudget {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

// TestMaxPagesWithFrontier checks that the next run counts from zero, and continues with the pages that the
// limit has left.
func TestMaxPagesWithFrontier(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}, "b.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		pages := kit.NewMemoryStore()
		for run, want := range []int{3, 6, 8, 8} {
			c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(3), collyrobots.Frontier(pages))
			for i := range 8 {
				c.Visit(fmt.Sprintf("http://%c.test/%d", 'a'+i%2, i))
			}
			c.Wait()
			if n := countPages(web.Log("")); n != want {
				t.Errorf("run %d: %d pages were sent in all runs, want %d", run, n, want)
			}
			kit.Must(t, c.Robots.Close())
			pages = pages.Reopen()
		}
	})
}

// TestMaxPagesPerHostSurvives checks that the count survives when the registry forgets the host.
func TestMaxPagesPerHostSurvives(t *testing.T) {
	if kit.UnderRace {
		t.Skip("checks the URLs of very many hosts in one goroutine")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.MaxPagesPerHost(3), collyrobots.ForHosts("*.other.test", kit.IgnoreRobots()))
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.Must(t, c.Visit("http://a.test/1"))
		time.Sleep(11 * time.Minute)
		forgetIdleHosts(t, c.Robots, "a.test")
		kit.Must(t, c.Visit("http://a.test/2"))
		c.Visit("http://a.test/3")
		wantBudget(t, c, web, 3, 1)
	})
}

// TestMaxPagesCountsRetries checks that a page that the program repeats counts again.
func TestMaxPagesCountsRetries(t *testing.T) {
	for name, option := range map[string]collyrobots.Option{
		"MaxPages": collyrobots.MaxPages(3), "MaxPagesPerHost": collyrobots.MaxPagesPerHost(3),
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, option)
				tries := 0
				c.OnResponse(func(r *colly.Response) {
					tries++
					if tries < 6 {
						r.Request.Retry()
					}
				})
				c.Visit("http://a.test/0")
				wantBudget(t, c, web, 3, 1)
			})
		})
	}
}
