package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
)

// methods is what a host was asked with, in order.
func (w *wire) methods(host string) string {
	var all []string
	for _, h := range w.hits(host) {
		all = append(all, h.header.Get("Method")+" "+h.uri)
	}
	return strings.Join(all, ", ")
}

// Colly's built-in check lets every HEAD pass.
func TestHeadIsJudgedAndPaced(t *testing.T) {
	onWire(t, map[string]site{"a.test": pages(3, "User-agent: *\nCrawl-delay: 1\nDisallow: /2")}, func(t *testing.T, w *wire) {
		c := w.start(t, nil)
		c.CheckHead = true
		for i := range 3 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Head("http://a.test/2?head")
		c.Head("http://a.test/1?head") // not found
		w.wantPace(t, "a.test", time.Second, 6)
		if got, want := w.methods("a.test"), "GET /robots.txt, HEAD /0, GET /0, HEAD /1, GET /1, HEAD /1?head"; got != want {
			t.Errorf("a.test was asked for %s, want %s", got, want)
		}
		wantDenied(t, c, "http://a.test/2", collyrobots.ReasonRule, 3)
		wantDenied(t, c, "http://a.test/2?head", collyrobots.ReasonRule, 3)
	})
}

// Retries wait as pages do, wherever they are made.
func TestRetriesKeepThePace(t *testing.T) {
	a := pages(3, "User-agent: *\nCrawl-delay: 1\nDisallow: /2")
	a["/0"] = 500
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
				retried := map[string]int{}
				again := func(r *colly.Request) bool { retried[r.URL.Path]++; return retried[r.URL.Path] <= 3 }
				denials := 0
				c := w.start(t, options, collyrobots.OnDenied(func(r *colly.Request, _ error) {
					if denials++; again(r) {
						r.Retry()
					}
				})).follow()
				c.OnError(func(r *colly.Response, _ error) {
					if again(r.Request) {
						r.Request.Retry()
					}
				})
				c.Visit("http://a.test/")
				c.Wait()
				w.wantPace(t, "a.test", time.Second, 3+4) // /0 four times
				if denials != 4 || strings.Contains(w.uris("a.test"), "/2") {
					t.Errorf("/2 was denied %d times, want 4; a.test was asked for %s", denials, w.uris("a.test"))
				}
			})
		})
	}
}

// MaxRequests counts pages, not robots.txt; MaxDepth counts links.
func TestMaxRequestsAndMaxDepth(t *testing.T) {
	a := site{"/robots.txt": "User-agent: *\nCrawl-delay: 1"}
	for i := range 10 {
		a[fmt.Sprint("/", i)] = page(fmt.Sprint("/", i+1))
	}
	for name, tc := range map[string]struct {
		option colly.CollectorOption
		want   string
	}{
		"MaxRequests": {colly.MaxRequests(3), "0s /robots.txt, 1s /0, 2s /1, 3s /2"},
		"MaxDepth":    {colly.MaxDepth(2), "0s /robots.txt, 1s /0, 2s /1"},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
				c := w.start(t, append(async, tc.option)).follow()
				c.Visit("http://a.test/0")
				c.Wait()
				w.wantSchedule(t, "a.test", tc.want)
			})
		})
	}
}

// Domains and filters are about pages: a robots.txt that moved to where no page may be read is read all the same.
func TestFiltersDoNotHideRobotsTxt(t *testing.T) {
	for name, set := range map[string]colly.CollectorOption{
		"AllowedDomains":       colly.AllowedDomains("a.test"),
		"DisallowedDomains":    colly.DisallowedDomains("cdn.test"),
		"URLFilters":           colly.URLFilters(regexp.MustCompile(`^http://a\.test/\d?$`)),
		"DisallowedURLFilters": colly.DisallowedURLFilters(regexp.MustCompile(`robots|cdn`)),
	} {
		t.Run(name, func(t *testing.T) {
			a := pages(3, "")
			a["/robots.txt"] = redirect("https://cdn.test/a-robots")
			onWire(t, map[string]site{"a.test": a, "cdn.test": {
				"/a-robots": redirect("/b-robots"), "/b-robots": "User-agent: *\nCrawl-delay: 1\nDisallow: /1"},
			}, func(t *testing.T, w *wire) {
				c := w.start(t, []colly.CollectorOption{set}).follow()
				c.Visit("http://a.test/")
				w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /, 2s /0, 3s /2")
				if got, want := w.uris("cdn.test"), "/a-robots /b-robots"; got != want {
					t.Errorf("cdn.test was asked for %s, want %s", got, want)
				}
			})
		})
	}
}

// Pages from CacheDir take no start from those on the wire: a second crawl asks for the new ones alone, without a pause.
func TestCacheHitsTakeNoStart(t *testing.T) {
	a := pages(20, "User-agent: *\nCrawl-delay: 10")
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		dir := t.TempDir()
		filler := colly.NewCollector(colly.CacheDir(dir)) // without robots
		filler.WithTransport(w.client)
		for i := range 20 {
			if i%4 != 0 {
				filler.Visit(fmt.Sprint("http://a.test/", i))
			}
		}
		before := len(w.hits(""))
		c := w.start(t, append(async, colly.CacheDir(dir)))
		for i := range 20 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		w.log = w.log[before:]
		w.wantPace(t, "a.test", 10*time.Second, 1+5)
		if len(c.pages) != 20 {
			t.Errorf("%d pages, want 20", len(c.pages))
		}
	})
}

func TestQueues(t *testing.T) {
	for _, threads := range []int{1, 4} {
		t.Run(fmt.Sprint(threads, " threads"), func(t *testing.T) {
			onWire(t, map[string]site{
				"a.test": pages(8, "User-agent: *\nCrawl-delay: 1\nDisallow: /7"),
				"b.test": pages(8, "User-agent: *\nCrawl-delay: 3"),
			}, func(t *testing.T, w *wire) {
				q, err := queue.New(threads, nil)
				must(t, err)
				c := w.start(t, nil)
				c.OnHTML("a[href]", func(e *colly.HTMLElement) {
					if err := q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))); err != nil {
						t.Error(err)
					}
				})
				for _, host := range []string{"a", "b"} {
					must(t, q.AddURL("http://"+host+".test/"))
				}
				must(t, q.Run(c.Collector.Collector))
				w.wantNoSooner(t, "a.test", 1*time.Second, 1+1+7)
				w.wantNoSooner(t, "b.test", 3*time.Second, 1+1+8)
				if strings.Contains(w.uris("a.test"), "/7") {
					t.Errorf("a.test was asked for %s", w.uris("a.test"))
				}
			})
		})
	}
}

// What a callback does that is registered after Attach: the plugin cannot see it coming. Pages 0 to 3 are visited, in this order.
func TestCallbacksAfterAttach(t *testing.T) {
	at := func(path string, f func(c *crawl, r *colly.Request)) func(*crawl, *colly.Request) {
		return func(c *crawl, r *colly.Request) {
			if r.URL.Path == path && r.URL.Host == "a.test" {
				f(c, r)
			}
		}
	}
	abort := at("/1", func(_ *crawl, r *colly.Request) { r.Abort() })
	visit := at("/1", func(c *crawl, _ *colly.Request) {
		c.Visit("http://a.test/4")
		c.Visit("http://a.test/closed")
	})
	cases := []struct {
		name      string
		onRequest func(*crawl, *colly.Request)
		onHeaders func(*crawl, *colly.Request) // in OnRequestHeaders
		want      string
		async     string // where the schedule of an async collector differs
		other     string // the schedule of b.test
	}{
		{name: "nothing", want: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3"},
		{
			// Nothing tells of it, so the next page waits until the ticket lapses, one delay later.
			name: "abort", onRequest: abort,
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			// The start is taken.
			name: "abort in OnRequestHeaders", onHeaders: abort,
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			name: "rewrite to a disallowed page", onRequest: at("/1", func(_ *crawl, r *colly.Request) { r.URL.Path = "/closed" }),
			want: "0s /robots.txt, 2s /0, 4s /2, 6s /3",
		},
		{
			name: "rewrite to a disallowed page in OnRequestHeaders", onHeaders: at("/1", func(_ *crawl, r *colly.Request) { r.URL.Path = "/closed" }),
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			name: "rewrite to another page", onRequest: at("/1", func(_ *crawl, r *colly.Request) { r.URL.Path = "/4" }),
			want: "0s /robots.txt, 2s /0, 4s /4, 6s /2, 8s /3",
		},
		{
			name: "rewrite to https", onRequest: at("/1", func(_ *crawl, r *colly.Request) { r.URL.Scheme = "https" }),
			want: "0s /robots.txt, 2s /0, 4s /robots.txt, 6s /1, 8s /2, 10s /3",
		},
		{
			// Its robots.txt is asked for first. The ticket at a.test lapses.
			name: "rewrite to another host", onRequest: at("/1", func(_ *crawl, r *colly.Request) { r.URL.Host = "b.test" }),
			want: "0s /robots.txt, 2s /0, 7s /2, 9s /3", async: "0s /robots.txt, 2s /0, 6s /2, 8s /3", other: "4s /robots.txt, 7s /1",
		},
		{
			name: "rewrite to a disallowed page of another host", onRequest: at("/2", func(_ *crawl, r *colly.Request) { r.URL.Host = "b.test" }),
			other: "6s /robots.txt",
		},
		{
			// In a sync crawl the page that visits waits for the one that it visits, whose turn comes when the ticket lapses.
			name: "visit the same host", onRequest: visit,
			want: "0s /robots.txt, 2s /0, 6s /4, 8s /1, 10s /2, 12s /3", async: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3, 10s /4",
		},
		{
			name: "visit the same host in OnRequestHeaders", onHeaders: visit,
			want: "0s /robots.txt, 2s /0, 6s /4, 8s /1, 10s /2, 12s /3", async: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3, 10s /4",
		},
	}
	for _, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				onWire(t, map[string]site{
					"a.test": pages(5, "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n"),
					"b.test": pages(5, "User-agent: *\nCrawl-delay: 3\nDisallow: /2"),
				}, func(t *testing.T, w *wire) {
					c := w.start(t, options)
					if tc.onRequest != nil {
						c.OnRequest(func(r *colly.Request) { tc.onRequest(c, r) })
					}
					if tc.onHeaders != nil {
						c.OnRequestHeaders(func(r *colly.Request) { tc.onHeaders(c, r) })
					}
					for i := range 4 {
						c.Visit(fmt.Sprint("http://a.test/", i))
						synctest.Wait() // it is in line
					}
					c.Wait()
					want := tc.want
					if mode == "async" && tc.async != "" {
						want = tc.async
					}
					if want != "" {
						w.wantSchedule(t, "a.test", want)
					}
					w.wantNoSooner(t, "a.test", 2*time.Second, len(w.hits("a.test")))
					w.wantSchedule(t, "b.test", tc.other)
				})
			})
		}
	}
}

// Callbacks registered before Attach run before the plugin's, which sees what they did.
func TestCallbacksBeforeAttach(t *testing.T) {
	onWire(t, map[string]site{
		"a.test": pages(5, "User-agent: *\nDisallow: /4\nCrawl-delay: 2\n\nUser-agent: OtherBot\nDisallow: /3\nCrawl-delay: 1"),
		"b.test": pages(5, "User-agent: *\nDisallow: /2"),
	}, func(t *testing.T, w *wire) {
		c := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
		c.WithTransport(w.client)
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("User-Agent", "OtherBot/2.0")
			switch r.URL.Path {
			case "/0":
				r.Abort() // costs nothing
			case "/1", "/2":
				r.URL.Host = "b.test"
			}
		})
		_, err := collyrobots.WithRobots(c)
		must(t, err)
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		c.Wait()
		w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /4")
		w.wantSchedule(t, "b.test", "0s /robots.txt, 0s /1")
		for _, h := range w.hits("") {
			if ua := h.header.Get("User-Agent"); ua != "OtherBot/2.0" {
				t.Errorf("%s was asked for by %s", h.uri, ua)
			}
		}
	})
}

// Whatever waits when the context ends, waits no longer: Wait returns in the same instant.
func TestTheEndOfTheContextIsTheEndOfEveryWait(t *testing.T) {
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	hour := pages(1, "User-agent: *\nCrawl-delay: 3600")
	hour["/hop"] = redirect("/0")
	for name, tc := range map[string]struct {
		url   func(i int) string // of 500
		limit *colly.LimitRule
		sent  int // how many requests
	}{
		"parked":                    {url: func(i int) string { return fmt.Sprint("http://hour.test/0?", i) }, sent: 1},
		"parked, under a LimitRule": {url: func(i int) string { return fmt.Sprint("http://hour.test/0?", i) }, sent: 1, limit: &colly.LimitRule{DomainGlob: "*", Delay: time.Hour}},
		"waiting for robots.txt":    {url: func(i int) string { return fmt.Sprint("http://silent.test/?", i) }, sent: 1},
		"hosts without end":         {url: func(i int) string { return fmt.Sprintf("http://h%d.silent.test/", i) }, sent: 500},
		"on the wire":               {url: func(i int) string { return fmt.Sprint("http://open.test/hang?", i) }, sent: 501},
	} {
		t.Run(name, func(t *testing.T) {
			sites := map[string]site{"hour.test": hour, "silent.test": {"/robots.txt": hang}, "open.test": {"/robots.txt": ""}}
			for i := range 500 {
				sites[fmt.Sprintf("h%d.silent.test", i)] = sites["silent.test"]
				sites["open.test"][fmt.Sprint("/hang?", i)] = hang
			}
			onWire(t, sites, func(t *testing.T, w *wire) {
				ctx, cancel := context.WithCancelCause(t.Context())
				c := w.start(t, append(async, colly.StdlibContext(ctx)))
				limited(t, c, tc.limit)
				for i := range 500 {
					c.Visit(tc.url(i))
				}
				time.Sleep(5 * time.Second)
				enough := errors.New("enough")
				cancel(enough)
				c.Wait()
				if took := time.Since(w.began); took != 5*time.Second {
					t.Errorf("Wait returned %v after the end of the context", took-5*time.Second)
				}
				if n := len(w.hits("")); n != tc.sent {
					t.Errorf("%d requests, want %d", n, tc.sent)
				}
				if n := len(c.denied) + len(c.errs); n != 500 {
					t.Errorf("told of %d requests that were not sent or failed, want 500", n)
				}
				for u, err := range c.denied {
					if !errors.Is(err, enough) {
						t.Fatalf("%s: OnDenied was told %v, want the cause", u, err)
					}
				}
			})
		})
	}
}

// A hop waits with the context as well.
func TestTheEndOfTheContextEndsAHop(t *testing.T) {
	onWire(t, map[string]site{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 30", "/": redirect("/1"), "/1": page()}}, func(t *testing.T, w *wire) {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		c := w.start(t, []colly.CollectorOption{colly.StdlibContext(ctx)})
		if err := c.Visit("http://a.test/"); !errors.Is(err, context.DeadlineExceeded) || time.Since(w.began) != 40*time.Second {
			t.Errorf("Visit: %v after %v", err, time.Since(w.began))
		}
		w.wantSchedule(t, "a.test", "0s /robots.txt, 30s /")
	})
}

// After a context has ended, the crawl goes on with the next one, at the host's pace.
func TestTheContextMayBeSwapped(t *testing.T) {
	onWire(t, map[string]site{"a.test": pages(4, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, w *wire) {
		c := w.start(t, nil)
		for i := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			c.Context = ctx
			c.Visit(fmt.Sprint("http://a.test/", i)) // every other one has not time enough
			cancel()
		}
		w.wantSchedule(t, "a.test", "0s /robots.txt, 10s /1, 20s /3")
		if len(c.denied) != 2 || !errors.Is(c.denied["http://a.test/2"], context.DeadlineExceeded) {
			t.Errorf("OnDenied was told %v", c.denied)
		}
	})
}

// One collector's end is not another's, though they share a fetch of robots.txt and a line of waiting pages.
func TestOneCollectorsContextIsItsOwn(t *testing.T) {
	slow := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Second)
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 10")
	})
	a := pages(6, "")
	a["/robots.txt"] = slow
	for name, tc := range map[string]struct {
		end  time.Duration
		want string
	}{
		"in the fetch": {4 * time.Second, "0s /robots.txt, 10s /3"},
		"in line":      {12 * time.Second, "0s /robots.txt, 10s /0, 20s /1, 30s /3, 40s /5"},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.end)
				defer cancel()
				first := w.start(t, append(async, colly.StdlibContext(ctx)))
				second := first.Clone()
				second.Context = t.Context()
				if name == "in the fetch" {
					first.Visit("http://a.test/0") // its fetch it is
					synctest.Wait()
					second.Visit("http://a.test/3")
				} else {
					first.robots.Check(t.Context(), "http://a.test/") // so that all get in line at once
					for i := range 6 {
						[]*collyrobots.Collector{first.Collector, second}[i%2].Visit(fmt.Sprint("http://a.test/", i))
						synctest.Wait()
					}
				}
				first.Wait()
				if took := time.Since(w.began); took != tc.end {
					t.Errorf("the first collector ended after %v, want %v", took, tc.end)
				}
				second.Wait()
				w.wantSchedule(t, "a.test", tc.want)
			})
		})
	}
}

// Collectors of every kind that share a plugin share the pace, whichever client they send with. So does a clone made by Colly's
// own Clone and not attached, since the guard sits in its client.
func TestCollectorsOfOnePluginShareThePace(t *testing.T) {
	onWire(t, map[string]site{"a.test": pages(20, "User-agent: *\nCrawl-delay: 1\nDisallow: /19")}, func(t *testing.T, w *wire) {
		c := w.start(t, async)
		own := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		own.WithTransport(w.transport(t))
		must(t, c.robots.Attach(own))
		own.WithTransport(w.transport(t)) // after Attach
		proxied := colly.NewCollector(colly.Async())
		proxied.WithTransport(w.transport(t))
		must(t, proxied.SetProxy("http://proxy.test:3128"))
		must(t, c.robots.Attach(proxied))
		plain := c.Collector.Collector.Clone()
		all := []*colly.Collector{c.Collector.Collector, c.Clone().Collector, own, proxied, plain}
		c.Visit("http://a.test/") // lets the guard into the client before another collector uses it
		c.Wait()
		for i := range 20 {
			all[i%len(all)].Visit(fmt.Sprint("http://a.test/", i))
		}
		for _, collector := range all {
			collector.Wait()
		}
		w.wantPace(t, "a.test", time.Second, 2+19)
	})
}
