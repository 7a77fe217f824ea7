package politeness

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestRetriesAreCheckedAgain checks that a request that is repeated obeys the robots.txt that is in
// force when its wait is over.
func TestRetriesAreCheckedAgain(t *testing.T) { kit.ForEachClient(t, testRetriesAreCheckedAgain) }

func testRetriesAreCheckedAgain(t *testing.T, start kit.Starter) {
	drops := func(out http.ResponseWriter, r *http.Request) { kit.Drop(out, r) }
	throttles := func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "240")
		out.WriteHeader(http.StatusTooManyRequests)
	}
	cases := map[string]struct {
		answer http.HandlerFunc // to the first request for the page
		delay  string
		want   string
	}{
		"RetryThrottled": {
			answer: throttles,
			want:   "0s /robots.txt, 0s /0, 0s /page, 4m1s /robots.txt",
		},
		"net/http": {
			answer: drops,
			delay:  "Crawl-delay: 600\n",
			// When its wait is over, the file has expired. The turn is used to read the file again.
			want: "0s /robots.txt, 10m0s /0, 20m0s /robots.txt, 30m0s /page, 50m0s /robots.txt",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Bool
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": func(out http.ResponseWriter, r *http.Request) {
					text := "User-agent: *\n" + tc.delay
					if sent.Load() {
						text += "Disallow: /page\n"
					}
					kit.RobotsFor(2*time.Minute, text)(out, r)
				},
				"/page": func(out http.ResponseWriter, r *http.Request) {
					if sent.Swap(true) {
						io.WriteString(out, "again")
						return
					}
					tc.answer(out, r)
				},
				"/0": robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				told := kit.Hear(report.EventStarted)
				c := start(t, web, nil, told.On(), collyrobots.RetryThrottled(1))
				kit.Must(t, c.Visit("http://a.test/0"))
				err := c.Visit("http://a.test/page")
				if denied := (*collyrobots.DeniedError)(nil); !errors.As(err, &denied) {
					t.Errorf("Visit returned %v, want a DeniedError", err)
				}
				if denied := (*collyrobots.DeniedError)(nil); !errors.As(c.Denied["http://a.test/page"], &denied) {
					t.Errorf("OnDenied got %v, want a DeniedError for /page", c.Denied)
				}
				kit.WantSchedule(t, web, "a.test", tc.want)
				s := c.Robots.Stats().Totals
				if n := len(told.Wait()); s.Requests != len(web.Log("")) || n != len(web.Log("")) {
					t.Errorf("got %d requests in Stats and %d events, want %d", s.Requests, n, len(web.Log("")))
				}
			})
		})
	}
}

// TestRetryOfSitemapIsCheckedAgain checks the same for a sitemap that net/http sends again. Its
// turns at 20m and 50m are given back, because robots.txt has expired by then.
func TestRetryOfSitemapIsCheckedAgain(t *testing.T) {
	var sent atomic.Bool
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": func(out http.ResponseWriter, r *http.Request) {
			text := "User-agent: *\nCrawl-delay: 600\nSitemap: http://a.test/map.xml\n"
			if sent.Load() {
				text += "Disallow: /map.xml\n"
			}
			kit.RobotsFor(2*time.Minute, text)(out, r)
		},
		"/map.xml": func(out http.ResponseWriter, r *http.Request) {
			if !sent.Swap(true) {
				kit.Drop(out, r)
			}
			kit.RobotsFor(time.Hour, "http://a.test/1\n")(out, r)
		},
		"*": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10m0s /0, 30m0s /robots.txt, 40m0s /map.xml, 1h0m0s /robots.txt")
		if s := c.Robots.Stats().Sitemaps; s.Files != 0 || s.Fed != 0 {
			t.Errorf("got stats %+v, want no sitemap that was read", s)
		}
	})
}

// TestWaitingPagesSurviveAnOutage checks that pages which wait while robots.txt cannot be read are
// denied only if their turn comes during that time.
func TestWaitingPagesSurviveAnOutage(t *testing.T) {
	for name, failure := range map[string]http.HandlerFunc{
		"502":  func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusBadGateway) },
		"drop": kit.Drop,
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			good := kit.RobotsFor(time.Hour, "User-agent: *\nCrawl-delay: 600\n")
			kit.InBubble(t, robotstest.Sites{"a.test": {"*": robotstest.Page(), "/robots.txt": func(out http.ResponseWriter, r *http.Request) {
				if failing.Load() {
					failure(out, r)
				} else {
					good(out, r)
				}
			}}}, func(t *testing.T, web *robotstest.Web) {
				var last time.Time
				failed := 0
				c := kit.Start(t, web, kit.Async)
				c.OnError(func(r *colly.Response, err error) {
					c.Note(func() { c.Denied[r.Request.URL.String()] = err })
				})
				began := time.Now()
				for i := range 60 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				time.Sleep(30 * time.Minute)
				failing.Store(true)
				for range 120 {
					time.Sleep(time.Minute)
					c.Note(func() {
						if n := len(c.Denied); n > failed {
							if n > failed+1 || !last.IsZero() && time.Since(last) < 9*time.Minute {
								t.Errorf("%d more pages were denied at %v, %v after the last one", n-failed, time.Since(began), time.Since(last))
							}
							failed, last = n, time.Now()
						}
					})
				}
				failing.Store(false)
				c.Wait()
				kit.WantNoSooner(t, web, "a.test", 10*time.Minute, len(web.Log("a.test")))
				if lost := len(c.Denied); lost == 0 || lost > 16 || len(c.Pages)+lost != 60 {
					t.Errorf("%d pages were denied and %d arrived, want at most 16 denied and 60 in total", lost, len(c.Pages))
				}
			})
		})
	}
}

// TestUncacheableFileIsReadOnceForEachPage checks that a robots.txt that must not be cached is read
// at most once for each page.
func TestUncacheableFileIsReadOnceForEachPage(t *testing.T) {
	kit.ForEachClient(t, testUncacheableFileIsReadOnceForEachPage)
}

func testUncacheableFileIsReadOnceForEachPage(t *testing.T, start kit.Starter) {
	robots := func(delay string) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Cache-Control", "no-store")
			io.WriteString(out, "User-agent: *\n"+delay)
		}
	}
	cases := map[string]struct {
		delay   string
		options []collyrobots.Option
	}{
		"Crawl-delay":  {delay: "Crawl-delay: 90\n"},
		"MinDelay":     {options: []collyrobots.Option{collyrobots.MinDelay(90 * time.Second)}},
		"DelayFromEnd": {delay: "Crawl-delay: 90\n", options: []collyrobots.Option{collyrobots.DelayFromEnd(true)}},
	}
	for name, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots(tc.delay), "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
					c := start(t, web, options, tc.options...)
					for i := range 5 {
						c.Visit(fmt.Sprint("http://a.test/", i))
						time.Sleep(time.Millisecond)
					}
					c.Wait()
					kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1m30s /0, 3m0s /robots.txt, 4m30s /1, 6m0s /robots.txt, 7m30s /2, "+
						"9m0s /robots.txt, 10m30s /3, 12m0s /robots.txt, 13m30s /4")
				})
			})
		}
	}
}

// TestWaitAfterRobotsTxtWasReadAgainHoldsNoSlot checks that a page holds no slot of a LimitRule
// while it waits for another turn, because its first turn was used to read robots.txt again.
func TestWaitAfterRobotsTxtWasReadAgainHoldsNoSlot(t *testing.T) {
	site := robotstest.Site{"/robots.txt": kit.RobotsFor(time.Minute, "User-agent: *\nCrawl-delay: 7200\n"), "*": robotstest.Page()}
	kit.InBubble(t, robotstest.Sites{"slow.test": site, "fast.test": robotstest.Pages(9, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
		for i := range 3 {
			c.Visit(fmt.Sprint("http://slow.test/", i))
		}
		time.Sleep(5 * time.Hour) // the second page has read robots.txt again and waits
		began := time.Now()
		for i := range 9 {
			c.Visit(fmt.Sprint("http://fast.test/", i))
		}
		time.Sleep(time.Second)
		if n := len(web.Log("fast.test")); n != 10 {
			t.Errorf("%d requests to fast.test within %v, want 10", n, time.Since(began))
		}
		c.Wait()
	})
}
