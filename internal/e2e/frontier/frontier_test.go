package frontier

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// TestFrontier checks the schedule of crawls that follow links, and where their pages end.
func TestFrontier(t *testing.T) {
	linked := func(robots string) robotstest.Site {
		return robotstest.Site{
			"/robots.txt": robots,
			"/0":          robotstest.Page("/1", "/closed"),
			"/1":          robotstest.Page("/0", "/2"),
			"/2":          robotstest.Page("/3"),
			"/3":          robotstest.Page("/missing"),
		}
	}
	for name, test := range map[string]struct {
		robots, schedule, states string
	}{
		"a delay": {
			robots:   "User-agent: *\nCrawl-delay: 2\nDisallow: /closed",
			schedule: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3, 10s /missing",
			states:   "done: /0 /1 /2 /3 /missing, denied: /closed",
		},
		"no delay": {
			robots: kit.NoDenys,
			states: "done: /0 /1 /2 /3 /closed /missing",
		},
		"everything is denied": {
			robots:   "User-agent: *\nDisallow: /",
			schedule: "0s /robots.txt",
			states:   "denied: /0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": linked(test.robots)}, func(t *testing.T, web *robotstest.Web) {
				store := kit.NewMemoryStore()
				c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store))
				c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
				kit.Must(t, c.Visit("http://a.test/0"))
				c.Wait()
				if test.schedule != "" {
					kit.WantSchedule(t, web, "a.test", test.schedule)
				}
				kit.WantStates(t, store, test.states)
			})
		})
	}
}

// The callbacks of OnRequest are called twice for a page that waits, and can tell the calls apart.
func TestFrontierOnRequest(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(kit.NewMemoryStore()))
		var calls []string
		c.OnRequest(func(r *colly.Request) {
			waited := r.Ctx.Get(collyrobots.CtxWaited) == r.URL.String()
			c.Note(func() {
				calls = append(calls, fmt.Sprint(r.URL.Path, " ", r.IsAbort(), " ", waited, " ", r.Depth, " ", r.Headers.Get("X"), " ", r.Ctx.Get("key")))
			})
		})
		ctx := colly.NewContext()
		ctx.Put("key", "value")
		for i := range 2 {
			kit.Must(t, c.Request("GET", fmt.Sprint("http://a.test/", i), nil, ctx, http.Header{"X": {"y"}}))
			synctest.Wait()
		}
		c.Wait()
		want := []string{"/0 false false 1 y value", "/1 false true 1 y value", "/1 true false 1 y value"}
		slices.Sort(calls) // the last callback of /0 is called when robots.txt is there
		if fmt.Sprint(calls) != fmt.Sprint(want) {
			t.Errorf("the calls were\n\t%v\nwant\n\t%v", calls, want)
		}
	})
}

// TestFrontierLosesNoLink checks that a page is not done before the pages that it links to are
// recorded. If the plugin is closed before, the page waits for the next run.
func TestFrontierLosesNoLink(t *testing.T) {
	for name, want := range map[string]string{"the link arrives": "done: / /child", "Close comes first": "waits: /"} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"a.test": {"/robots.txt": kit.NoDenys, "/": robotstest.Page("/child"), "/child": robotstest.Page()},
			}, func(t *testing.T, web *robotstest.Web) {
				store := kit.NewMemoryStore()
				unblock := make(chan struct{})
				c := kit.Start(t, web, nil)
				c.Robots.Close()
				c.Async = true
				c.OnRequest(func(r *colly.Request) {
					if r.URL.Path == "/child" {
						<-unblock
					}
				})
				robots, err := collyrobots.WithRobots(c.Collector.Collector, collyrobots.Frontier(store))
				kit.Must(t, err)
				c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
				kit.Must(t, c.Visit("http://a.test/"))
				time.Sleep(time.Second)
				kit.WantStates(t, store, "out: /")
				if name == "Close comes first" {
					kit.Must(t, robots.Close())
				}
				close(unblock)
				c.Wait()
				kit.WantStates(t, store, want)
			})
		})
	}
}

// Stats and events show the pages that wait on disk.
func TestFrontierStats(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(5, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		h := kit.Hear(report.EventWaiting)
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), h.On())
		for i := range 5 {
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
			synctest.Wait()
		}
		time.Sleep(time.Second)
		s := c.Robots.Stats()
		want := urlstore.Stats{Waiting: 4, Out: 1, Hosts: 1, Oldest: time.Now().Add(-time.Second)}
		if s.Frontier == nil || *s.Frontier != want {
			t.Errorf("got %+v, want %+v", s.Frontier, want)
		}
		if host := s.Hosts[0]; host.OnDisk != 4 || host.Waiting != 1 || host.TimeLeft(time.Now()) != 9*time.Second {
			t.Errorf("%d pages wait on disk and %d in memory for %v, want 4 and 1 for 9s", host.OnDisk, host.Waiting, host.TimeLeft(time.Now()))
		}
		kit.Survives(t, s)
		c.Wait()
		kit.Must(t, c.Robots.Close())
		var counts []int
		for _, e := range h.Events {
			if e.OnDisk {
				counts = append(counts, e.Count)
			}
		}
		if fmt.Sprint(counts) != "[2 3 4 5]" {
			t.Errorf("the events have the counts %v of waiting pages", counts)
		}
	})
}

// If the store fails, the crawl goes on without it.
func TestFrontierFails(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		h := kit.Hear(report.EventUnrecorded)
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), h.On())
		for i := range 4 {
			if i == 2 {
				store.FailWith(errors.New("disk full"))
			}
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
			synctest.Wait()
		}
		c.Wait()
		if got := web.Log("a.test").SortedURIs(); fmt.Sprint(got) != "[/0 /1 /2 /3 /robots.txt]" {
			t.Errorf("fetched %v", got)
		}
		s := c.Robots.Stats().Frontier
		if s.Unrecorded != 2 || s.Error != "disk full" || s.Done != 2 {
			t.Errorf("got %+v", s)
		}
		c.BadStore = true
		if err := c.Robots.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Close returned %v, want the error of the urlstore.Store", err)
		}
		if len(h.Events) != 2 || h.Events[0].URL != "http://a.test/2" || h.Events[0].Err.Error() != "disk full" {
			t.Errorf("got events %+v", h.Events)
		}
		if n := strings.Count(c.Logged.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors were logged", n)
		}
	})
}

// TestFrontierQueue crawls with colly/queue, in two runs.
func TestFrontierQueue(t *testing.T) {
	for name, add := range map[string]func(q *queue.Queue, r *colly.Request, link string) error{
		"AddURL": func(q *queue.Queue, r *colly.Request, link string) error { return q.AddURL(r.AbsoluteURL(link)) },
		"AddRequest": func(q *queue.Queue, r *colly.Request, link string) error {
			next, err := r.New("GET", r.AbsoluteURL(link), nil)
			if err != nil {
				return err
			}
			return q.AddRequest(next)
		},
	} {
		for _, option := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", option), func(t *testing.T) {
				sites := make(robotstest.Sites)
				for _, host := range []string{"a.test", "b.test"} {
					site := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /closed"}
					for i := range 6 {
						site[fmt.Sprint("/", i)] = robotstest.Page(fmt.Sprint("/", i+1), fmt.Sprint("/", i), "http://b.test/0", "http://a.test/3", "/closed")
					}
					site["/6"] = robotstest.Page()
					sites[host] = site
				}
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					store := kit.NewMemoryStore()
					var interrupted atomic.Bool
					crawl := func(store *kit.MemoryStore) *kit.Crawl {
						var opts []collyrobots.Option
						if option {
							opts = append(opts, collyrobots.Frontier(store))
						}
						c := kit.Start(t, web, nil, opts...)
						storage, err := c.Robots.Queue(store)
						kit.Must(t, err)
						q, err := queue.New(4, storage)
						kit.Must(t, err)
						kit.Must(t, q.AddURL("http://a.test/0"))
						c.OnHTML("a[href]", func(e *colly.HTMLElement) { kit.Must(t, add(q, e.Request, e.Attr("href"))) })
						c.OnScraped(func(r *colly.Response) {
							if store.Stats().Done >= 4 && interrupted.CompareAndSwap(false, true) {
								go c.Robots.Close()
							}
						})
						kit.Must(t, q.Run(c.Collector.Collector))
						return c
					}
					crawl(store).Robots.Close()
					if s := store.Stats(); s.Waiting == 0 {
						t.Errorf("after the first run: %+v\n%v", s, store.States())
					}
					store.Close()
					time.Sleep(2 * time.Second)
					next := store.Reopen()
					began := time.Now()
					crawl(next)
					if s := next.Stats(); s.Waiting != 0 || s.Out != 0 || s.Done != 14 || s.Denied != 2 {
						t.Errorf("after the second run: %+v\n%v", s, next.States())
					}
					if took := time.Since(began); took > 20*time.Second {
						t.Errorf("the second run took %v", took)
					}
				})
			})
		}
	}
}

// A page that a callback aborts is done at once, whether the callback was registered before Attach
// or after it, and whether the page has waited.
func TestFrontierAborted(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
				store := kit.NewMemoryStore()
				c := kit.Start(t, web, nil)
				c.Robots.Close()
				c.Async = true
				abort := func(r *colly.Request) {
					if r.URL.Path == "/1" || r.URL.Path == "/3" && r.Ctx.Get(collyrobots.CtxWaited) != "" {
						r.Abort()
					}
				}
				if !late {
					c.OnRequest(abort)
				}
				robots, err := collyrobots.WithRobots(c.Collector.Collector, collyrobots.Frontier(store))
				kit.Must(t, err)
				defer robots.Close()
				if late {
					c.OnRequest(abort)
				}
				for i := range 4 {
					kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
					synctest.Wait()
				}
				began := time.Now()
				c.Wait()
				want := "done: /0 /2 /3" // a page that is aborted before the plugin sees it is not recorded
				if late {
					want = "done: /0 /1 /2 /3"
				}
				kit.WantStates(t, store, want)
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("Wait took %v", took)
				}
			})
		})
	}
}

// A page of a queue that the collector refuses must not make the collector accept a page again that
// it has visited.
func TestFrontierQueueRefused(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, []colly.CollectorOption{colly.MaxDepth(1)}, collyrobots.Frontier(store))
		kit.Must(t, c.Visit("http://a.test/0"))
		storage, err := c.Robots.Queue(store)
		kit.Must(t, err)
		q, err := queue.New(1, storage)
		kit.Must(t, err)
		u, err := url.Parse("http://a.test/0")
		kit.Must(t, err)
		kit.Must(t, q.AddRequest(&colly.Request{URL: u, Method: http.MethodGet, Depth: 2, Headers: &http.Header{}, Ctx: colly.NewContext()}))
		kit.Must(t, q.Run(c.Collector.Collector))
		visited := (*colly.AlreadyVisitedError)(nil)
		if err := c.Visit("http://a.test/0"); !errors.As(err, &visited) {
			t.Errorf("the second Visit returned %v, want an AlreadyVisitedError", err)
		}
	})
}

// A slowStore records no page until it is opened.
type slowStore struct {
	*kit.MemoryStore
	opened chan struct{}
}

func (s slowStore) Add(p *urlstore.Page) (added bool, err error) {
	<-s.opened
	return s.MemoryStore.Add(p)
}

// TestFrontierBoundsArrivals visits many pages in a loop while none of them is recorded. Visit must
// wait, so that the pages do not need a goroutine each.
func TestFrontierBoundsArrivals(t *testing.T) {
	const pages, most = 2000, 1024
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(pages, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		store := slowStore{MemoryStore: kit.NewMemoryStore(), opened: make(chan struct{})}
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store))
		before := runtime.NumGoroutine()
		ended := make(chan error, 1)
		go func() {
			var err error
			for i := range pages {
				err = errors.Join(err, c.Visit(fmt.Sprintf("http://a.test/%d", i)))
			}
			ended <- err
		}()
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > most+10 {
			t.Errorf("%d goroutines wait for the urlstore.Store, want %d at most", n, most)
		}
		close(store.opened)
		kit.Must(t, <-ended)
		c.Wait()
		if s := store.Stats(); s.Done != pages {
			t.Errorf("%d pages are done, want %d", s.Done, pages)
		}
	})
}
