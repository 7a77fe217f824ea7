package collectors

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/sitemap"
)

// The tests of this file check that a crawl does not hang: it must not wait for itself, for a
// closed plugin, or for a server whose response never ends.

// TestVisitsInOnResponseHeaders has a synchronous spider that visits a host while it gets the
// headers of a response of that host. The callback is registered before Attach, as the
// documentation says, or after.
func TestVisitsInOnResponseHeaders(t *testing.T) {
	inHeaders := func(c *colly.Collector, visit func(path string)) {
		c.OnResponseHeaders(func(r *colly.Response) { visit(r.Request.URL.Path) })
	}
	inRedirect := func(c *colly.Collector, visit func(path string)) {
		c.SetRedirectHandler(func(r *http.Request, _ []*http.Request) error { visit(r.URL.Path); return nil })
	}
	for _, callback := range []struct {
		name     string
		register func(c *colly.Collector, visit func(path string))
	}{{"OnResponseHeaders", inHeaders}, {"redirect handler", inRedirect}} {
		for _, order := range []string{"before", "after", "in OnRequest"} {
			for name, opts := range map[string][]collyrobots.Option{
				"": nil, "MaxInFlight": {collyrobots.MaxInFlight(1)}, "DelayFromEnd": {collyrobots.DelayFromEnd()},
			} {
				t.Run(fmt.Sprint(callback.name, " ", order, " ", name), func(t *testing.T) {
					kit.InBubble(t, robotstest.Sites{"a.test": {
						"/robots.txt": "User-agent: *\nCrawl-delay: 2", "/0": robotstest.Redirect("/1"), "/1": robotstest.Page(), "/2": robotstest.Page(), "/3": robotstest.Page(),
					}}, func(t *testing.T, web *robotstest.Web) {
						c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
						c.WithTransport(web.Transport())
						c.SetRequestTimeout(0)
						var failed []error
						c.OnError(func(_ *colly.Response, err error) { failed = append(failed, err) })
						register := func() {
							callback.register(c, func(path string) {
								if path == "/1" {
									c.Visit("http://a.test/2")
								}
							})
						}
						if order == "before" {
							register()
						}
						if order == "in OnRequest" {
							var once sync.Once
							c.OnRequest(func(*colly.Request) { once.Do(register) })
						}
						_, err := collyrobots.WithRobots(c, opts...)
						kit.Must(t, err)
						if order == "after" {
							register()
						}
						kit.Must(t, c.Visit("http://a.test/0"))
						kit.Must(t, c.Visit("http://a.test/3"))
						kit.WantPace(t, web, "a.test", 2*time.Second, 5)
						if len(failed) > 0 {
							t.Errorf("got errors %v, want none", failed)
						}
					})
				})
			}
		}
	}
}

// TestCloseEndsEveryWait checks that all requests that wait end at once with ErrClosed when the
// plugin is closed, and that OnDenied is called once for each.
func TestCloseEndsEveryWait(t *testing.T) {
	long := "User-agent: *\nCrawl-delay: 20\n"
	busy := http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "3600")
		out.WriteHeader(http.StatusTooManyRequests)
	})
	drip := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(out, strings.Repeat(" ", 10))
			http.NewResponseController(out).Flush()
			time.Sleep(time.Second)
		}
	})
	many := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\nSitemap: http://a.test/map.xml\n", "/": robotstest.Page()}
	var locs []string
	for i := range 50 {
		locs = append(locs, fmt.Sprint("http://a.test/", i))
		many[fmt.Sprint("/", i)] = robotstest.Page()
	}
	many["/map.xml"] = robotstest.Sitemap(locs...)
	index := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\nSitemap: http://a.test/map.xml\n", "/": robotstest.Page(), "*": robotstest.Sitemap()}
	locs = nil
	for i := range 50 {
		locs = append(locs, fmt.Sprint("http://a.test/", i, ".xml"))
	}
	index["/map.xml"] = robotstest.SitemapIndex(locs...)
	cases := []struct {
		name  string
		site  robotstest.Site
		opts  []collyrobots.Option
		limit *colly.LimitRule
		pages []string      // the pages to visit; if nil, /0 to /9
		after time.Duration // the time of Close; if 0, 25 s
		asked int           // the requests to the host until then; none may follow
	}{
		{name: "delay", site: robotstest.Pages(10, long), asked: 2},
		{name: "Retry-After", asked: 2, site: robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": busy, "*": busy}},
		{name: "Retry-After of robots.txt", asked: 1, site: robotstest.Site{"/robots.txt": busy}},
		{name: "redirects", asked: 2, site: robotstest.Site{"/robots.txt": long, "*": robotstest.Redirect("/x")}},
		{name: "robots.txt without a response", asked: 1, after: 5 * time.Second, site: robotstest.Site{"/robots.txt": kit.Hang}},
		{name: "robots.txt that is very slow", asked: 1, after: 5 * time.Second, site: robotstest.Site{"/robots.txt": drip}},
		{name: "robots.txt that is read again", asked: 3, after: 42 * time.Second, site: robotstest.Site{"/robots.txt": rereads(kit.Hang, "User-agent: *\nCrawl-delay: 20\n"), "*": robotstest.Page()}},
		{name: "LimitRule", asked: 2, site: robotstest.Pages(10, long), limit: &colly.LimitRule{DomainGlob: "*", Parallelism: 2}},
		{name: "sitemap", asked: 3, after: 45 * time.Second, site: many, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"}},
		{name: "sitemaps", asked: 4, after: 65 * time.Second, site: index, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"}},
		{name: "sitemap that is very slow", asked: 3, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"},
			site: robotstest.Site{"/robots.txt": "Sitemap: http://a.test/map.xml", "/": robotstest.Page(), "/map.xml": drip}},
	}
	for _, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
					var mu sync.Mutex
					told, failed := map[string]int{}, map[string]error{}
					c := kit.Start(t, web, options, append(tc.opts, collyrobots.OnDenied(func(r *colly.Request, err error) {
						mu.Lock()
						defer mu.Unlock()
						told[r.URL.Path]++
						if !errors.Is(err, collyrobots.ErrClosed) {
							t.Errorf("OnDenied got %s with %v, want ErrClosed", r.URL, err)
						}
					}))...)
					c.Impolite = true // only Close is tested
					c.OnError(func(r *colly.Response, err error) {
						mu.Lock()
						defer mu.Unlock()
						failed[r.Request.URL.Path] = err
					})
					kit.Limited(t, c, tc.limit)
					pages := tc.pages
					for i := 0; len(pages) < 10 && tc.pages == nil; i++ {
						pages = append(pages, fmt.Sprint("/", i))
					}
					over, after := make(chan struct{}), tc.after
					if after == 0 {
						after = 25 * time.Second
					}
					var crawl sync.WaitGroup
					for _, page := range pages {
						crawl.Go(func() {
							c.Visit("http://a.test" + page)
						})
					}
					go func() { crawl.Wait(); c.Wait(); close(over) }()
					time.Sleep(after)
					synctest.Wait()
					closed := time.Now()
					kit.Must(t, c.Robots.Close())
					<-over
					if took := time.Since(closed); took != 0 {
						t.Errorf("the crawl ended %v after Close", took)
					}
					if got := len(web.Log("a.test")); got != tc.asked {
						t.Errorf("%d requests to a.test, want %d:\n%s", got, tc.asked, web.Log("a.test"))
					}
					for page, n := range told {
						if n != 1 {
							t.Errorf("OnDenied was called %d times for %s, want 1", n, page)
						}
					}
					came := len(c.Pages)
					for page, err := range failed {
						if !errors.Is(err, collyrobots.ErrClosed) && !errors.Is(err, colly.ErrAbortedBeforeRequest) {
							came++ // a 429
						} else if told[page] != 1 {
							t.Errorf("%s failed with %v, but OnDenied was not called", page, err)
						}
					}
					if tc.pages == nil && len(told)+came != 10 {
						t.Errorf("OnDenied was called for %d pages, and %d arrived, want 10 in total", len(told), came)
					}
				})
			})
		}
	}
}

// rereads returns a handler for a robots.txt that is fresh for ten seconds. After the first second
// of a bubble, it calls again instead.
func rereads(again http.HandlerFunc, robots string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) > time.Second {
			again(out, r)
			return
		}
		out.Header().Set("Cache-Control", "max-age=10")
		fmt.Fprint(out, robots)
	}
}

// TestCloseInCallbacks checks that Close may be called in every function that the plugin calls. In
// a listener it takes five seconds, because it waits for the listener.
func TestCloseInCallbacks(t *testing.T) {
	type closing struct {
		took time.Duration
		err  error
	}
	cases := map[string]struct {
		options func(stop func()) []collyrobots.Option
		listen  bool
		want    time.Duration
	}{
		"OnEvent": {
			options: func(stop func()) []collyrobots.Option {
				return []collyrobots.Option{collyrobots.OnEvent(func(collyrobots.Event) { stop() })}
			},
			want: 5 * time.Second,
		},
		"Listen": {
			listen: true,
			want:   5 * time.Second,
		},
		"OnDenied": {
			options: func(stop func()) []collyrobots.Option {
				return []collyrobots.Option{collyrobots.OnDenied(func(*colly.Request, error) { stop() })}
			},
		},
		"Keep": {
			options: func(stop func()) []collyrobots.Option {
				keep := func(sitemap.Entry) bool {
					stop()
					return true
				}
				return []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{Keep: keep})}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": rereads(func(out http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(out, "User-agent: *\nDisallow: /3\n")
				}, "User-agent: *\nDisallow: /3\nCrawl-delay: 20\nSitemap: http://a.test/map.xml"),
				"/map.xml": robotstest.Sitemap("http://a.test/9"),
				"*":        robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				var c *kit.Crawl
				var once sync.Once
				closed := make(chan closing, 1)
				stop := func() {
					once.Do(func() {
						began := time.Now()
						err := c.Robots.Close()
						closed <- closing{took: time.Since(began), err: err}
					})
				}
				var options []collyrobots.Option
				if tc.options != nil {
					options = tc.options(stop)
				}
				c = kit.Start(t, web, kit.Async, options...)
				c.Impolite = true
				if tc.listen {
					c.Robots.Listen(func(collyrobots.Event) { stop() })
				}
				for i := range 9 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				got := <-closed
				if got.err != nil || got.took != tc.want {
					t.Errorf("Close took %v and returned %v, want %v and nil", got.took, got.err, tc.want)
				}
				again := time.Now()
				kit.Must(t, c.Robots.Close())
				if took := time.Since(again); took != 0 {
					t.Errorf("the second Close took %v, want 0s", took)
				}
			})
		})
	}
}

// TestOnDeniedHoldsNoSlot checks that OnDenied is called once for a page that is denied on the
// wire, after the slot of its LimitRule is free again, so that OnDenied may visit the host.
func TestOnDeniedHoldsNoSlot(t *testing.T) {
	for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		t.Run(mode, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2\nDisallow: /4\n")}, func(t *testing.T, web *robotstest.Web) {
				var c *kit.Crawl
				denied := map[string]int{}
				c = kit.Start(t, web, options, collyrobots.OnDenied(func(r *colly.Request, err error) {
					c.Note(func() { denied[r.URL.Path]++ })
					if !errors.Is(err, colly.ErrRobotsTxtBlocked) {
						t.Errorf("OnDenied got %v", err)
					}
					c.Visit("http://a.test/5") // the callbacks of the plugin hold no slot
				}))
				c.SetRequestTimeout(0)
				kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
				c.OnRequest(func(r *colly.Request) {
					if r.URL.Path == "/1" {
						r.URL.Path = "/4" // checked only on the wire
					}
				})
				for i := range 3 {
					err := c.Visit(fmt.Sprint("http://a.test/", i))
					if refused := i == 1 && mode == "sync"; refused != errors.Is(err, colly.ErrRobotsTxtBlocked) || !refused && err != nil {
						t.Errorf("Visit of /%d returned %v", i, err)
					}
				}
				c.Wait()
				kit.WantSortedURIs(t, web, "a.test", "/0 /2 /5 /robots.txt")
				kit.WantNoSooner(t, web, "a.test", 2*time.Second, 4)
				if fmt.Sprint(denied) != "map[/4:1]" || len(c.Errs) != 1 || !errors.Is(c.Errs["http://a.test/4"], colly.ErrRobotsTxtBlocked) {
					t.Errorf("OnDenied got %v, OnError %v, want /4 once", denied, c.Errs)
				}
			})
		})
	}
}

// TestRetriesInOnDeniedEnd has an OnDenied that always calls Retry. The crawl must end.
func TestRetriesInOnDeniedEnd(t *testing.T) {
	for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		t.Run(mode, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"a.test": robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2\nDisallow: /1\nDisallow: /2\n"),
				"b.test": {"/robots.txt": 503},
			}, func(t *testing.T, web *robotstest.Web) {
				var c *kit.Crawl
				denied := map[string]int{}
				c = kit.Start(t, web, append([]colly.CollectorOption{colly.AllowURLRevisit()}, options...), collyrobots.OnDenied(func(r *colly.Request, _ error) {
					n := 0
					c.Note(func() { denied[r.URL.String()]++; n = denied[r.URL.String()] })
					if r.URL.Host == "b.test" && n == 5 {
						time.Sleep(48 * time.Hour) // robots.txt is read again
						web.Set("b.test", "/robots.txt", 502)
					}
					r.Headers.Set("User-Agent", fmt.Sprint("ExampleBot/", n))
					r.Retry()
				}))
				c.Impolite = true // Verify uses earlier robots.txt files
				for range 3 {     // three links to the same page are three requests
					c.Visit("http://a.test/1")
				}
				c.Visit("http://a.test/2")
				c.Visit("http://b.test/")
				c.Visit("http://a.test/3")
				c.Wait()
				if got, want := fmt.Sprint(denied), "map[http://a.test/1:30 http://a.test/2:10 http://b.test/:15]"; got != want {
					t.Errorf("OnDenied got %s, want %s", got, want)
				}
				if n := strings.Count(c.Logged.String(), "again and again"); n != 1 {
					t.Errorf("%d log records say so, want 1", n)
				}
				c.Visit("http://a.test/2")
				c.Wait()
				if n := denied["http://a.test/2"]; n != 20 {
					t.Errorf("OnDenied was called %d times for another request, want 10", n-10)
				}
			})
		})
	}
}

// TestEndlessBody checks that a body that never ends holds its host for a limited time if there is
// no timeout: for a minute, or for ten delays if that is longer. Under MaxInFlight there is no
// limit.
func TestEndlessBody(t *testing.T) { kit.ForEachClient(t, testEndlessBody) }

func testEndlessBody(t *testing.T, start kit.Starter) {
	endless := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(out, "more")
			http.NewResponseController(out).Flush()
			time.Sleep(time.Second)
		}
	})
	for _, tc := range []struct {
		delay int
		opts  []collyrobots.Option
		want  string
	}{
		{2, nil, "0s /robots.txt, 2s /0, 1m2s /1, 1m4s /2"},
		{10, nil, "0s /robots.txt, 10s /0, 1m50s /1, 2m0s /2"},
		{10, []collyrobots.Option{collyrobots.DelayFromEnd()}, "0s /robots.txt, 10s /0, 2m0s /1, 2m10s /2"},
		{2, []collyrobots.Option{collyrobots.MaxInFlight(1)}, "0s /robots.txt, 2s /0"},
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(6, fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", tc.delay))}, func(t *testing.T, web *robotstest.Web) {
			web.Set("a.test", "/0", endless)
			c := start(t, web, kit.Async, tc.opts...)
			c.SetRequestTimeout(0)
			var crawl context.CancelFunc
			c.Context, crawl = context.WithCancel(c.Context)
			for i := range 3 {
				c.Visit(fmt.Sprint("http://a.test/", i))
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			crawl()
			c.Wait()
			kit.WantSchedule(t, web, "a.test", tc.want)
		})
	}
}
