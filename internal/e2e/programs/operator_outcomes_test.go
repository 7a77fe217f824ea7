package programs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// The programs in operatorPrograms are in the style of public Colly programs and use
// several options of an operator. Every request that they begin must end as done, unchanged, denied
// with a reason, or failed.

// visit visits paths of a.test, or URLs. The pages of an asynchronous collector wait in this order.
func visit(c *colly.Collector, paths ...string) {
	for _, path := range paths {
		if !strings.Contains(path, "://") {
			path = "http://a.test" + path
		}
		c.Visit(path)
		if c.Async {
			synctest.Wait() // so that the pages wait in this order
		}
	}
}

// TestOperatorPrograms runs each program, and checks how its requests end.
func TestOperatorPrograms(t *testing.T) {
	for _, x := range operatorPrograms {
		t.Run(x.name, func(t *testing.T) { x.checkEnds(t) })
	}
}

// withETag is a page with an ETag.
func withETag(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Type", "text/html")
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, text)
	}
}

func fresh(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		withETag(text)(w, r)
	}
}

const twoSeconds = "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n"

func nofollow(links ...string) string {
	return strings.Replace(robotstest.Page(links...), "<a ", `<a rel="nofollow" `, -1)
}

var operatorPrograms = []program{
	{name: "login after refusals", outcomes: "budget: /8 /9; done: /2 /3 /login; failed 401: /1 /4 /5; refused: /6 /7",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/in": 200, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" {
					http.SetCookie(w, &http.Cookie{Name: "s", Value: "1", Path: "/"})
					io.WriteString(w, "in")
					return
				}
				if _, err := r.Cookie("s"); err != nil {
					w.WriteHeader(401)
				}
			})}}
		}, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.StopAfterRefusals(2), collyrobots.MaxPagesPerHost(6)}
		}, run: func(p *kit.Run) {
			c := p.New()
			visit(c, "/1")
			c.Post("http://a.test/login", map[string]string{"u": "x"})
			visit(c, "/2", "/3")
			c.DisableCookies()
			c.SetCookieJar(nil)
			visit(c, "/4", "/5", "/6", "/7")
			time.Sleep(2 * time.Hour)
			visit(c, "/8", "/9")
		}},
	{name: "retries refused pages without a bound", outcomes: "failed 403: /1 /2; refused: /1 x10 /2 x10",
		aborts: 2, sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}} }, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.StopAfterRefusals(2), collyrobots.MaxPagesPerHost(3)}
		}, run: func(p *kit.Run) {
			c := p.Collector(kit.Async...)
			c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
			p.Attach(p.Count(c))
			visit(c, "/1", "/2")
			c.Wait()
		}},
	{name: "retries pages over the budget without a bound", outcomes: "budget: /1 x10 /2 x10; failed 500: /1 x3",
		aborts: 2, sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 500}} }, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.MaxPagesPerHost(3), collyrobots.EnforceNofollow(true)}
		}, run: func(p *kit.Run) {
			c := p.Collector()
			c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
			p.Attach(p.Count(c))
			visit(c, "/1", "/2")
		}},
	{name: "HEAD first", outcomes: "budget: /2 /3; done: /1 x2 /2",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}} }, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.MaxPagesPerHost(3), collyrobots.StopAfterRefusals(1)}
		}, run: func(p *kit.Run) {
			c := p.Collector()
			c.CheckHead = true
			p.Attach(p.Count(c))
			visit(c, "/1", "/2", "/3")
		}},
	{name: "two runs of a link crawl with conditional requests and tags", records: true, outcomes: "done: / x2 /1 /2 /4; nofollow: /3; rule: /closed; unchanged: /1 /2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": robotstest.Page("/1", "/2"), "/1": withETag(nofollow("/3")), "/2": withETag(robotstest.Page("/4", "/closed")), "/4": withETag(robotstest.Page())}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{revalidate(p), collyrobots.EnforceNofollow(true)}
		}, run: func(p *kit.Run) {
			for range 2 {
				c := p.New()
				follow(c)
				visit(c, "/")
				p.Plug()
			}
		}},
	{name: "a poller of fresh pages with a budget", records: true, outcomes: "budget: /api x2; done: /api; unchanged: /api x3",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh("x")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.MaxPagesPerHost(2)}
		}, run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			for range 5 {
				visit(c, "/api")
				time.Sleep(30 * time.Minute)
			}
			visit(c, "/api")
		}},
	{name: "aborted after the headers is not recorded", records: true, outcomes: "done: /1; failed Aborted after receiving response headers: /1",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": 404, "*": fresh("x")}} },
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.MaxPagesPerHost(9)}
		}, run: func(p *kit.Run) {
			for i := range 2 {
				c := p.Collector()
				c.OnResponseHeaders(func(r *colly.Response) {
					if i == 0 {
						r.Request.Abort()
					}
				})
				p.Attach(p.Count(c))
				visit(c, "/1")
				p.Plug()
			}
		}},
	{name: "a panic in a callback is not recorded", records: true, outcomes: "none", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/robots.txt": 404, "*": fresh(robotstest.Page("/x"))}}
	},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.EnforceNofollow(true)}
		}, run: func(p *kit.Run) {
			for range 2 {
				c := p.New()
				c.OnHTML("a", func(*colly.HTMLElement) { panic("x") })
				func() {
					defer func() {
						if recover() != nil {
							p.Begin(-1)
						}
					}()
					visit(c, "/1")
				}()
				p.Plug()
			}
		}},
	{name: "a cut body is not recorded", records: true, outcomes: "failed unexpected EOF: /1 x2 /2 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": 404, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				fresh("short")(w, r)
			})}}
		}, options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.StopAfterRefusals(1)}
		}, run: func(p *kit.Run) {
			for range 2 {
				c := p.New()
				visit(c, "/1", "/2")
				p.Plug()
			}
		}},
	{name: "a page with an unknown charset", records: true, outcomes: "done: /1; nofollow: /2; unchanged: /1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Cache-Control", "max-age=1000")
				w.Header().Set("Content-Type", "text/html; charset=nonsense")
				io.WriteString(w, "<html><a href='/2' rel=nofollow>x")
			})}}
		}, options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.EnforceNofollow(true)}
		}, run: func(p *kit.Run) {
			for range 2 {
				c := p.New(colly.DetectCharset())
				follow(c)
				visit(c, "/1")
				p.Plug()
			}
		}},
	{name: "a storage of its own", outcomes: "done: / /1 /2; nofollow: /1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1") + robotstest.Page("/2"), "/2": robotstest.Page("/1"), "*": "x"}}
		},
		options: func(*kit.Run) []collyrobots.Option { return []collyrobots.Option{collyrobots.EnforceNofollow(true)} }, run: func(p *kit.Run) {
			c := p.Collector()
			kit.Must(p.T, c.SetStorage(&storage.InMemoryStorage{}))
			p.Attach(p.Count(c))
			follow(c)
			visit(c, "/")
		}},
	{name: "detail collectors pass the context", outcomes: "budget: /2; done: / /1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.EnforceNofollow(true), collyrobots.MaxPagesPerHost(2)}
		}, run: func(p *kit.Run) {
			c := p.New()
			detail := p.New()
			c.OnHTML("a[href]", func(e *colly.HTMLElement) {
				e.Request.Ctx.Put("from", e.Attr("href"))
				detail.Request("GET", e.Request.AbsoluteURL(e.Attr("href")), nil, e.Request.Ctx, nil)
			})
			detail.OnResponse(func(r *colly.Response) {
				if r.Ctx.Get("from") != r.Request.URL.Path {
					p.Errorf("%s: context %q", r.Request.URL, r.Ctx.Get("from"))
				}
			})
			visit(c, "/")
		}},
	{name: "a group where one host refuses", outcomes: "budget: /3 /4 /5; done: /0 /1 /2; failed 403: b.a.test/0 b.a.test/1; refused: b.a.test/2 b.a.test/3 b.a.test/4 b.a.test/5",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}, "b.a.test": {"/robots.txt": 404, "*": 403}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.StopAfterRefusals(2), collyrobots.MaxPagesPerHost(3)}
		}, run: func(p *kit.Run) {
			c := p.New()
			for i := range 6 {
				visit(c, fmt.Sprint("/", i), fmt.Sprint("http://b.a.test/", i))
				synctest.Wait()
			}
			c.Wait()
		}},
	{name: "robots.txt and TDM redirect within a group", outcomes: "usage: /1 www.a.test/1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": robotstest.Redirect("http://www.a.test/robots.txt"), kit.TDMURI: robotstest.Redirect("http://www.a.test" + kit.TDMURI), "*": "x"}, "www.a.test": {"/robots.txt": twoSeconds, kit.TDMURI: kit.ReservedAll, "*": "x"}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true), collyrobots.DelayFromEnd(true)}
		}, run: func(p *kit.Run) {
			c := p.New(kit.Async...)
			visit(c, "/1", "http://www.a.test/1")
			c.Wait()
		}},
	{name: "shutdown while the hosts are closed", outcomes: "canceled: /1 /2 /3",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}} },
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.CrawlHours("05:00", "06:00", time.UTC), collyrobots.MaxPagesPerHost(2), collyrobots.Purpose(usage.Search), collyrobots.TDMRep(true)}
		}, run: func(p *kit.Run) {
			ctx, cancel := context.WithCancel(context.Background())
			c := p.New(colly.Async(), colly.StdlibContext(ctx))
			visit(c, "/1", "/2", "/3")
			time.Sleep(time.Hour)
			cancel()
			c.Wait()
		}},
	{name: "hours and a stop", outcomes: "failed 403: /1 /2 /5; refused: /3 /4 /6",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}} },
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.CrawlHours("05:00", "05:30", time.UTC), collyrobots.StopAfterRefusals(2)}
		}, run: func(p *kit.Run) {
			c := p.New(kit.Async...)
			visit(c, "/1", "/2", "/3", "/4")
			c.Wait()
			time.Sleep(2 * time.Hour)
			visit(c, "/5", "/6")
			c.Wait()
		}},
	{name: "403 for robots.txt until the login", outcomes: "done: /1; rule: /closed; unreachable: /1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Cookie") == "" {
					w.WriteHeader(403)
					return
				}
				io.WriteString(w, twoSeconds)
			}), "*": "x"}}
		}, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.WhenForbidden(collyrobots.DenyAll), collyrobots.MaxPagesPerHost(3)}
		}, impolite: true, run: func(p *kit.Run) {
			c := p.Collector()
			c.SetCookies("http://a.test/", []*http.Cookie{{Name: "s", Value: "1", Path: "/"}})
			p.Attach(p.Count(c))
			visit(c, "/1", "/closed")
			p.Plug()
			c = p.New()
			visit(c, "/1")
		}},
	{name: "the operator's file with usage and tags", outcomes: "budget: /3; done: / /2; nofollow: /x; rule: /closed; usage: /ai/1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /", "/": nofollow("/x"), "*": "x"}}
		}, impolite: true,
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true), collyrobots.EnforceNofollow(true), collyrobots.ForHosts("a.test", collyrobots.RobotsTxt([]byte("User-agent: *\nCrawl-delay: 3\nContent-Usage: train-ai=y\nContent-Usage: /ai train-ai=n\nDisallow: /closed\n")), collyrobots.MaxPagesPerHost(2))}
		}, run: func(p *kit.Run) {
			c := p.New()
			follow(c)
			visit(c, "/", "/ai/1", "/closed", "/2", "/3")
		}},
	{name: "sitemaps with a budget and records, three times", records: true, outcomes: "done: /1 /2 /3 /start0 /start1 /start2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds + "Sitemap: http://a.test/s.xml\n", "/s.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/closed"), "*": withETag("x")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}), collyrobots.MaxPagesPerHost(2), revalidate(p)}
		}, run: func(p *kit.Run) {
			for i := range 3 {
				c := p.New()
				visit(c, fmt.Sprint("/start", i))
				c.Wait()
				p.Plug()
			}
		}},
	{name: "a slow event function and Close", outcomes: "budget: /4; done: /1 /2 /3",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": 404, "*": "x"}} },
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.OnEveryEvent(func(*collyrobots.Event) { time.Sleep(time.Second) }), collyrobots.MaxPagesPerHost(3)}
		}, run: func(p *kit.Run) {
			c := p.New()
			visit(c, "/1", "/2", "/3", "/4")
			c.Wait()
		}},
	{name: "error pages are parsed", outcomes: "done: /1 /2 /3; nofollow: /2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/1": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Robots-Tag", "nofollow")
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(403)
				io.WriteString(w, robotstest.Page("/2"))
			}), "*": "x"}}
		}, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.StopAfterRefusals(2), collyrobots.EnforceNofollow(true), collyrobots.MaxPagesPerHost(4)}
		}, run: func(p *kit.Run) {
			c := p.Collector()
			c.ParseHTTPErrorResponse = true
			p.Attach(p.Count(c))
			follow(c)
			visit(c, "/1", "/2", "/3")
		}},
	{name: "a cache directory and a budget", records: true, outcomes: "budget: /3; done: /1 x2 /2 x2 /3",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh(robotstest.Page())}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.MaxPagesPerHost(2), collyrobots.EnforceNofollow(true)}
		}, run: func(p *kit.Run) {
			dir, err := os.MkdirTemp("", "cache")
			kit.Must(p.T, err)
			defer os.RemoveAll(dir)
			for range 2 {
				c := p.New(colly.CacheDir(dir))
				visit(c, "/1", "/2", "/3")
				p.Plug()
			}
		}},
	{name: "the collector of another plugin", records: true, outcomes: "done: / x3 /2; nofollow: /1 x3 /2 x3; unchanged: /2 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": fresh("x")}}
		}, impolite: true,
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.EnforceNofollow(true), collyrobots.MaxPagesPerHost(3)}
		}, run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			follow(c)
			for range 3 {
				visit(c, "/", "/2")
				p.Plug()
				kit.Must(p.T, p.Plugin.Attach(c))
			}
		}},
	{name: "retries in OnUnchanged and OnDenied", records: true, outcomes: "budget: /1; done: /1 x2; unchanged: /1 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": withETag("x")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{OnUnchanged: func(r *colly.Request) { p.End(r, "unchanged"); r.Retry() }}), collyrobots.MaxPagesPerHost(4)}
		}, run: func(p *kit.Run) {
			p.Plug()
			c := p.New(colly.AllowURLRevisit())
			visit(c, "/1", "/1", "/1")
		}},
}
