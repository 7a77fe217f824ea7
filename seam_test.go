package collyrobots_test

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
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A service is a program that makes a collector for each of its jobs, on one client.
type service struct {
	*testing.T
	client *http.Client
	base   *colly.Collector // whose clones they are; nil: each is made anew
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
			s.Errorf("a job's %s: %v", path, err)
		}
	}
	if err := c.Visit("http://a.test/to-closed"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		s.Errorf("a job's redirect to a disallowed page: %v", err)
	}
	if err := robots.Close(); err != nil {
		s.Error(err)
	}
}

// stranger crawls without a plugin, as if there were none.
func (s *service) stranger(c *colly.Collector) {
	if err := c.Visit("http://a.test/to-closed"); err != nil {
		s.Errorf("without a plugin: %v", err)
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

// forEachService runs f for each way in which a service comes by its collectors.
func forEachService(t *testing.T, f func(t *testing.T, s *service)) {
	for _, way := range []string{"SetClient", "Clone", "DefaultClient"} {
		t.Run(way, func(t *testing.T) {
			s := &service{T: t, client: &http.Client{Timeout: time.Minute}}
			if way == "DefaultClient" {
				s.client = http.DefaultClient
				defer func(before http.Client) { *http.DefaultClient = before }(*http.DefaultClient)
			}
			s.client.Transport = roundTripper(func(req *http.Request) (*http.Response, error) { return jobSite(req), nil })
			if way == "Clone" {
				s.base = s.collector()
			}
			f(t, s)
		})
	}
}

// sameClient fails the test unless client is as it was.
func sameClient(t *testing.T, client *http.Client, before http.Client) {
	t.Helper()
	if client.Timeout != before.Timeout || client.Jar != before.Jar || client.CheckRedirect != nil || before.CheckRedirect != nil ||
		reflect.ValueOf(client.Transport).Pointer() != reflect.ValueOf(before.Transport).Pointer() {
		t.Errorf("the user's client has become %+v", client)
	}
}

// wantNoMore fails the test unless in a while there are no more goroutines than before.
func wantNoMore(t *testing.T, before int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

// Two hundred jobs, one after the other: the last is served as the first, collectors without a
// plugin know nothing of it, and nothing piles up.
func TestAServiceMayCloseItsJobs(t *testing.T) {
	forEachService(t, func(t *testing.T, s *service) {
		before := *s.client
		plain := s.collector()
		cost := func() float64 { return testing.AllocsPerRun(20, func() { s.stranger(plain) }) }
		first, goroutines := cost(), runtime.NumGoroutine()
		for i := range 200 {
			c := s.collector()
			s.job(c)
			if i%10 == 0 {
				s.stranger(plain)
				s.stranger(s.collector())
				sameClient(t, s.client, before)
			}
		}
		if last := cost(); last > first*1.02 {
			t.Errorf("a request of a collector without a plugin allocates %v times after 200 jobs, %v before", last, first)
		}
		wantNoMore(t, goroutines)
		sameClient(t, s.client, before)
	})
}

// So do jobs side by side, among collectors that have none.
func TestJobsSideBySide(t *testing.T) {
	forEachService(t, func(t *testing.T, s *service) {
		before := *s.client
		if s.base != nil { // to attach a plugin is to write to what clones share: it is there before others crawl
			robots, err := collyrobots.WithRobots(s.base.Clone())
			must(t, err)
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
					s.stranger(c)
				}
			})
		}
		all.Wait()
		sameClient(t, s.client, before)
	})
}

// One collector may have one plugin after the other.
func TestOneCollectorForAllJobs(t *testing.T) {
	forEachService(t, func(t *testing.T, s *service) {
		before := *s.client
		c := s.collector()
		for range 20 {
			s.job(c)
		}
		robots, err := collyrobots.WithRobots(c)
		must(t, err)
		must(t, c.Visit("http://a.test/"))
		if hosts := robots.Stats().Hosts; len(hosts) != 1 || hosts[0].Requests != 2 || hosts[0].Pages != 1 {
			t.Errorf("the last plugin has seen %+v, want robots.txt and a page", hosts)
		}
		must(t, robots.Close())
		sameClient(t, s.client, before)
	})
}

// A plugin keeps no collector alive, and a collector whose plugin is closed no robots.txt.
func TestCollectorsAreCollected(t *testing.T) {
	for name, opts := range map[string][]collyrobots.Option{
		"plain": nil, "FollowSitemaps": {collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: true})},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", closed: ", closed), func(t *testing.T) {
				s := &service{T: t, client: &http.Client{}}
				s.client.Transport = roundTripper(func(req *http.Request) (*http.Response, error) { return jobSite(req), nil })
				robots, err := collyrobots.New(opts...)
				must(t, err)
				defer robots.Close()
				var made []weak.Pointer[colly.Collector]
				for i := range 100 {
					c := s.collector()
					if i%2 == 1 {
						c = c.Clone()
					}
					made = append(made, weak.Make(c))
					must(t, robots.Attach(c))
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
					must(t, robots.Close())
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
					t.Errorf("%d of 100 collectors are still there", alive)
				}
				runtime.KeepAlive(robots)
			})
		}
	}
}

// Wherever the transport or the proxy is replaced, and be it while a request is under way, its hops
// are judged and paced.
func TestHopsAreJudgedWhateverReplacesTheTransport(t *testing.T) {
	replacements := map[string]func(c *crawl, web *robotstest.Web){
		"WithTransport": func(c *crawl, web *robotstest.Web) { c.WithTransport(web.Transport()) },
		"SetProxy": func(c *crawl, web *robotstest.Web) {
			if err := c.SetProxy("http://proxy.test:3128"); err != nil {
				panic(err)
			}
		},
		"SetClient": func(c *crawl, web *robotstest.Web) { c.SetClient(&http.Client{Transport: web.Transport()}) },
	}
	for name, at := range map[string]func(c *crawl, replace func()){
		"OnRequest":        func(c *crawl, replace func()) { c.OnRequest(func(*colly.Request) { replace() }) },
		"OnRequestHeaders": func(c *crawl, replace func()) { c.OnRequestHeaders(func(*colly.Request) { replace() }) },
		"OnError":          func(c *crawl, replace func()) { c.OnError(func(*colly.Response, error) { replace() }) },
		"redirect handler": func(c *crawl, replace func()) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { replace(); return nil })
		},
		"another goroutine": nil,
	} {
		for what, set := range replacements {
			if name == "OnRequestHeaders" && what != "WithTransport" {
				continue // Colly gives such a request a client or a transport of which nobody else knows
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				inBubble(t, robotstest.Sites{"proxy.test:3128": nil, "a.test": {
					"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed", "/fails": 500,
					"/": robotstest.Redirect("/1"), "/closed": robotstest.Page(), "/2": robotstest.Page(),
				}}, func(t *testing.T, web *robotstest.Web) {
					c := start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()})
					var meanwhile func()
					web.Set("a.test", "/1", func(out http.ResponseWriter, r *http.Request) {
						if meanwhile != nil {
							meanwhile() // the request is under way, and this is another goroutine
						}
						http.Redirect(out, r, "/closed", http.StatusFound)
					})
					if replace := func() { set(c, web) }; at == nil {
						meanwhile = replace
					} else {
						at(c, replace)
					}
					c.Visit("http://a.test/fails")
					for range 2 {
						if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
							t.Errorf("Visit: %v, want the denial of the last hop", err)
						}
					}
					must(t, c.Visit("http://a.test/2"))
					wantURIs(t, web, "a.test", "/robots.txt /fails / /1 / /1 /2")
					wantPace(t, web, "a.test", 5*time.Second, 7)
				})
			})
		}
	}
}

// A transport that panics, or returns less than it should, is net/http's business: nothing of ours
// panics, and the host is asked again in its turn.
func TestABrokenTransportLocksNoHost(t *testing.T) {
	broken := map[string]roundTripper{
		"panic":   func(*http.Request) (*http.Response, error) { panic("broken") },
		"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
		"no body": func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"length only": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, ContentLength: 5}, nil
		},
		"both": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200}, io.ErrUnexpectedEOF
		},
	}
	visit := func(c *colly.Collector, url string) (panicked any, err error) {
		defer func() { panicked = recover() }()
		return nil, c.Visit(url)
	}
	for name, rt := range broken {
		for _, which := range []string{"/1", "/hop-end"} {
			t.Run(name+" "+which, func(t *testing.T) {
				inBubble(t, robotstest.Sites{"a.test": {
					"/robots.txt": "User-agent: *\nCrawl-delay: 5", "/0": robotstest.Page(), "/2": robotstest.Page(), "/hop": robotstest.Redirect("/hop-end"),
				}}, func(t *testing.T, web *robotstest.Web) {
					through := func(c *colly.Collector) {
						whole := web.Transport()
						c.SetRequestTimeout(0) // after a panic net/http leaves its timer behind
						c.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
							if req.URL.Path == which {
								return rt(req)
							}
							return whole.RoundTrip(req)
						}))
					}
					at := map[string]string{"/1": "/1", "/hop-end": "/hop"}[which]
					plain := colly.NewCollector()
					through(plain)
					wantPanic, wantErr := visit(plain, "http://a.test"+at)
					web.Reset()
					c := start(t, web, nil)
					through(c.Collector.Collector)
					must(t, c.Visit("http://a.test/0"))
					panicked, err := visit(c.Collector.Collector, "http://a.test"+at)
					if got, want := strings.ReplaceAll(fmt.Sprint(err), "*backend.Seam", "collyrobots_test.roundTripper"), fmt.Sprint(wantErr); got != want || fmt.Sprint(panicked) != fmt.Sprint(wantPanic) {
						t.Errorf("%s, panic %v; without the plugin %s, panic %v", got, panicked, want, wantPanic)
					}
					must(t, c.Visit("http://a.test/2"))
					want := "0s /robots.txt, 5s /0, 15s /2"
					if at == "/hop" {
						want = "0s /robots.txt, 5s /0, 10s /hop, 20s /2"
					}
					wantSchedule(t, web, "a.test", want)
				})
			})
		}
	}
}

// A transport that breaks on robots.txt makes the site one whose robots.txt cannot be read.
func TestABrokenTransportUnderRobotsTxt(t *testing.T) {
	for name, rt := range map[string]roundTripper{
		"panic":   func(*http.Request) (*http.Response, error) { panic("broken") },
		"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nCrawl-delay: 5")}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil)
				c.WithTransport(rt)
				c.Visit("http://a.test/0")
				wantDenied(t, c, "http://a.test/0", collyrobots.ReasonUnreachable, 0)
				c.WithTransport(web.Transport())
				time.Sleep(2 * time.Hour)
				must(t, c.Visit("http://a.test/1"))
				wantSchedule(t, web, "a.test", "2h0m0s /robots.txt, 2h0m5s /1")
			})
		})
	}
}

// The pages of a clone that is not attached wait as long as others do: they are no hops.
func TestABareClonesPagesWait(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(12, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, async)
		clone := c.Collector.Collector.Clone()
		pages, failed := 0, map[string]error{}
		var mu sync.Mutex
		clone.OnResponse(func(*colly.Response) { mu.Lock(); pages++; mu.Unlock() })
		clone.OnError(func(r *colly.Response, err error) { mu.Lock(); failed[r.Request.URL.Path] = err; mu.Unlock() })
		for i := range 12 {
			clone.Visit(fmt.Sprint("http://a.test/", i))
		}
		clone.Wait()
		if pages != 12 || len(failed) > 0 {
			t.Errorf("%d of 12 pages; %v", pages, failed)
		}
		wantPace(t, web, "a.test", 10*time.Second, 13)
	})
}

// So do those that wait for another's long Retry-After or crawl delay; their context ends the wait.
func TestABareClonesContextEndsItsWait(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 3600")}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		clone := c.Collector.Collector.Clone()
		must(t, clone.Visit("http://a.test/0"))
		must(t, clone.Visit("http://a.test/1"))
		wantSchedule(t, web, "a.test", "0s /robots.txt, 1h0m0s /0, 2h0m0s /1")
		began := time.Now()
		time.AfterFunc(time.Minute, func() { c.robots.Close() })
		if err := clone.Visit("http://a.test/2"); !errors.Is(err, collyrobots.ErrClosed) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v, want ErrClosed after a minute", err, time.Since(began))
		}
		if err := clone.Visit("http://a.test/"); !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	})
}

// closesLater is a robots.txt that is good for 310 s, and denies /1 from five minutes on.
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

// A hop that has waited behind the request that reads robots.txt again is judged by what that says.
func TestAHopIsJudgedAfterItsWait(t *testing.T) {
	slow := func(out http.ResponseWriter, r *http.Request) {
		time.Sleep(13 * time.Second)
		http.Redirect(out, r, "/1", http.StatusFound)
	}
	inBubble(t, robotstest.Sites{"a.test": {"/": slow, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/robots.txt", closesLater(15))
		c := start(t, web, async)
		c.SetRequestTimeout(time.Minute)
		must(t, c.Visit("http://a.test/3"))
		time.Sleep(5 * time.Minute)
		must(t, c.Visit("http://a.test/"))
		time.Sleep(11 * time.Second)
		must(t, c.Visit("http://a.test/2")) // it reads robots.txt again, before the redirect is there
		c.Wait()
		wantSchedule(t, web, "a.test", "0s /robots.txt, 15s /3, 5m0s /, 5m15s /robots.txt, 5m45s /2")
		if err := c.errs["http://a.test/"]; !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("OnError of the page was told %v", err)
		}
	})
}

// Where nobody else has read it again, whoever has waited for so long does, and does not wait for
// the place that it holds itself.
func TestAfterALongWaitRobotsTxtIsReadAgain(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {"*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/robots.txt", closesLater(50))
		clone := start(t, web, nil).Collector.Collector.Clone() // whose pages wait in the transport
		must(t, clone.Visit("http://a.test/3"))
		time.Sleep(4*time.Minute + 5*time.Second)
		must(t, clone.Visit("http://a.test/4"))
		if err := clone.Visit("http://a.test/1"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit: %v, want what the new robots.txt says", err)
		}
		must(t, clone.Visit("http://a.test/2"))
		wantSchedule(t, web, "a.test", "0s /robots.txt, 50s /3, 4m55s /4, 6m35s /robots.txt, 7m25s /2")
	})
}

// Collector.Init keeps the callbacks and replaces the backend and the context. Hops are seen all
// the same, and what was undone is said; to attach the collector once more brings back the rest.
func TestInitAfterAttachIsNoticed(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed", "/": robotstest.Redirect("/1"), "/1": robotstest.Redirect("/closed"),
		"/closed": robotstest.Page(), "/2": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		must(t, c.Visit("http://a.test/2"))
		for range 2 {
			c.Init()
			c.UserAgent, c.AllowURLRevisit = "ExampleBot/1.0", true
			c.WithTransport(c.transport)
			if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
				t.Errorf("Visit: %v, want the denial of the last hop", err)
			}
		}
		if log := c.logged.String(); strings.Count(log, "Collector.Init") != 1 {
			t.Errorf("the log says %q, want a word about Init", log)
		}
		must(t, c.robots.Attach(c.Collector.Collector))
		if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit: %v, want the denial of the last hop", err)
		}
		if err := c.Collector.Collector.Clone().Visit("http://a.test/closed"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("a bare clone: %v, want its denial", err)
		}
		wantSchedule(t, web, "a.test", "0s /robots.txt, 5s /2, 10s /, 15s /1, 20s /, 25s /1, 30s /, 35s /1")
	})
}

// So does what replaces the collector's Context: its hops are found by the request that led to
// them.
func TestAnotherContextAfterAttach(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed", "/": robotstest.Redirect("/1"), "/1": robotstest.Redirect("/2"), "/2": robotstest.Redirect("/closed"),
		"/closed": robotstest.Page(), "/3": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()})
		c.Context = t.Context()
		other := start(t, web, nil) // its plugin governs the same web, and nothing of the first's
		for range 2 {
			if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
				t.Errorf("Visit: %v, want the denial of the last hop", err)
			}
		}
		must(t, c.Visit("http://a.test/3"))
		wantSchedule(t, web, "a.test", "0s /robots.txt, 5s /, 10s /1, 15s /2, 20s /, 25s /1, 30s /2, 35s /3")
		if hosts := other.robots.Stats().Hosts; len(hosts) > 0 {
			t.Errorf("the other plugin has seen %+v", hosts)
		}
	})
}

// Close ends the waits of a crawl, in whatever state its pages are, and leaves neither a goroutine
// nor the client behind.
func TestCloseInACrawl(t *testing.T) {
	for name, clone := range map[string]bool{"a collector": false, "a collector and its clones": true} {
		t.Run(name, func(t *testing.T) {
			goroutines := runtime.NumGoroutine()
			slow := func(out http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(30 * time.Millisecond):
				case <-r.Context().Done():
				}
				if strings.HasPrefix(r.URL.Path, "/hop") {
					http.Redirect(out, r, "/end", http.StatusFound)
				}
			}
			web := robotstest.New(t, robotstest.Sites{
				"slow.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 3600", "*": robotstest.Page()},
				"open.test": {"/robots.txt": noDenys, "*": slow}, "late.test": {"/robots.txt": slow, "*": robotstest.Page()},
			})
			client := &http.Client{Transport: web.Transport()}
			inner := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
			inner.SetClient(client)
			var all sync.WaitGroup
			var told sync.Map // by URL
			robots, err := collyrobots.New(collyrobots.OnDenied(func(r *colly.Request, _ error) { told.Store(r.Ctx.Get("url"), true) }))
			must(t, err)
			crawlers := []*colly.Collector{inner, inner, inner}
			if clone {
				crawlers = []*colly.Collector{inner, inner.Clone(), inner.Clone()}
			}
			for i, c := range crawlers {
				must(t, robots.Attach(c))
				c.OnError(func(r *colly.Response, _ error) { told.Store(r.Request.Ctx.Get("url"), true) })
				c.OnScraped(func(r *colly.Response) { told.Store(r.Request.Ctx.Get("url"), true) })
				all.Go(func() {
					for n := range 50 {
						for _, at := range []string{"slow.test/", "late.test/", "open.test/hop"} {
							ctx := colly.NewContext()
							ctx.Put("url", fmt.Sprintf("http://%s%d?%d", at, n, i))
							if err := c.Request(http.MethodGet, ctx.Get("url"), nil, ctx, nil); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			must(t, robots.Close())
			all.Wait()
			began := time.Now()
			for _, c := range crawlers {
				c.Wait()
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it went on for %v after Close", took)
			}
			n := 0
			told.Range(func(any, any) bool { n++; return true })
			if n != 450 {
				t.Errorf("a callback was told of %d requests, want 450", n)
			}
			if handle, err := backend.Open(inner); err != nil || handle.Client() != client {
				t.Errorf("the collector's client was not given back: %v", err)
			}
			web.Close()
			wantNoMore(t, goroutines)
		})
	}
}

// Close does not set a bare clone free.
func TestABareCloneAfterClose(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, noDenys)})
	c := start(t, web, nil)
	clone := c.Collector.Collector.Clone()
	must(t, clone.Visit("http://a.test/0"))
	must(t, c.robots.Close())
	if err := clone.Visit("http://a.test/1"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	wantURIs(t, web, "a.test", "/robots.txt /0")
}

// A RoundTripper that sends a request twice, takes the first answer and leaves the other attempt
// alone, as hedging ones do, has both paced; an attempt that waits still when there is an answer is
// not made.
func TestARequestIsSentTwiceAtOnce(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "later": 100 * time.Millisecond} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				page := takes(500*time.Millisecond, robotstest.Page())
				inBubble(t, robotstest.Sites{"a.test": {
					"/robots.txt": "User-agent: *\nCrawl-delay: 2", "/slow": takes(3*time.Second, robotstest.Page()), "/hop": robotstest.Redirect("/end"), "*": page,
				}}, func(t *testing.T, web *robotstest.Web) {
					c := start(t, web, async)
					var attempts sync.WaitGroup
					c.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
						if r.URL.Path == "/robots.txt" {
							return c.transport.RoundTrip(r) // its delay is not known yet
						}
						answers := make(chan *http.Response, 2)
						for i := range 2 {
							attempts.Go(func() {
								time.Sleep(time.Duration(i) * later)
								resp, _ := c.transport.RoundTrip(r.Clone(r.Context()))
								answers <- resp
							})
						}
						for range 2 {
							if resp := <-answers; resp != nil {
								return resp, nil
							}
						}
						return nil, errors.New("no answer")
					}))
					for i := range 5 {
						must(t, c.Visit(fmt.Sprint(scheme, "://a.test/", i)))
					}
					must(t, c.Visit(scheme+"://a.test/slow"))
					must(t, c.Visit(scheme+"://a.test/hop"))
					c.Wait()
					attempts.Wait()
					if len(c.pages) != 7 || len(c.errs) > 0 {
						t.Errorf("%d pages of 7, errors %v", len(c.pages), c.errs)
					}
					wantNoSooner(t, web, "a.test", 2*time.Second, 10) // one twice: it took longer than the delay
				})
			})
		}
	}
}
