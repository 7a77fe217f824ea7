package denial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file are about pages of Async collectors that fail in OnRequest, because they
// are denied or because the context of the collector has ended.

// slowRule is a LimitRule that gives a page a slot every half second.
func slowRule() *colly.LimitRule {
	return &colly.LimitRule{DomainGlob: "*", Parallelism: 2, Delay: time.Second}
}

// TestCallbacksOfDeniedPage compares the callbacks of a page that fails in OnRequest with those of a
// synchronous collector, where it fails in the transport. There are two differences: net/http writes
// "***" for a password, and Colly adds the Content-Type of a POST after OnRequest.
func TestCallbacksOfDeniedPage(t *testing.T) {
	sites := robotstest.Sites{
		"a.test":    {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "*": robotstest.Page()},
		"slow.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 100\n", "*": robotstest.Page()},
		"down.test": {"*": kit.Drop},
		"busy.test": {"*": 503},
	}
	get := func(url string) func(c *colly.Collector) {
		return func(c *colly.Collector) { c.Visit(url) }
	}
	for name, tc := range map[string]struct {
		visit   func(c *colly.Collector)
		options []collyrobots.Option
	}{
		"a rule":              {visit: get("http://a.test/closed?q=1")},
		"a password":          {visit: get("http://joe:secret@a.test/closed")},
		"POST":                {visit: func(c *colly.Collector) { c.Post("http://a.test/closed", map[string]string{"q": "1"}) }},
		"HEAD":                {visit: func(c *colly.Collector) { c.Head("http://a.test/closed") }},
		"no method":           {visit: func(c *colly.Collector) { c.Request("", "http://a.test/closed", nil, nil, nil) }},
		"no response":         {visit: get("http://down.test/")},
		"no robots.txt":       {visit: get("http://busy.test/")},
		"a delay":             {visit: get("http://slow.test/"), options: []collyrobots.Option{collyrobots.SkipCrawlDelayAbove(time.Minute)}},
		"a shard":             {visit: get("http://a.test/"), options: []collyrobots.Option{collyrobots.ShardByHost(1000, 0)}},
		"an ended context":    {visit: func(c *colly.Collector) { end(c); c.Visit("http://a.test/") }},
		"a context that ends": {visit: func(c *colly.Collector) { endAfter(c, time.Minute); c.Visit("http://slow.test/") }},
		"a Context": {visit: func(c *colly.Collector) {
			ctx := colly.NewContext()
			ctx.Put("k", "v")
			c.Request("GET", "http://a.test/closed", nil, ctx, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(options []colly.CollectorOption) (calls []string) {
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					note := func(format string, args ...any) {
						calls = append(calls, fmt.Sprintf(format, args...))
					}
					c := colly.NewCollector(options...)
					c.SetDebugger(eventLog(func(e *debug.Event) {
						if e.Type != "requestHeaders" {
							note("debugger: %s %v %v", e.Type, e.RequestID, e.Values)
						}
					}))
					c.WithTransport(web.Transport())
					c.OnRequest(func(r *colly.Request) { note("OnRequest before") })
					onError := func(which string) colly.ErrorCallback {
						return func(r *colly.Response, err error) {
							q := r.Request
							timeout, _ := err.(interface{ Timeout() bool })
							note("OnError %s: %v %T %v %d %d %v %q %v %v %v %q", which, err, err, timeout.Timeout(), r.StatusCode, q.Depth, *r.Headers, r.Ctx.Get("k"), q.URL, q.Method, *q.Headers, q.ProxyURL)
						}
					}
					c.OnError(onError("before"))
					options := append([]collyrobots.Option{
						collyrobots.OnDenied(func(r *colly.Request, err error) { note("OnDenied: %v %d", err, r.ID) }),
					}, tc.options...)
					robots, err := collyrobots.WithRobots(c, options...)
					kit.Must(t, err)
					defer robots.Close()
					c.OnRequest(func(r *colly.Request) { note("OnRequest after %t", r.IsAbort()) })
					c.OnError(onError("after"))
					c.OnScraped(func(*colly.Response) { note("OnScraped") })
					tc.visit(c)
					c.Wait()
					s := robots.Stats()
					note("%v: %d denied, %v, not sent %v, %d requests", time.Now().UTC(), s.Totals.Denied, s.Decisions, s.NotSent, s.Totals.Requests)
				})
				return calls
			}
			want := run(nil)
			for i := range want {
				want[i] = strings.NewReplacer("joe:***@", "joe:xxxxx@", " Content-Type:[application/x-www-form-urlencoded]", "").Replace(want[i])
			}
			got := run(kit.Async)
			if !slices.Equal(got, want) {
				t.Errorf("the calls of the async collector:\n%s\n\nthose of the synchronous one:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if !slices.ContainsFunc(got, func(call string) bool { return strings.HasPrefix(call, "OnError after") }) {
				t.Errorf("OnError was not called:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// An eventLog is a debugger.
type eventLog func(*debug.Event)

func (eventLog) Init() error { return nil }

func (l eventLog) Event(e *debug.Event) { l(e) }

// endAfter ends the context of a collector after a time.
func endAfter(c *colly.Collector, d time.Duration) {
	ctx, cancel := context.WithCancelCause(c.Context)
	c.Context = ctx
	time.AfterFunc(d, func() { cancel(errors.New("enough")) })
}

// TestLaterCallbackDecides has OnRequest callbacks after that of the plugin which change or abort a
// denied page.
func TestLaterCallbackDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		later colly.RequestCallback
		want  string // requests to a.test
		fails bool
	}{
		"nothing":            {later: func(*colly.Request) {}, want: "/robots.txt", fails: true},
		"to another page":    {later: func(r *colly.Request) { r.URL.Path = "/open" }, want: "/robots.txt /open"},
		"to another crawler": {later: func(r *colly.Request) { r.Headers.Set("User-Agent", "OtherBot/1.0") }, want: "/robots.txt", fails: true},
		"an abort":           {later: func(r *colly.Request) { r.Abort() }, want: "/robots.txt"},
		"a long time":        {later: func(*colly.Request) { time.Sleep(time.Minute) }, want: "/robots.txt", fails: true},
	} {
		for mode, options := range kit.Modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
					c := kit.Start(t, web, options)
					c.OnRequest(tc.later)
					c.Visit("http://a.test/closed")
					c.Wait()
					kit.WantURIs(t, web, "a.test", tc.want)
					if failed := len(c.Errs) > 0; failed != tc.fails || len(c.Denied) != len(c.Errs) {
						t.Errorf("OnError got %v, OnDenied %v", c.Errs, c.Denied)
					}
				})
			})
		}
	}
}

// TestCallbackBetweenCrawls registers OnRequest callbacks between two crawls of one collector. Each
// of them must see denied pages before they fail.
func TestCallbackBetweenCrawls(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /closed\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		kit.Limited(t, c, slowRule())
		var mu sync.Mutex
		open := 0 // pages whose OnRequest callbacks were called and that have not ended
		began := 0
		c.OnError(func(*colly.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if open != began {
				t.Errorf("OnError was called after %d of %d callbacks of OnRequest", open, began)
			}
			open = 0
		})
		since := time.Now()
		for i := range 8 {
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/closed/", i)))
			c.Wait()
			began++
			c.OnRequest(func(r *colly.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.IsAbort() {
					t.Error("OnRequest was called for an aborted request")
				}
				open++
			})
		}
		if len(c.Errs) != 8 || time.Since(since) != 0 {
			t.Errorf("%d pages failed in %v", len(c.Errs), time.Since(since))
		}
	})
}

// TestRetryOfDeniedPageInGoroutine calls Retry in a goroutine of its own, which may run while the
// hooks of the denied page return.
func TestRetryOfDeniedPageInGoroutine(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /closed\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		c.OnRequest(func(*colly.Request) {})
		var tries atomic.Int32
		var retriedURLs sync.Map
		var retries sync.WaitGroup
		c.OnError(func(r *colly.Response, _ error) {
			tries.Add(1)
			if _, retried := retriedURLs.LoadOrStore(r.Request.URL.String(), true); !retried {
				retries.Go(func() { r.Request.Retry() })
			}
		})
		for i := range 20 {
			c.Visit(fmt.Sprint("http://a.test/closed/", i))
		}
		synctest.Wait()
		retries.Wait()
		c.Wait()
		if n := tries.Load(); n != 40 {
			t.Errorf("OnError was called %d times, want 40", n)
		}
	})
}

// TestOnErrorEndsGoroutine has an OnError callback that ends its goroutine, as t.FailNow does.
func TestOnErrorEndsGoroutine(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /closed\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		c.OnError(func(*colly.Response, error) { runtime.Goexit() })
		c.Visit("http://a.test/closed")
		c.Visit("http://a.test/1")
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /1")
	})
}

// TestOnErrorIsAddedDuringCrawl registers OnError callbacks while denied pages fail. Colly reads the
// callbacks of other failures without a lock, so only these may be added.
func TestOnErrorIsAddedDuringCrawl(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "User-agent: *\nDisallow: /closed\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		var calls atomic.Int32
		for i := range 200 {
			c.Visit(fmt.Sprint("http://a.test/closed/", i))
			c.OnError(func(*colly.Response, error) { calls.Add(1) })
		}
		c.Wait()
		if len(c.Errs) != 200 {
			t.Errorf("%d pages failed, %d calls of later callbacks", len(c.Errs), calls.Load())
		}
	})
}

// TestAbortedPagesReadNoCallbackThatChanges has pages that a callback before the plugin aborts while
// the plugin prepares the callbacks after it. The race detector must find nothing.
func TestAbortedPagesReadNoCallbackThatChanges(t *testing.T) {
	for range 20 {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
			c := colly.NewCollector(colly.Async())
			c.WithTransport(web.Transport())
			c.OnRequest(func(r *colly.Request) {
				if r.ID%2 == 0 {
					r.Abort()
				}
			})
			robots, err := collyrobots.WithRobots(c)
			kit.Must(t, err)
			defer robots.Close()
			var calls atomic.Int32
			c.OnRequest(func(*colly.Request) { calls.Add(1) })
			var visits sync.WaitGroup
			for i := range 50 {
				visits.Go(func() { c.Visit(fmt.Sprint("http://a.test/0?", i)) })
			}
			visits.Wait()
			c.Wait()
			if calls.Load() != 50 {
				t.Errorf("the callback was called %d times, want 50", calls.Load())
			}
		})
	}
}

// A closable is a request body that must be closed.
type closable struct {
	*strings.Reader
	closed atomic.Bool
}

func (c *closable) Close() error {
	c.closed.Store(true)
	return nil
}

func TestBodyOfDeniedPageIsClosed(t *testing.T) {
	for mode, options := range kit.Modes {
		t.Run(mode, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "User-agent: *\nDisallow: /closed\n")}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, options)
				body := &closable{Reader: strings.NewReader("x")}
				c.Request(http.MethodPut, "http://a.test/closed", body, nil, nil)
				c.Wait()
				if !body.closed.Load() || len(c.Errs) != 1 {
					t.Errorf("closed: %t, errors %v", body.closed.Load(), c.Errs)
				}
			})
		})
	}
}
