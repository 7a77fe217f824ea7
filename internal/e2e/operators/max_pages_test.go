package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
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

// wantBudget checks how many pages of a.test were sent, and how many were denied by MaxPages.
func wantBudget(t *testing.T, c *kit.Crawl, web *robotstest.Web, sent, denied int) {
	t.Helper()
	if n := countPages(web.Log("a.test")); n != sent {
		t.Errorf("%d pages were sent, want %d", n, sent)
	}
	n := 0
	c.Note(func() {
		for _, err := range c.Denied {
			var why *collyrobots.DisallowedError
			if errors.As(err, &why) && why.Decision.Reason == report.ReasonBudget {
				n++
			}
		}
	})
	if n != denied {
		t.Errorf("%d pages are denied, want %d", n, denied)
	}
}

// TestMaxPages checks that of many pages at once exactly as many are sent as the option allows.
func TestMaxPages(t *testing.T) { kit.ForEachClient(t, testMaxPages) }

func testMaxPages(t *testing.T, start kit.Starter) {
	for _, n := range []int{1, 10, 63, 64} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, kit.Async, collyrobots.MaxPages(n))
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
			if s.PagesSent != n || s.MaxPages != n || s.Denied != 64-n || s.Ended != ended {
				t.Errorf("the host has %+v", s)
			}
		})
	}
}

// TestMaxPagesOnLoopback does the same with real connections and slow responses.
func TestMaxPagesOnLoopback(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, robotstest.Page())
	})}})
	c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(100))
	for i := range 1000 {
		c.Visit(fmt.Sprint("http://a.test/", i))
	}
	c.Wait()
	wantBudget(t, c, web, 100, 900)
}

// TestMaxPagesEndsWaits checks that pages that wait for a slow host are denied when its budget is
// used up, and not when their turn comes.
func TestMaxPagesEndsWaits(t *testing.T) { kit.ForEachClient(t, testMaxPagesEndsWaits) }

func testMaxPagesEndsWaits(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 60\nDisallow: /closed", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := start(t, web, kit.Async, collyrobots.MaxPages(3))
		for i := range 100 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Visit("http://a.test/closed")
		c.Wait()
		wantBudget(t, c, web, 3, 97)
		kit.WantDenied(t, c, "http://a.test/closed", report.ReasonRule, 3)
		if took := time.Since(began); took != 3*time.Minute {
			t.Errorf("the crawl took %v, want 3m", took)
		}
		c.Visit("http://a.test/late")
		c.Wait()
		if took := time.Since(began); took != 3*time.Minute {
			t.Errorf("a later page was denied after %v", took)
		}
		if d, err := c.Robots.Check(t.Context(), "http://a.test/x"); err != nil || d.String() != "http://a.test/x denied: MaxPages allows 3 pages of the host (rfc9309)" || d.MaxPages != 3 {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// TestMaxPagesOfUnsentPages checks that a page that could not be sent is not counted.
func TestMaxPagesOfUnsentPages(t *testing.T) { kit.ForEachClient(t, testMaxPagesOfUnsentPages) }

func testMaxPagesOfUnsentPages(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.MaxPages(2))
		kit.Must(t, c.Visit("http://a.test/0"))
		dial := c.Transport.DialContext
		c.Transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }
		c.Transport.CloseIdleConnections()
		for i := range 5 {
			if err := c.Visit(fmt.Sprint("http://a.test/lost?", i)); err == nil || errors.Is(err, colly.ErrRobotsTxtBlocked) {
				t.Errorf("the error is %v", err)
			}
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.PagesSent != 1 {
			t.Errorf("%d pages are counted, want 1", s.PagesSent)
		}
		c.Transport.DialContext = dial
		kit.Must(t, c.Visit("http://a.test/1"))
		c.Visit("http://a.test/2")
		wantBudget(t, c, web, 2, 1)
	})
}

// TestMaxPagesOfAbortedPages checks that pages that a later callback of OnRequest or
// OnRequestHeaders aborts are not counted, also under concurrency.
func TestMaxPagesOfAbortedPages(t *testing.T) {
	for name, option := range map[string]func(c *kit.Crawl, f colly.RequestCallback){
		"OnRequest":        func(c *kit.Crawl, f colly.RequestCallback) { c.OnRequest(f) },
		"OnRequestHeaders": func(c *kit.Crawl, f colly.RequestCallback) { c.OnRequestHeaders(f) },
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(20))
				option(c, func(r *colly.Request) {
					if strings.HasPrefix(r.URL.Path, "/odd") {
						r.Abort()
					}
				})
				for i := range 100 {
					c.Visit(fmt.Sprint("http://a.test/odd", i))
				}
				for i := range 30 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				denied := 0
				for page := range c.Denied {
					if !strings.Contains(page, "/odd") {
						denied++
					}
				}
				if n := countPages(web.Log("a.test")); n != 20 || denied != 10 {
					t.Errorf("%d pages were sent, %d others denied, want 20 and 10", n, denied)
				}
			})
		})
	}
}

// TestMaxPagesOfCachedPages checks that pages from CacheDir are not counted, and that they are
// there although the budget is used up.
func TestMaxPagesOfCachedPages(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		options := []colly.CollectorOption{colly.CacheDir(t.TempDir()), colly.AllowURLRevisit()}
		c := kit.Start(t, web, options, collyrobots.MaxPages(2))
		for range 3 {
			kit.Must(t, c.Visit("http://a.test/0"))
		}
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.Must(t, c.Visit("http://a.test/0"))
		c.Visit("http://a.test/2")
		wantBudget(t, c, web, 2, 1)
		if s := kit.HostStats(t, c.Robots, "a.test"); s.PagesSent != 2 || s.Pages != 5 {
			t.Errorf("the host has %+v", s)
		}
	})
}

// TestMaxPagesOfRetries checks that a request that the program repeats counts, so that a loop ends.
func TestMaxPagesOfRetries(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": http.StatusInternalServerError}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := kit.Start(t, web, nil, collyrobots.MaxPages(5))
		c.OnError(func(r *colly.Response, _ error) { r.Request.Retry() })
		c.Visit("http://a.test/")
		wantBudget(t, c, web, 5, 1)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the loop ended after %v", took)
		}
	})
}

// TestMaxPagesWithFrontier checks that each run fetches as many pages as the option allows until
// all are done.
func TestMaxPagesWithFrontier(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		for run, want := range []string{"done 4, postponed 6", "done 8, postponed 2", "done 10, postponed 0"} {
			c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.MaxPages(4))
			for i := range 10 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
			c.Wait()
			states := store.States()
			if got := fmt.Sprintf("done %d, postponed %d", len(states[kit.IsDone]), len(states[kit.Postponed])); got != want {
				t.Errorf("run %d: %s, want %s", run, got, want)
			}
			kit.Must(t, c.Robots.Close())
			time.Sleep(time.Minute)
			store = store.Reopen()
		}
	})
}

// TestMaxPagesWithSitemaps checks that robots.txt and sitemaps are not counted, that the pages that
// sitemaps list are, and that the next run with Resume continues with the others.
func TestMaxPagesWithSitemaps(t *testing.T) {
	site := robotstest.Site{"/robots.txt": "Sitemap: http://a.test/index.xml", "/index.xml": robotstest.SitemapIndex("http://a.test/1.xml", "http://a.test/2.xml"), "*": robotstest.Page()}
	for i := 1; i <= 2; i++ {
		var locs []string
		for k := range 5 {
			locs = append(locs, fmt.Sprintf("http://a.test/%d-%d", i, k))
		}
		site[fmt.Sprintf("/%d.xml", i)] = robotstest.Sitemap(locs...)
	}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		kept := store.Memory()
		pages := func() int {
			c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(7), collyrobots.Store(kept), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
			kit.Must(t, c.Visit("http://a.test/"))
			c.Wait()
			kit.Must(t, c.Robots.Close())
			time.Sleep(time.Hour)
			return len(c.Pages)
		}
		if first, second := pages(), pages(); first != 7 || second != 5 { // the second run also visits the first page
			t.Errorf("%d and %d pages, want 7 and 5", first, second)
		}
	})
}

// TestMaxPagesByTurns checks the requests that the program sends itself.
func TestMaxPagesByTurns(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.MaxPages(10))
		var allowed atomic.Int32
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				req, _ := http.NewRequest("GET", "http://a.test/", nil)
				turn, err := c.Robots.Acquire(t.Context(), req)
				if err == nil {
					allowed.Add(1)
				}
				turn.End()
			})
		}
		all.Wait()
		if allowed.Load() != 10 {
			t.Errorf("%d requests are allowed, want 10", allowed.Load())
		}
	})
}

// TestMaxPagesSurvives checks that the count survives when the registry forgets the host.
func TestMaxPagesSurvives(t *testing.T) {
	if kit.UnderRace {
		t.Skip("checks the URLs of very many hosts in one goroutine")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.MaxPages(3), collyrobots.ForHosts("*.other.test", collyrobots.IgnoreRobotsWithPermission()))
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.Must(t, c.Visit("http://a.test/1"))
		time.Sleep(11 * time.Minute)
		forgetIdleHosts(t, c.Robots, "a.test")
		kit.Must(t, c.Visit("http://a.test/2"))
		c.Visit("http://a.test/3")
		wantBudget(t, c, web, 3, 1)
	})
}

// TestMaxPagesAfterClose checks that Close ends pages that wait, although the budget is not used
// up.
func TestMaxPagesAfterClose(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 60\n", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(10))
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		time.Sleep(90 * time.Second)
		kit.Must(t, c.Robots.Close())
		c.Wait()
		if s := kit.HostStats(t, c.Robots, "a.test"); s.PagesSent != 1 || s.Ended != report.EndingClosed {
			t.Errorf("the host has %+v", s)
		}
	})
}
