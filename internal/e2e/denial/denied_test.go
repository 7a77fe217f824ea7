package denial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// The tests of this file check that a denied page fails like any page that cannot be fetched.

// TestDeniedPageFails requests a denied page in all ways that Colly has. The call must return the
// error, unless the collector is Async, and OnError and OnDenied must be called once.
func TestDeniedPageFails(t *testing.T) {
	const closed = "http://a.test/closed"
	form := map[string]string{"q": "x"}
	for name, visit := range map[string]func(c *colly.Collector) error{
		"Visit":         func(c *colly.Collector) error { return c.Visit(closed) },
		"Head":          func(c *colly.Collector) error { return c.Head(closed) },
		"Post":          func(c *colly.Collector) error { return c.Post(closed, form) },
		"PostRaw":       func(c *colly.Collector) error { return c.PostRaw(closed, []byte("x")) },
		"PostMultipart": func(c *colly.Collector) error { return c.PostMultipart(closed, map[string][]byte{"q": []byte("x")}) },
		"Request": func(c *colly.Collector) error {
			return c.Request(http.MethodPut, closed, strings.NewReader("x"), nil, nil)
		},
		"CheckHead": func(c *colly.Collector) error { c.CheckHead = true; return c.Visit(closed) },
		"a link": func(c *colly.Collector) (err error) {
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { err = e.Request.Visit(e.Attr("href")) })
			c.Visit("http://a.test/")
			c.Wait()
			return err
		},
		"a form": func(c *colly.Collector) (err error) {
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { err = e.Request.Post(e.Attr("href"), form) })
			c.Visit("http://a.test/")
			c.Wait()
			return err
		},
		"Retry": func(c *colly.Collector) (err error) {
			c.OnRequest(func(r *colly.Request) {
				if r.URL.Path == "/" {
					r.Abort()
					r.URL.Path = "/closed"
					err = r.Retry()
				}
			})
			c.Visit("http://a.test/")
			c.Wait()
			return err
		},
	} {
		for mode, options := range kit.Modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				a := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Page("/closed"), "/closed": robotstest.Page()}
				kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
					var failed, denied, scraped []error
					var c *kit.Crawl
					c = kit.Start(t, web, options, collyrobots.OnDenied(func(_ *colly.Request, err error) {
						c.Note(func() { denied = append(denied, err) })
					}))
					c.OnError(func(_ *colly.Response, err error) { c.Note(func() { failed = append(failed, err) }) })
					c.OnScraped(func(r *colly.Response) {
						if r.Request.URL.Path == "/closed" {
							scraped = append(scraped, nil)
						}
					})
					err := visit(c.Collector.Collector)
					c.Wait()
					wantFailed := 1
					if mode == "async" {
						if err != nil {
							t.Errorf("the call returned %v, want nil", err)
						}
						if name == "CheckHead" {
							wantFailed = 2 // Colly sends both requests at once
						}
						err = failed[0]
					}
					if len(failed) != wantFailed || len(denied) != wantFailed || len(scraped) != 0 || failed[0] != err {
						t.Fatalf("the call returned %v; OnError got %v, OnDenied %v, OnScraped was called %d times", err, failed, denied, len(scraped))
					}
					disallowed, outer := (*collyrobots.DeniedError)(nil), (*url.Error)(nil)
					if !errors.As(err, &disallowed) || denied[0] != error(disallowed) && name != "CheckHead" || !errors.As(err, &outer) || !errors.Is(err, colly.ErrRobotsTxtBlocked) {
						t.Errorf("the call returned %v, OnDenied got %v", err, denied[0])
					}
					if n := c.Robots.Stats().Totals.Denied; n != wantFailed {
						t.Errorf("Stats counts %d denials, want %d", n, wantFailed)
					}
					if strings.Contains(kit.URIsOf(web.Log("a.test")), "closed") {
						t.Errorf("requests to a.test: %s", kit.URIsOf(web.Log("a.test")))
					}
				})
			})
		}
	}
}

// TestErrorOfVisitContainsEachURLOnce checks the text of the error of Visit, which wraps several
// errors with URLs.
func TestErrorOfVisitContainsEachURLOnce(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/moved": robotstest.Redirect("/closed/2")},
		"b.test": {"/robots.txt": 503},
		"c.test": {"*": kit.Drop},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		for visit, want := range map[string]string{ // net/http adds the URL of the redirect's target
			"http://a.test/closed": `Get "http://a.test/closed": collyrobots: denied: "Disallow: /closed", line 2 of http://a.test/robots.txt, group "*" (rfc9309)`,
			"http://a.test/moved":  `Get "http://a.test/closed/2": collyrobots: denied: "Disallow: /closed", line 2 of http://a.test/robots.txt, group "*" (rfc9309)`,
			"http://b.test/page":   `Get "http://b.test/page": collyrobots: denied: http://b.test/robots.txt: robots.txt cannot be read: robots.txt answered with status 503 (rfc9309)`,
			"http://c.test/page":   `Get "http://c.test/page": collyrobots: denied: http://c.test/robots.txt: robots.txt cannot be read: `,
		} {
			err := c.Visit(visit)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("Visit returned %v, want %s", err, want)
			} else if n := strings.Count(err.Error(), "test/"); n != 2 {
				t.Errorf("the error contains %d URLs, want those of the page and of robots.txt: %v", n, err)
			}
		}
	})
}

// TestDeniedPageIsNotServedFromCacheDir checks that a denied page is not served from CacheDir, and
// that a later retry that is allowed is.
func TestDeniedPageIsNotServedFromCacheDir(t *testing.T) {
	for name, header := range map[string]http.Header{
		"no Cache-Control": {},
		"Cache-Control":    {"Cache-Control": {"max-age=60", "no-transform"}},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
				cache := []colly.CollectorOption{colly.CacheDir(t.TempDir()), colly.AllowURLRevisit()}
				c := kit.Start(t, web, cache)
				kit.Must(t, c.Visit("http://a.test/0"))
				kit.Must(t, c.Robots.Close())
				web.Set("a.test", "/robots.txt", "User-agent: *\nDisallow: /\n")
				c = kit.Start(t, web, cache)
				c.Impolite = true // the page was fetched before it was denied
				var denied *colly.Request
				c.OnError(func(r *colly.Response, _ error) { denied = r.Request })
				visit := func() error { return c.Request(http.MethodGet, "http://a.test/0", nil, nil, header.Clone()) }
				if err := visit(); !errors.Is(err, colly.ErrRobotsTxtBlocked) || len(c.Pages) != 0 {
					t.Fatalf("Visit of a denied page in the cache returned %v; got pages %v", err, c.Pages)
				}
				web.Set("a.test", "/robots.txt", kit.NoDenys)
				time.Sleep(25 * time.Hour)
				kit.Must(t, denied.Retry())
				if len(c.Pages) != 1 {
					t.Errorf("got pages %v", c.Pages)
				}
				if got := fmt.Sprint((*denied.Headers)["Cache-Control"]); got != fmt.Sprint(header["Cache-Control"]) {
					t.Errorf("got Cache-Control %s", got)
				}
				kit.WantURIs(t, web, "a.test", "/robots.txt /0 /robots.txt /robots.txt")
			})
		})
	}
}

// TestRetriesInDryRun checks Retry in OnDenied in a dry run, when the request has already ended.
func TestRetriesInDryRun(t *testing.T) {
	for mode, options := range kit.Modes {
		t.Run(mode, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /\n", "*": robotstest.Page(), "/404": 404}}, func(t *testing.T, web *robotstest.Web) {
				var mu sync.Mutex
				denials := map[string]int{}
				c := kit.Start(t, web, options, collyrobots.DryRun(true), collyrobots.OnDenied(func(r *colly.Request, _ error) {
					mu.Lock()
					denials[r.URL.Path]++
					n := denials[r.URL.Path]
					mu.Unlock()
					if n <= 3 {
						r.Retry()
					}
				}))
				c.Impolite = true
				c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Page", r.URL.Path) })
				for i := range 20 {
					c.Post(fmt.Sprint("http://a.test/", i), map[string]string{"q": "x"})
				}
				c.Visit("http://a.test/404")
				c.Wait()
				for path, n := range denials {
					if n != 4 {
						t.Errorf("OnDenied was called %d times for %s, want 4", n, path)
					}
				}
				if len(denials) != 21 || len(web.Log("a.test")) != 1+4*21 {
					t.Errorf("OnDenied was called for %d pages, want 21; got %d requests, want 85", len(denials), len(web.Log("a.test")))
				}
			})
		})
	}
}

// TestPagesOfClosedPlugin checks that pages that wait when the plugin is closed, and pages that are
// visited later, fail with ErrClosed. When no page is in flight, the collector must have its own
// client again.
func TestPagesOfClosedPlugin(t *testing.T) {
	for mode, options := range kit.Modes {
		t.Run(mode, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 60\n")}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, options)
				began := time.Now()
				time.AfterFunc(5*time.Second, func() { c.Robots.Close() })
				for i := range 6 {
					err := c.Collector.Collector.Visit(fmt.Sprint("http://a.test/", i))
					if mode == "sync" && !errors.Is(err, collyrobots.ErrClosed) {
						t.Errorf("Visit returned %v, want ErrClosed", err)
					}
				}
				c.Wait()
				if mode == "async" {
					for i := range 3 {
						c.Visit(fmt.Sprint("http://a.test/", 6+i))
					}
					c.Wait()
				}
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("the crawl took %v, want 5s", took)
				}
				if want := map[string]int{"sync": 6, "async": 9}[mode]; len(c.Errs) != want || len(c.Denied) != want {
					t.Errorf("OnError was called for %d pages, OnDenied for %d, want %d", len(c.Errs), len(c.Denied), want)
				}
				for u, err := range c.Errs {
					if !errors.Is(err, collyrobots.ErrClosed) || c.Denied[u] != collyrobots.ErrClosed {
						t.Errorf("%s: OnError got %v, OnDenied %v, want ErrClosed", u, err, c.Denied[u])
					}
				}
				handle, err := backend.Open(c.Collector.Collector)
				kit.Must(t, err)
				if _, own := handle.Client().Transport.(*http.Transport); !own {
					t.Errorf("the client of the collector was not restored")
				}
				c.Context = context.Background() // removes the last reference from a request to the plugin
				before := len(c.Errs)
				err = c.Visit("http://a.test/last")
				c.Wait()
				if mode == "sync" && !errors.Is(err, colly.ErrAbortedBeforeRequest) || !errors.Is(c.Denied["http://a.test/last"], collyrobots.ErrClosed) || len(c.Errs) != before+1 {
					t.Errorf("Visit returned %v, OnDenied got %v, want ErrClosed", err, c.Denied["http://a.test/last"])
				}
				kit.WantURIs(t, web, "a.test", "/robots.txt")
			})
		})
	}
}

// TestPageWhoseHeadWasDeniedIsResumed checks that a page of a sitemap is not done if the HEAD
// request of CheckHead is denied.
func TestPageWhoseHeadWasDeniedIsResumed(t *testing.T) {
	a := robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1\nSitemap: http://a.test/map.xml\n")
	a["/map.xml"] = robotstest.Sitemap("http://a.test/1", "http://a.test/2")
	kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
		kept := store.NewMemory()
		for run := range 2 {
			c := kit.Start(t, web, nil, collyrobots.Store(kept), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
			c.CheckHead = true
			c.OnRequest(func(r *colly.Request) {
				if run == 0 && r.URL.Path == "/1" {
					r.URL.Host = "dead.test"
				}
			})
			c.Visit("http://a.test/0")
			kit.Must(t, c.Robots.Close())
		}
		if uris := kit.URIsOf(web.Log("a.test")); strings.Count(uris, "/1") != 2 || strings.Count(uris, "/2") != 2 {
			t.Errorf("requests to a.test: %s", uris)
		}
	})
}
