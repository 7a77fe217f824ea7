package collectors

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestEndOfContextEndsEveryWait checks that all requests that wait are ended at once when the
// context ends, so that Wait returns in the same instant.
func TestEndOfContextEndsEveryWait(t *testing.T) {
	hour := robotstest.Pages(1, "User-agent: *\nCrawl-delay: 3600")
	hour["/hop"] = robotstest.Redirect("/0")
	for name, tc := range map[string]struct {
		url   func(i int) string // of the i-th of 500 pages
		limit *colly.LimitRule
		sent  int // the number of requests
	}{
		"waiting for the host":                    {url: func(i int) string { return fmt.Sprint("http://hour.test/0?", i) }, sent: 1},
		"waiting for the host, under a LimitRule": {url: func(i int) string { return fmt.Sprint("http://hour.test/0?", i) }, sent: 1, limit: &colly.LimitRule{DomainGlob: "*", Parallelism: 2}},
		"waiting for robots.txt":                  {url: func(i int) string { return fmt.Sprint("http://silent.test/?", i) }, sent: 1},
		"many hosts":                              {url: func(i int) string { return fmt.Sprintf("http://h%d.silent.test/", i) }, sent: 500},
		"in flight":                               {url: func(i int) string { return fmt.Sprint("http://open.test/hang?", i) }, sent: 501},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"hour.test": hour, "silent.test": {"/robots.txt": kit.Hang}, "open.test": {"/robots.txt": "", "*": kit.Hang}}
			for i := range 500 {
				sites[fmt.Sprintf("h%d.silent.test", i)] = sites["silent.test"]
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				began := time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				c := kit.Start(t, web, append(kit.Async, colly.StdlibContext(ctx)))
				kit.Limited(t, c, tc.limit)
				for i := range 500 {
					c.Visit(tc.url(i))
				}
				time.Sleep(5 * time.Second)
				enough := errors.New("enough")
				cancel(enough)
				c.Wait()
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("Wait returned %v after the end of the context", took-5*time.Second)
				}
				if n := len(web.Log("")); n != tc.sent {
					t.Errorf("got %d requests, want %d", n, tc.sent)
				}
				denied := 500
				if name == "in flight" {
					denied = 0
				}
				if len(c.Denied) != denied || len(c.Errs) != 500 {
					t.Errorf("OnDenied was called for %d requests, want %d, and OnError for %d, want 500", len(c.Denied), denied, len(c.Errs))
				}
				for u, err := range c.Errs {
					if !errors.Is(err, enough) {
						t.Fatalf("%s: OnError was called with %v, want the cause", u, err)
					}
				}
				for u, err := range c.Denied {
					if err != enough {
						t.Fatalf("%s: OnDenied was called with %v, want the cause", u, err)
					}
				}
			})
		})
	}
}

// TestEndOfContextEndsWaitOfRedirect checks the same for a redirect that waits.
func TestEndOfContextEndsWaitOfRedirect(t *testing.T) {
	kit.ForEachClient(t, testEndOfContextEndsWaitOfRedirect)
}

func testEndOfContextEndsWaitOfRedirect(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 30", "/": robotstest.Redirect("/1"), "/1": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		c := start(t, web, []colly.CollectorOption{colly.StdlibContext(ctx)})
		if err := c.Visit("http://a.test/"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 40*time.Second {
			t.Errorf("Visit returned %v after %v", err, time.Since(began))
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 30s /")
	})
}

func TestEndOfContextEndsWaitOfRetry(t *testing.T) {
	kit.ForEachClient(t, testEndOfContextEndsWaitOfRetry)
}

func testEndOfContextEndsWaitOfRetry(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 60", "/0": robotstest.Page(), "/1": kit.DropFirst(robotstest.Page()),
	}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 130*time.Second)
		defer cancel()
		c := start(t, web, []colly.CollectorOption{colly.StdlibContext(ctx)})
		c.Visit("http://a.test/0")
		if err := c.Visit("http://a.test/1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 130*time.Second {
			t.Errorf("Visit returned %v after %v", err, time.Since(began))
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1m0s /0, 2m0s /1")
	})
}

// TestContextOfOneCollectorDoesNotEndAnother checks that the end of one collector's context does
// not affect another collector, although both share a fetch of robots.txt and wait for the same
// host.
func TestContextOfOneCollectorDoesNotEndAnother(t *testing.T) {
	slow := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Second)
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 10")
	})
	a := robotstest.Pages(6, "")
	a["/robots.txt"] = slow
	for name, tc := range map[string]struct {
		end  time.Duration
		want string
	}{
		"in the fetch":   {4 * time.Second, "0s /robots.txt, 10s /3"},
		"while it waits": {12 * time.Second, "0s /robots.txt, 10s /0, 20s /1, 30s /3, 40s /5"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tc.end)
				defer cancel()
				first := kit.Start(t, web, append(kit.Async, colly.StdlibContext(ctx)))
				second := first.Clone()
				second.Context = t.Context()
				if name == "in the fetch" {
					first.Visit("http://a.test/0") // this collector starts the fetch
					synctest.Wait()
					second.Visit("http://a.test/3")
				} else {
					first.Robots.Check(t.Context(), "http://a.test/") // so that all pages begin to wait at the same time
					for i := range 6 {
						[]*collyrobots.Collector{first.Collector, second}[i%2].Visit(fmt.Sprint("http://a.test/", i))
						synctest.Wait()
					}
				}
				first.Wait()
				if took := time.Since(began); took != tc.end {
					t.Errorf("the first collector ended after %v, want %v", took, tc.end)
				}
				second.Wait()
				kit.WantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

// TestContextMayBeReplaced checks that the crawl continues with a new context after the old one has
// ended, and keeps the delay of the host.
func TestContextMayBeReplaced(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		for i := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			c.Context = ctx
			c.Visit(fmt.Sprint("http://a.test/", i)) // the time is too short for every second page
			cancel()
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1, 20s /3")
		if len(c.Denied) != 2 || !errors.Is(c.Denied["http://a.test/2"], context.DeadlineExceeded) {
			t.Errorf("OnDenied got %v", c.Denied)
		}
	})
}
