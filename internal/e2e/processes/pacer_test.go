package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/pacer/pacertest"
)

// TestMemoryPacer checks the Pacer of the tests.
func TestMemoryPacer(t *testing.T) {
	pacertest.Run(t, func(t *testing.T) (a, b pacer.Pacer) {
		p := kit.Shared(t)
		return p, p
	})
}

// processes starts n crawls that share a pacer and a store. As in separate processes, each has its
// own transport.
func processes(t *testing.T, start kit.Starter, web *robotstest.Web, n int, p pacer.Pacer, opts ...collyrobots.Option) []*kit.Crawl {
	t.Helper()
	s := store.NewMemory()
	t.Cleanup(func() { s.Close() })
	opts = append([]collyrobots.Option{collyrobots.SharedPace(p), collyrobots.Store(s)}, opts...)
	all := make([]*kit.Crawl, n)
	for i := range all {
		all[i] = start(t, web, kit.Async, opts...)
	}
	return all
}

// visitAll lets each crawl visit its own part of the pages, and waits for all of them.
func visitAll(all []*kit.Crawl, pages int, url string) {
	for i, c := range all {
		for page := range pages {
			c.Visit(fmt.Sprintf(url, i*pages+page))
		}
	}
	for _, c := range all {
		c.Wait()
	}
}

// TestProcessesShareOnePace checks that exactly the delay lies between the requests of all
// processes, and that robots.txt is fetched once.
func TestProcessesShareOnePace(t *testing.T) {
	for name, tc := range map[string]struct {
		robots string
		opts   []collyrobots.Option
		delay  time.Duration
	}{
		"Crawl-delay":            {"User-agent: *\nCrawl-delay: 10\n", nil, 10 * time.Second},
		"MinDelay":               {kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second)}, time.Second},
		"DelayFromEnd":           {kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second), collyrobots.DelayFromEnd(true)}, time.Second},
		"MaxInFlightPerHost":     {kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second), collyrobots.MaxInFlightPerHost(3)}, time.Second},
		"longer than a lease":    {"User-agent: *\nCrawl-delay: 100\n", nil, 100 * time.Second},
		"shorter than a request": {"User-agent: *\nCrawl-delay: 0.01\n", nil, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(12, tc.robots)}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, kit.Start, web, 4, kit.Shared(t), tc.opts...)
				visitAll(all, 3, "http://a.test/%d")
				kit.WantPace(t, web, "a.test", tc.delay, 13)
				for i, c := range all {
					if len(c.Pages) != 3 || len(c.Denied) != 0 {
						t.Errorf("process %d has %d pages, denied %v, want 3", i, len(c.Pages), c.Denied)
					}
				}
			})
		})
	}
}

// TestLeaseIncludesResponse checks that only one process uses a host at a time, until it has read
// the response body.
func TestLeaseIncludesResponse(t *testing.T) { kit.ForEachClient(t, testLeaseIncludesResponse) }

func testLeaseIncludesResponse(t *testing.T, start kit.Starter) {
	slow := func(out http.ResponseWriter, _ *http.Request) { time.Sleep(3 * time.Second) }
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": http.HandlerFunc(slow)}}, func(t *testing.T, web *robotstest.Web) {
		visitAll(processes(t, start, web, 2, kit.Shared(t)), 2, "http://a.test/%d")
		kit.WantNoSooner(t, web, "a.test", 4*time.Second-3*time.Second, 5)
		log := web.Log("a.test")
		for i := 2; i < len(log); i++ {
			if gap := log[i].Time.Sub(log[i-1].Time); gap != 4*time.Second {
				t.Errorf("gap %v between the starts, want 4s: 3s of the response and the delay", gap)
			}
		}
	})
}

// TestProcessesUseHostWithoutDelayAtOnce checks that all processes request pages of a host without
// a delay at once, and that one of them fetches robots.txt for all.
func TestProcessesUseHostWithoutDelayAtOnce(t *testing.T) {
	kit.ForEachClient(t, testProcessesUseHostWithoutDelayAtOnce)
}

func testProcessesUseHostWithoutDelayAtOnce(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(40, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, start, web, 4, kit.Shared(t))
		began := time.Now()
		visitAll(all, 10, "http://a.test/%d")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the crawl took %v, want no waiting", took)
		}
		if got := strings.Count(kit.URIsOf(web.Log("a.test")), "/robots.txt"); got != 1 || len(web.Log("a.test")) != 41 {
			t.Errorf("%d requests, of them %d for robots.txt; want 41 and 1", len(web.Log("a.test")), got)
		}
	})
}

// TestRequestsWithoutHooksArePaced checks that the requests that no hook has seen also ask the
// Pacer.
func TestRequestsWithoutHooksArePaced(t *testing.T) {
	kit.ForEachClient(t, testRequestsWithoutHooksArePaced)
}

func testRequestsWithoutHooksArePaced(t *testing.T, start kit.Starter) {
	const robots = "User-agent: *\nCrawl-delay: 2\n"
	throttled := func() http.HandlerFunc {
		var once sync.Once
		return func(out http.ResponseWriter, _ *http.Request) {
			once.Do(func() { out.Header().Set("Retry-After", "5"); out.WriteHeader(http.StatusTooManyRequests) })
		}
	}
	for name, tc := range map[string]struct {
		site robotstest.Site
		opts []collyrobots.Option
		n    int // requests, robots.txt included
	}{
		"redirects":                        {robotstest.Site{"/robots.txt": robots, "/0": robotstest.Redirect("/b"), "/b": robotstest.Redirect("/c"), "/c": robotstest.Page(), "*": robotstest.Page()}, nil, 7},
		"robots.txt redirects on its host": {robotstest.Site{"/robots.txt": robotstest.Redirect("/r"), "/r": robots, "*": robotstest.Page()}, []collyrobots.Option{collyrobots.MinDelay(2 * time.Second)}, 6},
		"RetryThrottled":                   {robotstest.Site{"/robots.txt": robots, "/0": throttled(), "*": robotstest.Page()}, []collyrobots.Option{collyrobots.RetryThrottled(2)}, 6},
		"sent twice":                       {robotstest.Site{"/robots.txt": robots, "/1": kit.DropFirst("<p>"), "*": robotstest.Page()}, nil, 8},
		"sitemaps": {robotstest.Site{"/robots.txt": robots + "Sitemap: /map.xml\n", "/map.xml": robotstest.Sitemap("http://a.test/8", "http://a.test/9"), "*": robotstest.Page()},
			[]collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, 1 + 4 + 2*3},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, start, web, 2, kit.Shared(t), tc.opts...)
				if all[0].Client != nil && name == "sitemaps" {
					t.Skip("the sitemaps of clients are not followed")
				}
				if name == "sent twice" {
					visitAll(all, 1, "http://a.test/first-%d") // net/http repeats a request only on a connection that was used before
				}
				visitAll(all, 2, "http://a.test/%d")
				kit.WantNoSooner(t, web, "a.test", 2*time.Second, tc.n)
				for _, c := range all {
					if len(c.Errs) != 0 {
						t.Errorf("OnError: %v", c.Errs)
					}
				}
			})
		})
	}
}

// TestOneProcessFollowsRobotsRedirect checks that one process follows the redirect of a robots.txt
// to another host, and that the others wait for the result.
func TestOneProcessFollowsRobotsRedirect(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test":     {"/robots.txt": robotstest.Redirect("https://www.a.test/robots.txt"), "*": robotstest.Page()},
		"www.a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 3\n"},
	}, func(t *testing.T, web *robotstest.Web) {
		visitAll(processes(t, kit.Start, web, 4, kit.Shared(t)), 1, "http://a.test/%d")
		kit.WantURIs(t, web, "www.a.test", "/robots.txt")
		kit.WantPace(t, web, "a.test", 3*time.Second, 5)
	})
}

// TestRobotsRedirectOverOneConnection checks that the host of a redirect is not released before the
// file was read, but that its connection is. The transport may have only this connection to a
// proxy.
func TestRobotsRedirectOverOneConnection(t *testing.T) {
	a := robotstest.Pages(2, "")
	a["/robots.txt"] = robotstest.Redirect("http://b.test/robots.txt")
	kit.InBubble(t, robotstest.Sites{"a.test": a, "b.test": {"/robots.txt": kit.NoDenys}, "proxy.test:3128": nil}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.SharedPace(kit.Shared(t)))
		c.Transport.MaxConnsPerHost = 1
		c.Transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /1")
	})
}

// TestFailingPacer checks that nothing is sent while the Pacer fails, that the error has the time
// of the first failure, and that the crawl continues afterwards, because the failure is not one of
// the site.
func TestFailingPacer(t *testing.T) {
	down := errors.New("connection refused")
	for name, fail := range map[string]func(*kit.MemoryPacer){
		"an error":         func(p *kit.MemoryPacer) { p.Err = down },
		"a panic":          func(p *kit.MemoryPacer) { p.Bad = "nil map" },
		"an expired lease": func(p *kit.MemoryPacer) { p.TTL = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
				p := kit.Shared(t)
				c := kit.Start(t, web, nil, collyrobots.SharedPace(p), collyrobots.MinDelay(time.Second))
				outage := func(first int) {
					p.Set(func() { fail(p) })
					began, before := time.Now(), len(web.Log("a.test"))
					for i := range 3 {
						wantUnpaced(t, c.Visit(fmt.Sprint("http://a.test/", first+i)), began)
						time.Sleep(time.Minute)
					}
					if got := len(web.Log("a.test")) - before; got != 0 {
						t.Errorf("%d requests were sent while the Pacer failed, want 0", got)
					}
					p.Set(func() {
						p.Err = nil
						p.Bad = nil
						p.TTL = 30 * time.Second
					})
					kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", first+3)))
				}
				outage(0) // before robots.txt is known
				time.Sleep(time.Minute)
				outage(4)
				if err := c.Denied["http://a.test/0"]; name == "an error" && !errors.Is(err, down) {
					t.Errorf("%v does not wrap the Pacer's error", err)
				}
				if len(c.Denied) != 6 || strings.Contains(c.Logged.String(), "could not be read") {
					t.Errorf("OnDenied got %v, log:\n%s", c.Denied, c.Logged)
				}
				kit.WantURIs(t, web, "a.test", "/robots.txt /3 /7")
			})
		})
	}
}

// wantUnpaced wants a PaceError about a.test.
func wantUnpaced(t *testing.T, err error, since time.Time) {
	t.Helper()
	var unpaced *report.PaceError
	if !errors.As(err, &unpaced) || unpaced.Host != "a.test" || unpaced.Since.Sub(since).Abs() > 5*time.Millisecond || unpaced.Unwrap() == nil {
		t.Fatalf("Visit: %v, want a PaceError since %v", err, since)
	}
	if !strings.Contains(err.Error(), "a.test since "+unpaced.Since.Format(time.RFC3339)) {
		t.Errorf("the error %q does not have the expected time", err)
	}
}

// TestPacerFailsBeforeRedirect checks that a redirect fails if the Pacer fails after the first
// request.
func TestPacerFailsBeforeRedirect(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/": robotstest.Redirect("/next"), "/next": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.Shared(t)
		c := kit.Start(t, web, nil, collyrobots.SharedPace(p))
		c.OnResponseHeaders(func(*colly.Response) {})
		c.SetRedirectHandler(func(*http.Request, []*http.Request) error {
			p.Set(func() { p.Err = errors.New("down") })
			return nil
		})
		err := c.Visit("http://a.test/")
		var unpaced *report.PaceError
		if !errors.As(err, &unpaced) || len(c.Denied) != 1 {
			t.Errorf("Visit returned %v, OnDenied got %v; want a PaceError in both", err, c.Denied)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /")
	})
}

// TestResponseExceedsLease checks that a response fails when its lease expires, and that the next
// process starts a delay later.
func TestResponseExceedsLease(t *testing.T) { kit.ForEachClient(t, testResponseExceedsLease) }

func testResponseExceedsLease(t *testing.T, start kit.Starter) {
	endless := func(out http.ResponseWriter, r *http.Request) {
		out.Write(bytes.Repeat([]byte("x"), 100))
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for name, answer := range map[string]http.HandlerFunc{"a body": endless, "no answer": kit.Hang} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": answer, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, start, web, 2, kit.Shared(t))
				all[0].SetRequestTimeout(0)
				all[0].Visit("http://a.test/0")
				time.Sleep(2 * time.Second)
				all[1].Visit("http://a.test/1")
				all[0].Wait()
				all[1].Wait()
				kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /0, 32s /1")
				if err := all[0].Errs["http://a.test/0"]; !errors.Is(err, collyrobots.ErrLeaseEnded) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("OnError got %v, want ErrLeaseEnded", err)
				}
			})
		})
	}
}

// TestTimeoutWithinLease checks that a shorter timeout of the collector ends a request as usual.
func TestTimeoutWithinLease(t *testing.T) { kit.ForEachClient(t, testTimeoutWithinLease) }

func testTimeoutWithinLease(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/": http.HandlerFunc(kit.Hang)}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.SharedPace(kit.Shared(t)))
		c.SetRequestTimeout(10 * time.Second)
		began := time.Now()
		err := c.Visit("http://a.test/")
		if took := time.Since(began); errors.Is(err, collyrobots.ErrLeaseEnded) || !errors.Is(err, context.DeadlineExceeded) || took.Round(100*time.Millisecond) != 11*time.Second {
			t.Errorf("got %v after %v, want the timeout after the delay and 10s", err, took)
		}
		synctest.Wait() // the timer may release the lease after Visit has returned
	})
}

// TestAbortedPageReleasesHost checks that the lease of a page that a later callback aborts is
// released after a delay, although no other request of this process waits for the host.
func TestAbortedPageReleasesHost(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, kit.Start, web, 2, kit.Shared(t))
		all[0].OnRequest(func(r *colly.Request) { r.Abort() })
		all[0].Visit("http://a.test/0")
		all[0].Wait()
		all[1].Visit("http://a.test/1")
		all[1].Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1")
	})
}

// TestCloseReleasesHosts checks that Close releases the leases of requests that were not sent.
func TestCloseReleasesHosts(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, kit.Start, web, 2, kit.Shared(t))
		all[0].OnRequest(func(r *colly.Request) { r.Abort() })
		all[0].Visit("http://a.test/0")
		all[0].Wait()
		kit.Must(t, all[0].Robots.Close())
		all[1].Visit("http://a.test/1")
		all[1].Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 5s /1")
	})
}

// TestCloseEndsWaitForPacer checks that Close ends a wait in Acquire.
func TestCloseEndsWaitForPacer(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1000\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, kit.Start, web, 2, kit.Shared(t))
		visitAll(all[:1], 1, "http://a.test/%d")
		all[1].Visit("http://a.test/1")
		time.Sleep(time.Second)
		began := time.Now()
		kit.Must(t, all[1].Robots.Close())
		all[1].Wait()
		if err := all[1].Denied["http://a.test/1"]; !errors.Is(err, collyrobots.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want ErrClosed at once", err, time.Since(began))
		}
	})
}

// TestContextEndsWaitForPacer checks that the end of the collector's context ends a wait in
// Acquire.
func TestContextEndsWaitForPacer(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1000\n")}, func(t *testing.T, web *robotstest.Web) {
		p := kit.Shared(t)
		why := errors.New("enough")
		all := processes(t, kit.Start, web, 1, p)
		visitAll(all, 1, "http://a.test/%d")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := kit.Start(t, web, append([]colly.CollectorOption{colly.StdlibContext(ctx)}, kit.Async...), collyrobots.SharedPace(p))
		c.Visit("http://a.test/1")
		time.Sleep(time.Second)
		cancel(why)
		c.Wait()
		if err := c.Denied["http://a.test/1"]; !errors.Is(err, why) {
			t.Errorf("OnDenied got %v, want the cause of the context", err)
		}
	})
}

// TestWaitForPacerNeedsNoSlot checks that a page holds no slot of a LimitRule while it waits for a
// host that another process uses.
func TestWaitForPacerNeedsNoSlot(t *testing.T) {
	slow := func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Second) }
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": http.HandlerFunc(slow), "*": robotstest.Page()},
		"b.test": robotstest.Pages(5, kit.NoDenys),
	}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, kit.Start, web, 2, kit.Shared(t))
		kit.Limited(t, all[1], &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
		all[0].SetRequestTimeout(0)
		all[0].Visit("http://a.test/0")
		time.Sleep(2 * time.Second)
		all[1].Visit("http://a.test/1")
		time.Sleep(time.Second)
		visitAll(all[1:], 5, "http://b.test/%d")
		all[0].Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /0, 22s /1")
		if log := web.Log("b.test"); len(log) != 6 || log[5].Elapsed > 4*time.Second {
			t.Errorf("got %d requests to b.test, want 6 within 4s:\n%s", len(log), log)
		}
	})
}

// TestBackOffIsShared checks that Retry-After and back-off after a response to one process hold for
// the others.
func TestBackOffIsShared(t *testing.T) {
	for after, least := range map[string]time.Duration{"60": time.Minute, "": 0} {
		t.Run("Retry-After: "+after, func(t *testing.T) {
			refuse := func(out http.ResponseWriter, _ *http.Request) {
				if after != "" {
					out.Header().Set("Retry-After", after)
				}
				time.Sleep(50 * time.Millisecond)
				out.WriteHeader(http.StatusTooManyRequests)
			}
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/0": http.HandlerFunc(refuse), "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, kit.Start, web, 2, kit.Shared(t))
				if _, err := all[1].Robots.Check(t.Context(), "http://a.test/"); err != nil {
					t.Fatal(err)
				}
				all[0].Visit("http://a.test/0")
				all[0].Wait()
				refused := time.Now()
				least = max(least, all[0].Robots.Stats().Hosts[0].Delay)
				all[1].Visit("http://a.test/1")
				all[1].Wait()
				log := web.Log("a.test")
				if gap := log[2].Time.Sub(refused); len(log) != 3 || gap.Round(time.Microsecond) < least || least < 100*time.Millisecond {
					t.Errorf("the other process sent its request %v after the response, want at least %v", gap, least)
				}
			})
		})
	}
}

// TestRobotsExpiresWhilePageHasHost checks that a robots.txt that expires while a page has the host
// or waits for it is fetched before the page.
func TestRobotsExpiresWhilePageHasHost(t *testing.T) {
	robots := func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 50\n")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(robots), "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, kit.Start, web, 2, kit.Shared(t))
		visitAll(all, 4, "http://a.test/%d")
		log := web.Log("a.test")
		kit.WantNoSooner(t, web, "a.test", 50*time.Second, len(log))
		pages := len(all[0].Pages) + len(all[1].Pages)
		if last := log[len(log)-1].Elapsed; pages != 8 || last > time.Duration(len(log))*51*time.Second {
			t.Errorf("got %d pages, want 8:\n%s", pages, log)
		}
	})
}

// TestDryRunDoesNotUsePacer checks that a dry run does not ask the Pacer.
func TestDryRunDoesNotUsePacer(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := kit.Shared(t)
		p.Bad = "asked"
		c := kit.Start(t, web, nil, collyrobots.SharedPace(p), collyrobots.DryRun(true))
		c.Impolite = true
		if err := c.Visit("http://a.test/0"); err != nil || p.Asked != 0 {
			t.Errorf("got %v; the Pacer was asked %d times, want 0", err, p.Asked)
		}
	})
}

// TestOneLeasePerPage checks that each page needs one lease.
func TestOneLeasePerPage(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(20, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := &counter{MemoryPacer: kit.Shared(t)}
		c := kit.Start(t, web, nil, collyrobots.SharedPace(p), collyrobots.MinDelay(time.Second))
		c.Visit("http://a.test/")
		synctest.Wait()
		if before := p.granted; before != 2 {
			t.Errorf("%d leases for robots.txt and a page, want 2", before)
		}
		visitAll([]*kit.Crawl{c}, 10, "http://a.test/%d")
		if p.granted != 12 {
			t.Errorf("%d leases for 12 requests, want 12", p.granted)
		}
	})
}

// A counter is a kit.MemoryPacer that counts its leases.
type counter struct {
	*kit.MemoryPacer
	granted int
}

func (p *counter) Acquire(ctx context.Context, host string, delay time.Duration) (pacer.Lease, error) {
	l, err := p.MemoryPacer.Acquire(ctx, host, delay)
	p.Set(func() { p.granted++ })
	return l, err
}

// TestRetryAfterPacerFailure checks that pages that are retried with a pause are fetched once when
// the Pacer works again, however long it has failed.
func TestRetryAfterPacerFailure(t *testing.T) {
	for name, outage := range map[string]time.Duration{"a second": time.Second, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
				p := kit.Shared(t)
				tries := 0
				again := collyrobots.OnDenied(func(r *colly.Request, err error) {
					if unpaced := (*report.PaceError)(nil); errors.As(err, &unpaced) {
						tries++
						time.Sleep(10 * time.Second)
						r.Retry()
					}
				})
				c := kit.Start(t, web, kit.Async, collyrobots.SharedPace(p), again)
				c.Visit("http://a.test/0")
				c.Wait()
				p.Set(func() { p.Err = errors.New("down") })
				time.AfterFunc(outage, func() { p.Set(func() { p.Err = nil }) })
				c.Visit("http://a.test/1")
				c.Wait()
				kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1")
				if least := int(outage / (10 * time.Second)); tries < least {
					t.Errorf("%d tries, want at least %d", tries, least)
				}
			})
		})
	}
}

// TestRetryWithoutPauseEnds checks that retries without a pause end, as for any other denial.
func TestRetryWithoutPauseEnds(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := kit.Shared(t)
		p.Err = errors.New("down")
		tries := 0
		c := kit.Start(t, web, nil, collyrobots.SharedPace(p), collyrobots.OnDenied(func(r *colly.Request, _ error) { tries++; r.Retry() }))
		c.Visit("http://a.test/")
		if tries == 0 || tries > 20 {
			t.Errorf("%d tries, want between 1 and 20", tries)
		}
	})
}

// TestSharedDelayExceedsLifetimeOfRobots checks that processes keep a delay that is longer than
// their robots.txt is fresh, and that all pages are fetched.
func TestSharedDelayExceedsLifetimeOfRobots(t *testing.T) {
	for name, kept := range map[string]func() store.Store{
		"with a store":    store.NewMemory,
		"without a store": func() store.Store { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			site := robotstest.Site{"/robots.txt": kit.RobotsFor(time.Hour, "User-agent: *\nCrawl-delay: 7200\n"), "*": robotstest.Page()}
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				sharing := kit.Shared(t)
				options := []collyrobots.Option{collyrobots.SharedPace(sharing)}
				if s := kept(); s != nil {
					defer s.Close()
					options = append(options, collyrobots.Store(s))
				}
				var processes []*kit.Crawl
				for i := range 3 {
					c := kit.Start(t, web, kit.Async, options...)
					processes = append(processes, c)
					for j := range 3 {
						c.Visit(fmt.Sprint("http://a.test/", i, "/", j))
					}
				}
				pages := 0
				for _, c := range processes {
					c.Wait()
					pages += len(c.Pages)
				}
				log := web.Log("a.test")
				paced := log
				if name == "without a store" {
					paced = log[len(processes)-1:] // each process fetches the file, when no delay is known
					for _, c := range processes {
						c.Impolite = true
					}
				}
				if gap := paced.MinGap(); gap < 2*time.Hour-time.Microsecond {
					t.Errorf("gap of %v between requests to a.test:\n%s", gap, log)
				}
				// For each page, the file is fetched at most twice: when it is visited, and when it
				// may start.
				if pages != 9 || len(log) > 3*9 {
					t.Errorf("got %d pages in %d requests, want 9 in at most 27:\n%s", pages, len(log), log)
				}
			})
		})
	}
}

// TestNameChangedUnderSharedPace checks that a page gives its turn back while robots.txt is read
// for another user agent, which a callback has given to the page after its turn had come. Otherwise
// the request for robots.txt would wait for the lease of the page.
func TestNameChangedUnderSharedPace(t *testing.T) {
	for name, site := range map[string]string{"with a delay": "User-agent: *\nCrawl-delay: 2\n", "without a delay": kit.NoDenys} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, site)}, func(t *testing.T, web *robotstest.Web) {
					c := kit.Start(t, web, nil, collyrobots.SharedPace(kit.Shared(t)))
					c.OnRequestHeaders(func(r *colly.Request) { r.Headers.Set("User-Agent", "OtherBot/1.0") })
					began := time.Now()
					kit.Must(t, c.Visit("http://a.test/1"))
					// The turn that the page gives back costs one delay.
					if took := time.Since(began); took > 6*time.Second {
						t.Errorf("the page came after %v, want at most three delays", took)
					}
				})
			}
		})
	}
}
