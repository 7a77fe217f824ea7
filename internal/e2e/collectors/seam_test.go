package collectors

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A service is a program that makes a collector for each of its jobs, with one client.
type service struct {
	*testing.T
	client *http.Client
	base   *colly.Collector // the collector to clone; nil if each collector is new
}

// collector returns a new collector of the service.
func (s *service) collector() *colly.Collector {
	if s.base != nil {
		return s.base.Clone()
	}
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
	c.SetClient(s.client)
	return c
}

// job attaches a plugin to a collector, crawls, and closes the plugin.
func (s *service) job(c *colly.Collector) {
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		s.Error(err)
		return
	}
	for _, path := range []string{"/", "/1"} {
		if err := c.Visit("http://a.test" + path); err != nil {
			s.Errorf("a job: Visit of %s returned %v", path, err)
		}
	}
	if err := c.Visit("http://a.test/to-closed"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		s.Errorf("a job: Visit of a redirect to a disallowed page returned %v", err)
	}
	if err := robots.Close(); err != nil {
		s.Error(err)
	}
}

// withoutPlugin crawls with a collector that has no plugin.
func (s *service) withoutPlugin(c *colly.Collector) {
	if err := c.Visit("http://a.test/to-closed"); err != nil {
		s.Errorf("without a plugin: Visit returned %v", err)
	}
}

// jobSite answers the requests of jobs.
func jobSite(req *http.Request) *http.Response {
	out := httptest.NewRecorder()
	switch req.URL.Path {
	case "/robots.txt":
		io.WriteString(out, "User-agent: ExampleBot\nDisallow: /closed\n")
	case "/to-closed":
		http.Redirect(out, req, "/closed", http.StatusFound)
	default:
		io.WriteString(out, "a page")
	}
	resp := out.Result()
	resp.Request = req
	return resp
}

// forEachService calls f for each way of making collectors in a service.
func forEachService(t *testing.T, f func(t *testing.T, s *service)) {
	for _, way := range []string{"SetClient", "Clone", "DefaultClient"} {
		t.Run(way, func(t *testing.T) {
			s := &service{T: t, client: &http.Client{Timeout: time.Minute}}
			if way == "DefaultClient" {
				s.client = http.DefaultClient
				defer func(before http.Client) { *http.DefaultClient = before }(*http.DefaultClient)
			}
			s.client.Transport = kit.RoundTripper(func(req *http.Request) (*http.Response, error) { return jobSite(req), nil })
			if way == "Clone" {
				s.base = s.collector()
			}
			f(t, s)
		})
	}
}

// sameClient fails the test if client has changed.
func sameClient(t *testing.T, client *http.Client, before http.Client) {
	t.Helper()
	if client.Timeout != before.Timeout || client.Jar != before.Jar || client.CheckRedirect != nil || before.CheckRedirect != nil ||
		reflect.ValueOf(client.Transport).Pointer() != reflect.ValueOf(before.Transport).Pointer() {
		t.Errorf("the client has changed to %+v", client)
	}
}

// TestJobsAtTheSameTime runs such jobs at the same time as collectors without a plugin.
func TestJobsAtTheSameTime(t *testing.T) {
	forEachService(t, func(t *testing.T, s *service) {
		before := *s.client
		if s.base != nil { // Attach changes the backend that clones share, so it must come before their requests
			robots, err := collyrobots.WithRobots(s.base.Clone())
			kit.Must(t, err)
			defer robots.Close()
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					s.job(s.collector())
				}
			})
			all.Go(func() {
				c := s.collector()
				for range 20 {
					s.withoutPlugin(c)
				}
			})
		}
		all.Wait()
		sameClient(t, s.client, before)
	})
}

// TestCollectorsAreCollected checks that a plugin does not keep its collectors in memory, and that
// a closed plugin does not either.
func TestCollectorsAreCollected(t *testing.T) {
	for name, opts := range map[string][]collyrobots.Option{
		"plain": nil, "FollowSitemaps": {collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: true})},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", closed: ", closed), func(t *testing.T) {
				s := &service{T: t, client: &http.Client{}}
				s.client.Transport = kit.RoundTripper(func(req *http.Request) (*http.Response, error) { return jobSite(req), nil })
				robots, err := collyrobots.New(opts...)
				kit.Must(t, err)
				defer robots.Close()
				var made []weak.Pointer[colly.Collector]
				for i := range 100 {
					c := s.collector()
					if i%2 == 1 {
						c = c.Clone()
					}
					made = append(made, weak.Make(c))
					kit.Must(t, robots.Attach(c))
					c.OnRequest(func(r *colly.Request) {
						if r.URL.Path == "/aborted" {
							r.Abort()
						}
					})
					for _, path := range []string{"/", "/to-closed", "/closed", "/aborted"} {
						c.Visit("http://a.test" + path)
					}
				}
				if closed {
					kit.Must(t, robots.Close())
				}
				alive := 0
				for range 10 {
					runtime.GC()
					alive = 0
					for _, w := range made {
						if w.Value() != nil {
							alive++
						}
					}
					if alive == 0 {
						break
					}
				}
				if alive > 0 {
					t.Errorf("%d of 100 collectors are still in memory", alive)
				}
				runtime.KeepAlive(robots)
			})
		}
	}
}

// TestReplacedTransport checks that redirects are still checked and paced after a callback, or
// another goroutine, has replaced the transport, the proxy or the client, even during a request.
func TestReplacedTransport(t *testing.T) {
	replacements := map[string]func(c *kit.Crawl, web *robotstest.Web){
		"WithTransport": func(c *kit.Crawl, web *robotstest.Web) { c.WithTransport(web.Transport()) },
		"SetProxy": func(c *kit.Crawl, web *robotstest.Web) {
			if err := c.SetProxy("http://proxy.test:3128"); err != nil {
				panic(err)
			}
		},
		"SetClient": func(c *kit.Crawl, web *robotstest.Web) { c.SetClient(&http.Client{Transport: web.Transport()}) },
	}
	for name, at := range map[string]func(c *kit.Crawl, replace func()){
		"OnRequest":        func(c *kit.Crawl, replace func()) { c.OnRequest(func(*colly.Request) { replace() }) },
		"OnRequestHeaders": func(c *kit.Crawl, replace func()) { c.OnRequestHeaders(func(*colly.Request) { replace() }) },
		"OnError":          func(c *kit.Crawl, replace func()) { c.OnError(func(*colly.Response, error) { replace() }) },
		"redirect handler": func(c *kit.Crawl, replace func()) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { replace(); return nil })
		},
		"another goroutine": nil,
	} {
		for what, set := range replacements {
			if name == "OnRequestHeaders" && what != "WithTransport" {
				continue // Colly has already taken the client of this request
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"proxy.test:3128": nil, "a.test": {
					"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed", "/fails": 500,
					"/": robotstest.Redirect("/1"), "/closed": robotstest.Page(), "/2": robotstest.Page(),
				}}, func(t *testing.T, web *robotstest.Web) {
					c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()})
					var during func()
					web.Set("a.test", "/1", func(out http.ResponseWriter, r *http.Request) {
						if during != nil {
							during() // during the request, on another goroutine
						}
						http.Redirect(out, r, "/closed", http.StatusFound)
					})
					if replace := func() { set(c, web) }; at == nil {
						during = replace
					} else {
						at(c, replace)
					}
					c.Visit("http://a.test/fails")
					for range 2 {
						if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
							t.Errorf("Visit returned %v, want the denial of the last redirect", err)
						}
					}
					kit.Must(t, c.Visit("http://a.test/2"))
					kit.WantURIs(t, web, "a.test", "/robots.txt /fails / /1 / /1 /2")
					kit.WantPace(t, web, "a.test", 5*time.Second, 7)
				})
			})
		}
	}
}

// closesLater returns a handler for a robots.txt that is fresh for 310 s and denies /1 after five
// minutes.
func closesLater(delay int) http.HandlerFunc {
	began := time.Now()
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", "max-age=310")
		fmt.Fprintf(out, "User-agent: *\nCrawl-delay: %d\n", delay)
		if time.Since(began) > 5*time.Minute {
			io.WriteString(out, "Disallow: /1\n")
		}
	}
}

// TestRedirectIsCheckedAfterItsWait checks that a redirect that waits while another request
// fetches robots.txt again is denied by the new rules.
func TestRedirectIsCheckedAfterItsWait(t *testing.T) {
	kit.ForEachClient(t, testRedirectIsCheckedAfterItsWait)
}

func testRedirectIsCheckedAfterItsWait(t *testing.T, start kit.Starter) {
	slow := func(out http.ResponseWriter, r *http.Request) {
		time.Sleep(13 * time.Second)
		http.Redirect(out, r, "/1", http.StatusFound)
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/": slow, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/robots.txt", closesLater(15))
		c := start(t, web, kit.Async)
		c.SetRequestTimeout(time.Minute)
		kit.Must(t, c.Visit("http://a.test/3"))
		time.Sleep(5 * time.Minute)
		kit.Must(t, c.Visit("http://a.test/"))
		time.Sleep(11 * time.Second)
		kit.Must(t, c.Visit("http://a.test/2")) // this request fetches robots.txt again, before the redirect arrives
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 15s /3, 5m0s /, 5m15s /robots.txt, 5m45s /2")
		if err := c.Errs["http://a.test/"]; !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("OnError of the page got %v, want a denial", err)
		}
	})
}

// TestInitAfterAttach calls Collector.Init, which keeps the callbacks and replaces the backend and
// the context. Redirects must still be checked, a warning must be logged, and a second Attach must
// restore the rest.
func TestInitAfterAttach(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed", "/": robotstest.Redirect("/1"), "/1": robotstest.Redirect("/closed"),
		"/closed": robotstest.Page(), "/2": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		kit.Must(t, c.Visit("http://a.test/2"))
		for range 2 {
			c.Init()
			c.UserAgent, c.AllowURLRevisit, c.IgnoreRobotsTxt = "ExampleBot/1.0", true, true
			c.WithTransport(c.Transport)
			if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
				t.Errorf("Visit returned %v, want the denial of the last redirect", err)
			}
		}
		if log := c.Logged.String(); strings.Count(log, "Collector.Init") != 1 {
			t.Errorf("got log %q, want one warning about Init", log)
		}
		kit.Must(t, c.Robots.Attach(c.Collector.Collector))
		if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit returned %v, want the denial of the last redirect", err)
		}
		if err := c.Collector.Collector.Clone().Visit("http://a.test/closed"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("unattached clone: Visit returned %v, want a denial", err)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 5s /2, 10s /, 15s /1, 20s /, 25s /1, 30s /, 35s /1")
	})
}

// TestUnattachedCloneAfterClose checks that a clone that is not attached can send nothing after
// Close.
func TestUnattachedCloneAfterClose(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, kit.NoDenys)})
	c := kit.Start(t, web, nil)
	clone := c.Collector.Collector.Clone()
	kit.Must(t, clone.Visit("http://a.test/0"))
	kit.Must(t, c.Robots.Close())
	if err := clone.Visit("http://a.test/1"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("after Close got %v, want ErrClosed", err)
	}
	kit.WantURIs(t, web, "a.test", "/robots.txt /0")
}
