package collectors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// slowPages is a site whose pages take five seconds.
func slowPages(robots string) robotstest.Site {
	return robotstest.Site{"/robots.txt": robots, "*": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Second)
		fmt.Fprint(w, robotstest.Page())
	})}
}

// TestShutdownWaitsForRequests ends a crawl with one page on the wire and one that waits, at one
// second. Close returns at once. Shutdown returns when the page is there, or when its context ends.
func TestShutdownWaitsForRequests(t *testing.T) {
	end := func(after time.Duration) func(*collyrobots.Plugin) error {
		return func(p *collyrobots.Plugin) error {
			ctx, cancel := context.WithTimeout(context.Background(), after)
			defer cancel()
			return p.Shutdown(ctx)
		}
	}
	for _, tc := range []struct {
		name string
		site robotstest.Site
		end  func(*collyrobots.Plugin) error
		took time.Duration
		err  error
	}{
		{name: "Close", site: slowPages(""), end: (*collyrobots.Plugin).Close},
		{name: "Shutdown", site: slowPages(""), end: end(time.Hour), took: 4 * time.Second},
		{name: "the context ends", site: slowPages(""), end: end(time.Second), took: time.Second, err: context.DeadlineExceeded},
		{name: "the server hangs", site: robotstest.Site{"/robots.txt": "", "*": kit.Hang}, end: end(time.Second), took: time.Second, err: context.DeadlineExceeded},
		{name: "the context has ended", site: slowPages(""), end: end(0), err: context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
				kit.InBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
					c := start(t, web, kit.Async, collyrobots.MinDelay(10*time.Second))
					c.SetRequestTimeout(20 * time.Second)
					c.Visit("http://a.test/1")
					c.Visit("http://a.test/2")
					began := time.Now()
					time.Sleep(11 * time.Second)
					started := len(web.Log("a.test"))
					err := tc.end(c.Robots)
					took := time.Since(began) - 11*time.Second
					if late := took - tc.took; late < 0 || late > 10*time.Millisecond || !errors.Is(err, tc.err) {
						t.Errorf("returned %v after %v, want %v after %v", err, took, tc.err, tc.took)
					}
					if err := c.Robots.Shutdown(t.Context()); tc.took == 4*time.Second && err != nil {
						t.Errorf("a second Shutdown returned %v", err)
					}
					c.Wait()
					if n := len(web.Log("a.test")); n != started || n != 2 {
						t.Errorf("%d requests, %d of them after the end; want 2 and 0", n, n-started)
					}
					if err := c.Visit("http://a.test/3"); err == nil {
						c.Wait()
						err = c.Errs["http://a.test/3"]
						if !errors.Is(err, collyrobots.ErrClosed) {
							t.Errorf("a page after the end got %v, want ErrClosed", err)
						}
					}
				})
			})
		})
	}
}

// TestShutdownRecordsResults ends a crawl while a page of a sitemap is on the wire. After Shutdown, a later
// run does not fetch the page again, even if the process ends at once. Close does not wait for it.
func TestShutdownRecordsResults(t *testing.T) {
	for name, want := range map[string]int{"Close": 2, "Shutdown": 1} {
		t.Run(name, func(t *testing.T) {
			site := slowPages("Sitemap: http://a.test/map.xml")
			site["/map.xml"] = robotstest.Sitemap("http://a.test/1")
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				s := &fullStore{Store: store.NewMemory()}
				start := func() *kit.Crawl {
					c := kit.Start(t, web, kit.Async, collyrobots.Store(s), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
					c.Visit("http://a.test/")
					return c
				}
				c := start()
				time.Sleep(6 * time.Second) // one second after the start of /1
				if name == "Close" {
					kit.Must(t, c.Robots.Close())
				} else {
					kit.Must(t, c.Robots.Shutdown(t.Context()))
				}
				s.killed.Store(true)
				c.Wait()
				s.killed.Store(false)
				start().Wait()
				got := 0
				for _, r := range web.Log("a.test") {
					if r.URI == "/1" {
						got++
					}
				}
				if got != want {
					t.Errorf("the page was requested %d times, want %d", got, want)
				}
			})
		})
	}
}

// TestShutdownRecordsFrontier checks that a page that is on the wire is done in the urlstore.Store when
// Shutdown returns, that its link is recorded, and that a page that waits stays there.
func TestShutdownRecordsFrontier(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": slowPages("")}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(5 * time.Second)
			fmt.Fprint(w, robotstest.Page("/3"))
		}))
		f := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(f), collyrobots.MinDelay(10*time.Second))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		c.Visit("http://a.test/1")
		time.Sleep(time.Second)
		c.Visit("http://a.test/2")
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		kit.Must(t, c.Robots.Shutdown(ctx))
		kit.WantStates(t, f, "done: /1, waits: /2 /3")
		c.Wait()
	})
}

// TestShutdownInCallbacks calls Close and Shutdown in callbacks, and from several goroutines at once.
func TestShutdownInCallbacks(t *testing.T) {
	for name, end := range map[string]func(*collyrobots.Plugin) error{
		"Close":    (*collyrobots.Plugin).Close,
		"Shutdown": func(p *collyrobots.Plugin) error { return p.Shutdown(context.Background()) },
		"both at once": func(p *collyrobots.Plugin) error {
			var all sync.WaitGroup
			errs := make([]error, 6)
			for i := range errs {
				all.Go(func() {
					if i%2 == 0 {
						errs[i] = p.Close()
						return
					}
					errs[i] = p.Shutdown(context.Background())
				})
			}
			all.Wait()
			return errors.Join(errs...)
		},
	} {
		for hook, register := range map[string]func(*colly.Collector, func()){
			"OnRequest":  func(c *colly.Collector, f func()) { c.OnRequest(func(*colly.Request) { f() }) },
			"OnResponse": func(c *colly.Collector, f func()) { c.OnResponse(func(*colly.Response) { f() }) },
			"OnScraped":  func(c *colly.Collector, f func()) { c.OnScraped(func(*colly.Response) { f() }) },
		} {
			t.Run(name+"/"+hook, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "")}, func(t *testing.T, web *robotstest.Web) {
					c := kit.Start(t, web, kit.Async)
					called := 0
					register(c.Collector.Collector, func() {
						called++
						kit.Must(t, end(c.Robots))
					})
					c.Visit("http://a.test/1")
					c.Wait()
					if called != 1 {
						t.Errorf("the callback was called %d times, want once", called)
					}
				})
			})
		}
	}
}

// TestShutdownOfItself calls Shutdown in a callback of a page that a sitemap lists. It waits for this page
// until its context ends.
func TestShutdownOfItself(t *testing.T) {
	site := robotstest.Site{"/robots.txt": "Sitemap: http://a.test/map.xml", "/": robotstest.Page(), "/1": robotstest.Page(), "/map.xml": robotstest.Sitemap("http://a.test/1")}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		var err error
		began := time.Now()
		c.OnResponse(func(r *colly.Response) {
			if r.Request.URL.Path == "/1" {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				err = c.Robots.Shutdown(ctx)
			}
		})
		c.Visit("http://a.test/")
		c.Wait()
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown returned %v, and the crawl took %v; want the end of the context after 1s", err, took)
		}
	})
}

// A fullStore is a Store that may be full.
type fullStore struct {
	store.Store
	full   bool        // writes fail
	killed atomic.Bool // writes have no effect, as after the end of the process
}

var errFull = errors.New("no space left on device")

func (s *fullStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	switch {
	case s.full:
		return errFull
	case s.killed.Load():
		return nil
	}
	return s.Store.Update(ctx, key, ttl, f)
}

// TestCloseReturnsErrorsOfStore checks that Close and Shutdown return the errors of the records that are
// not written, each time, and not those of records that a later write has replaced.
func TestCloseReturnsErrorsOfStore(t *testing.T) {
	for _, recovers := range []bool{false, true} {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, ""), "b.test": robotstest.Pages(1, "")}, func(t *testing.T, web *robotstest.Web) {
			s := &fullStore{Store: store.NewMemory(), full: true}
			c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
			c.WithTransport(web.Transport())
			p, err := collyrobots.WithRobots(c, collyrobots.Store(s), collyrobots.Logger(slog.New(slog.DiscardHandler)))
			kit.Must(t, err)
			want := []string{"robots:http://a.test", "robots:http://b.test"}
			for run := range 2 {
				kit.Must(t, c.Visit("http://a.test/0"))
				kit.Must(t, c.Visit("http://b.test/0"))
				if recovers && run == 0 {
					s.full = false
					want = nil
					time.Sleep(48 * time.Hour) // both files expire, and are read and written again
				}
			}
			for _, err := range []error{p.Close(), p.Shutdown(t.Context()), p.Close()} {
				if got := regexp.MustCompile(`robots:[a-z:/.]+`).FindAllString(fmt.Sprint(err), -1); !slices.Equal(got, want) || !recovers && !errors.Is(err, errFull) {
					t.Errorf("Close returned %v, want the errors of the records %q", err, want)
				}
			}
		})
	}
}

// TestCloseReturnsErrorOfFrontier checks that Close returns the error of a urlstore.Store.
func TestCloseReturnsErrorOfFrontier(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")}, func(t *testing.T, web *robotstest.Web) {
		f := kit.NewMemoryStore()
		f.FailWith(errFull)
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		c.WithTransport(web.Transport())
		p, err := collyrobots.WithRobots(c, collyrobots.Frontier(f), collyrobots.Logger(slog.New(slog.DiscardHandler)))
		kit.Must(t, err)
		kit.Must(t, c.Visit("http://a.test/0"))
		c.Wait()
		if err := p.Close(); !errors.Is(err, errFull) {
			t.Errorf("Close returned %v, want the error of the urlstore.Store", err)
		}
	})
}
