package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
)

// An operatorProgram is in the style of public Colly programs and uses several options of an
// operator. Every request that it begins must end as done, unchanged, denied with a reason, or
// failed.
type operatorProgram struct {
	name     string
	sites    robotstest.Sites
	options  []collyrobots.Option
	run      func(p *operatorRun)
	outcomes string // the paths by the ends of their requests, with a number if there are several
	schedule string // of a.test; not compared if it is ""
	records  bool   // the plugins of the program share a Store
	aborts   int    // requests that the plugin ends without OnError, because their retries cannot succeed
	impolite bool   // an option replaces robots.txt, so that Verify is not called
}

// An operatorRun is one run of an operatorProgram.
type operatorRun struct {
	*testing.T
	web     *robotstest.Web
	robots  *collyrobots.Plugin
	options []collyrobots.Option

	mu    sync.Mutex
	begun map[string]int
	ends  map[string]map[string]int // by end and path
}

// end records how a request has ended.
func (p *operatorRun) end(r *colly.Request, how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends[how] == nil {
		p.ends[how] = make(map[string]int)
	}
	p.ends[how][p.name(r)]++
}

func (p *operatorRun) name(r *colly.Request) string {
	name := strings.TrimPrefix(r.URL.Host, "a.test") + r.URL.RequestURI()
	return name
}

// plug makes the plugin of a run, and replaces the one before.
func (p *operatorRun) plug() {
	p.Helper()
	options := append([]collyrobots.Option{
		collyrobots.Logger(slog.New(slog.DiscardHandler)),
		collyrobots.OnUnchanged(func(r *colly.Request) { p.end(r, "unchanged") }),
	}, p.options...)
	if p.robots != nil {
		kit.Must(p.T, p.robots.Close())
	}
	var err error
	p.robots, err = collyrobots.New(options...)
	kit.Must(p.T, err)
}

// collector returns a collector that is not attached.
func (p *operatorRun) collector(options ...colly.CollectorOption) *colly.Collector {
	c := colly.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, options...)...)
	c.WithTransport(p.web.Transport())
	return c
}

// hear records the requests of c, and attaches it.
func (p *operatorRun) hear(c *colly.Collector) *colly.Collector {
	p.Helper()
	c.OnRequest(func(r *colly.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.begun[p.name(r)]++
	})
	c.OnError(func(r *colly.Response, err error) {
		denied := (*collyrobots.DisallowedError)(nil)
		switch {
		case errors.As(err, &denied):
			p.end(r.Request, string(denied.Decision.Reason))
		case errors.Is(err, collyrobots.ErrClosed):
			p.end(r.Request, "closed")
		case errors.Is(err, context.Canceled):
			p.end(r.Request, "canceled")
		case r.StatusCode != 0:
			p.end(r.Request, fmt.Sprint("failed ", r.StatusCode))
		default:
			p.end(r.Request, "failed "+kit.SameText(err))
		}
	})
	c.OnScraped(func(r *colly.Response) { p.end(r.Request, "done") })
	kit.Must(p.T, p.robots.Attach(c))
	return c
}

// new returns a collector whose requests are recorded.
func (p *operatorRun) new(options ...colly.CollectorOption) *colly.Collector {
	return p.hear(p.collector(options...))
}

// outcomes returns the ends of all requests.
func (p *operatorRun) outcomes() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for how, paths := range p.ends {
		var names []string
		for path, n := range paths {
			if n > 1 {
				path = fmt.Sprint(path, " x", n)
			}
			names = append(names, path)
		}
		slices.Sort(names)
		all = append(all, how+": "+strings.Join(names, " "))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func (p *operatorRun) visit(c *colly.Collector, paths ...string) {
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
	for _, x := range slices.Concat(operatorPrograms, morePrograms) {
		t.Run(x.name, func(t *testing.T) {
			kit.InBubble(t, x.sites, func(t *testing.T, web *robotstest.Web) {
				p := &operatorRun{T: t, web: web, options: x.options, begun: make(map[string]int), ends: make(map[string]map[string]int)}
				if x.records {
					p.options = append(p.options[:len(p.options):len(p.options)], collyrobots.Store(store.Memory()))
				}
				p.plug()
				x.run(p)
				synctest.Wait()
				kit.Must(t, p.robots.Close())
				if got := p.outcomes(); got != x.outcomes {
					t.Errorf("the requests end as\n%s\nwant\n%s", got, x.outcomes)
				}
				if x.schedule != "" {
					kit.WantSchedule(t, web, "a.test", x.schedule)
				}
				begun, ended := 0, 0
				for _, n := range p.begun {
					begun += n
				}
				for _, paths := range p.ends {
					for _, n := range paths {
						ended += n
					}
				}
				if begun != ended+x.aborts {
					t.Errorf("%d requests began and %d ended, want %d without an end: %v", begun, ended, x.aborts, p.begun)
				}
				if !x.impolite {
					robotstest.Verify(t, web, dialect.RFC9309())
				}
			})
		})
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

var operatorPrograms = []operatorProgram{
	{name: "login after refusals", outcomes: "budget: /8 /9; done: /2 /3 /login; failed 401: /1 /4 /5; refused: /6 /7",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/in": 200, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				http.SetCookie(w, &http.Cookie{Name: "s", Value: "1", Path: "/"})
				io.WriteString(w, "in")
				return
			}
			if _, err := r.Cookie("s"); err != nil {
				w.WriteHeader(401)
			}
		})}}, options: []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.MaxPages(6)}, run: func(p *operatorRun) {
			c := p.new()
			p.visit(c, "/1")
			c.Post("http://a.test/login", map[string]string{"u": "x"})
			p.visit(c, "/2", "/3")
			c.DisableCookies()
			c.SetCookieJar(nil)
			p.visit(c, "/4", "/5", "/6", "/7")
			time.Sleep(2 * time.Hour)
			p.visit(c, "/8", "/9")
		}},
	{name: "retries refused pages without a bound", outcomes: "failed 403: /1 /2; refused: /1 x10 /2 x10",
		aborts: 2, sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}}, options: []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.MaxPages(3)}, run: func(p *operatorRun) {
			c := p.collector(kit.Async...)
			c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
			p.hear(c)
			p.visit(c, "/1", "/2")
			c.Wait()
		}},
	{name: "retries pages over the budget without a bound", outcomes: "budget: /1 x10 /2 x10; failed 500: /1 x3",
		aborts: 2, sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 500}}, options: []collyrobots.Option{collyrobots.MaxPages(3), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			c := p.collector()
			c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
			p.hear(c)
			p.visit(c, "/1", "/2")
		}},
	{name: "HEAD first", outcomes: "budget: /2 /3; done: /1 x2 /2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}}, options: []collyrobots.Option{collyrobots.MaxPages(3), collyrobots.StopRefused(1)}, run: func(p *operatorRun) {
			c := p.collector()
			c.CheckHead = true
			p.hear(c)
			p.visit(c, "/1", "/2", "/3")
		}},
	{name: "two runs of a link crawl with conditional requests and tags", records: true, outcomes: "done: / x2 /1 /2 /4; nofollow: /3; rule: /closed; unchanged: /1 /2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": robotstest.Page("/1", "/2"), "/1": withETag(nofollow("/3")), "/2": withETag(robotstest.Page("/4", "/closed")), "/4": withETag(robotstest.Page())}},
		options: []collyrobots.Option{collyrobots.Revalidate(), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new()
				follow(c)
				p.visit(c, "/")
				p.plug()
			}
		}},
	{name: "a poller with a budget", records: true, outcomes: "budget: /api x2; done: /api; unchanged: /api x3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": withETag("x")}},
		options: []collyrobots.Option{collyrobots.Revalidate(), collyrobots.MaxPages(4)}, run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			for range 6 {
				p.visit(c, "/api")
			}
		}},
	{name: "a poller of fresh pages with a budget", records: true, outcomes: "budget: /api x2; done: /api; unchanged: /api x3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.MaxPages(2)}, run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			for range 5 {
				p.visit(c, "/api")
				time.Sleep(30 * time.Minute)
			}
			p.visit(c, "/api")
		}},
	{name: "fresh pages in a queue", records: true, outcomes: "done: /0 /1 /2 /3; unchanged: /0 /1 /2 /3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.StopRefused(2)}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new()
				q, _ := queue.New(3, &queue.InMemoryQueueStorage{MaxSize: 100})
				for i := range 4 {
					q.AddURL(fmt.Sprint("http://a.test/", i))
				}
				q.Run(c)
				p.plug()
			}
		}},
	{name: "aborted after the headers is not recorded", records: true, outcomes: "done: /1; failed Aborted after receiving response headers: /1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": 404, "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.MaxPages(9)}, run: func(p *operatorRun) {
			for i := range 2 {
				c := p.collector()
				c.OnResponseHeaders(func(r *colly.Response) {
					if i == 0 {
						r.Request.Abort()
					}
				})
				p.hear(c)
				p.visit(c, "/1")
				p.plug()
			}
		}},
	{name: "a panic in a callback is not recorded", records: true, sites: robotstest.Sites{"a.test": {"/robots.txt": 404, "*": fresh(robotstest.Page("/x"))}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new()
				c.OnHTML("a", func(*colly.HTMLElement) { panic("x") })
				func() {
					defer func() {
						if recover() != nil {
							p.mu.Lock()
							p.begun["/1"]--
							p.mu.Unlock()
						}
					}()
					p.visit(c, "/1")
				}()
				p.plug()
			}
		}},
	{name: "a cut body is not recorded", records: true, outcomes: "failed unexpected EOF: /1 x2 /2 x2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": 404, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fresh("short")(w, r)
		})}}, options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.StopRefused(1)}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new()
				p.visit(c, "/1", "/2")
				p.plug()
			}
		}},
	{name: "a page with an unknown charset", records: true, outcomes: "done: /1; nofollow: /2; unchanged: /1",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Cache-Control", "max-age=1000")
			w.Header().Set("Content-Type", "text/html; charset=nonsense")
			io.WriteString(w, "<html><a href='/2' rel=nofollow>x")
		})}}, options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new(colly.DetectCharset())
				follow(c)
				p.visit(c, "/1")
				p.plug()
			}
		}},
	{name: "a storage of its own", outcomes: "done: / /1 /2; nofollow: /1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1") + robotstest.Page("/2"), "/2": robotstest.Page("/1"), "*": "x"}},
		options: []collyrobots.Option{collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			c := p.collector()
			kit.Must(p.T, c.SetStorage(&storage.InMemoryStorage{}))
			p.hear(c)
			follow(c)
			p.visit(c, "/")
		}},
	{name: "detail collectors pass the context", outcomes: "budget: /2; done: / /1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}},
		options: []collyrobots.Option{collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(2)}, run: func(p *operatorRun) {
			c := p.new()
			detail := p.new()
			c.OnHTML("a[href]", func(e *colly.HTMLElement) {
				e.Request.Ctx.Put("from", e.Attr("href"))
				detail.Request("GET", e.Request.AbsoluteURL(e.Attr("href")), nil, e.Request.Ctx, nil)
			})
			detail.OnResponse(func(r *colly.Response) {
				if r.Ctx.Get("from") != r.Request.URL.Path {
					p.Errorf("%s: context %q", r.Request.URL, r.Ctx.Get("from"))
				}
			})
			p.visit(c, "/")
		}},
	{name: "a group where one host refuses", outcomes: "budget: /3 /4 /5; done: /0 /1 /2; failed 403: b.a.test/0 b.a.test/1; refused: b.a.test/2 b.a.test/3 b.a.test/4 b.a.test/5",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}, "b.a.test": {"/robots.txt": 404, "*": 403}},
		options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.StopRefused(2), collyrobots.MaxPages(3)}, run: func(p *operatorRun) {
			c := p.new()
			for i := range 6 {
				p.visit(c, fmt.Sprint("/", i), fmt.Sprint("http://b.a.test/", i))
				synctest.Wait()
			}
			c.Wait()
		}},
	{name: "a redirect within a group with DelayFromEnd", outcomes: "done: www.a.test/x x3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": robotstest.Redirect("http://www.a.test/x")}, "www.a.test": {"/robots.txt": twoSeconds, "*": "x"}},
		options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.DelayFromEnd(), collyrobots.MaxInFlight(1), collyrobots.MaxPages(5)}, run: func(p *operatorRun) {
			c := p.new(colly.Async(), colly.AllowURLRevisit())
			kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 1}))
			p.visit(c, "/1", "/2", "/3")
			c.Wait()
		}},
	{name: "visits in OnResponseHeaders within a group", outcomes: "done: /1 /2 www.a.test/1 www.a.test/2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}, "www.a.test": {"/robots.txt": twoSeconds, "*": "x"}},
		options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.AdaptiveDelay(1), collyrobots.MaxInFlight(1)}, run: func(p *operatorRun) {
			c := p.collector()
			c.OnResponseHeaders(func(r *colly.Response) {
				if r.Request.URL.Host == "a.test" {
					p.visit(c, "http://www.a.test"+r.Request.URL.Path)
				}
			})
			p.hear(c)
			p.visit(c, "/1", "/2")
		}},
	{name: "robots.txt and TDM redirect within a group", outcomes: "usage: /1 www.a.test/1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": robotstest.Redirect("http://www.a.test/robots.txt"), kit.TDMURI: robotstest.Redirect("http://www.a.test" + kit.TDMURI), "*": "x"}, "www.a.test": {"/robots.txt": twoSeconds, kit.TDMURI: kit.ReservedAll, "*": "x"}},
		options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(), collyrobots.TDMRep(), collyrobots.DelayFromEnd()}, run: func(p *operatorRun) {
			c := p.new(kit.Async...)
			p.visit(c, "/1", "http://www.a.test/1")
			c.Wait()
		}},
	{name: "shutdown while the hosts are closed", outcomes: "canceled: /1 /2 /3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}},
		options: []collyrobots.Option{collyrobots.CrawlHours("05:00", "06:00", time.UTC), collyrobots.MaxPages(2), collyrobots.Purpose(usage.Search), collyrobots.TDMRep()}, run: func(p *operatorRun) {
			ctx, cancel := context.WithCancel(context.Background())
			c := p.new(colly.Async(), colly.StdlibContext(ctx))
			p.visit(c, "/1", "/2", "/3")
			time.Sleep(time.Hour)
			cancel()
			c.Wait()
		}},
	{name: "Close while the hosts are closed", records: true, outcomes: "closed: /3; done: /1 /2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}},
		options: []collyrobots.Option{collyrobots.CrawlHours("05:00", "06:00", time.UTC), collyrobots.StopRefused(2), collyrobots.EnforceRobotsTags(), collyrobots.Revalidate()}, run: func(p *operatorRun) {
			c := p.new(kit.Async...)
			p.visit(c, "/1", "/2", "/3")
			time.Sleep(5*time.Hour + 3*time.Second)
			kit.Must(p.T, p.robots.Close())
			c.Wait()
		}},
	{name: "hours and a stop", outcomes: "failed 403: /1 /2 /5; refused: /3 /4 /6",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}},
		options: []collyrobots.Option{collyrobots.CrawlHours("05:00", "05:30", time.UTC), collyrobots.StopRefused(2)}, run: func(p *operatorRun) {
			c := p.new(kit.Async...)
			p.visit(c, "/1", "/2", "/3", "/4")
			c.Wait()
			time.Sleep(2 * time.Hour)
			p.visit(c, "/5", "/6")
			c.Wait()
		}},
	{name: "a challenge with 503 and RetryThrottled", outcomes: "failed 503: /1 /2; refused: /3",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cf-Mitigated", "challenge")
			w.WriteHeader(503)
		})}}, options: []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.RetryThrottled(5), collyrobots.MaxPages(9)}, run: func(p *operatorRun) {
			c := p.new()
			p.visit(c, "/1", "/2", "/3")
		}},
	{name: "403 for robots.txt until the login", outcomes: "done: /1; rule: /closed; unreachable: /1",
		sites: robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cookie") == "" {
				w.WriteHeader(403)
				return
			}
			io.WriteString(w, twoSeconds)
		}), "*": "x"}}, options: []collyrobots.Option{collyrobots.WhenForbidden(collyrobots.DenyAll), collyrobots.MaxPages(3)}, impolite: true, run: func(p *operatorRun) {
			c := p.collector()
			c.SetCookies("http://a.test/", []*http.Cookie{{Name: "s", Value: "1", Path: "/"}})
			p.hear(c)
			p.visit(c, "/1", "/closed")
			p.plug()
			c = p.new()
			p.visit(c, "/1")
		}},
	{name: "robots.txt hangs and everything is allowed", outcomes: "budget: /3; done: /1 /2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(kit.Hang), "*": "x"}}, impolite: true,
		options: []collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll), collyrobots.MaxPages(2), collyrobots.Purpose(usage.AIUse), collyrobots.TDMRep()}, run: func(p *operatorRun) {
			c := p.new()
			p.visit(c, "/1", "/2", "/3")
			c.Wait()
		}},
	{name: "the operator's file with usage and tags", outcomes: "budget: /3; done: / /2; nofollow: /x; rule: /closed; usage: /ai/1",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /", "/": nofollow("/x"), "*": "x"}}, impolite: true,
		options: []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(), collyrobots.TDMRep(), collyrobots.EnforceRobotsTags(), collyrobots.ForHosts("a.test", collyrobots.RobotsTxt([]byte("User-agent: *\nCrawl-delay: 3\nContent-Usage: train-ai=y\nContent-Usage: /ai train-ai=n\nDisallow: /closed\n")), collyrobots.MaxPages(2))}, run: func(p *operatorRun) {
			c := p.new()
			follow(c)
			p.visit(c, "/", "/ai/1", "/closed", "/2", "/3")
		}},
	{name: "sitemaps with a budget and records, three times", records: true, outcomes: "done: /1 /2 /3 /start0 /start1 /start2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds + "Sitemap: http://a.test/s.xml\n", "/s.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/closed"), "*": withETag("x")}},
		options: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}), collyrobots.MaxPages(2), collyrobots.Revalidate()}, run: func(p *operatorRun) {
			for i := range 3 {
				c := p.new()
				p.visit(c, fmt.Sprint("/start", i))
				c.Wait()
				p.plug()
			}
		}},
	{name: "sitemaps of a host that refuses, twice", records: true, outcomes: "done: /start0 /start1; failed 403: /1 /2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds + "Sitemap: http://a.test/s.xml\n", "/s.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"), "/start0": "x", "/start1": "x", "/1": 403, "/2": 403, "*": "x"}},
		options: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}), collyrobots.StopRefused(1)}, run: func(p *operatorRun) {
			for i := range 2 {
				c := p.new()
				p.visit(c, fmt.Sprint("/start", i))
				c.Wait()
				p.plug()
				time.Sleep(time.Hour)
			}
		}},
	{name: "one plugin for many jobs", records: true, outcomes: "budget: /1 /job2 /job3; done: /1 x3 /job0 /job1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": withETag("x")}},
		options: []collyrobots.Option{collyrobots.MaxPages(5), collyrobots.Revalidate()}, run: func(p *operatorRun) {
			for i := range 4 {
				c := p.new(kit.Async...)
				p.visit(c, "/1", fmt.Sprint("/job", i))
				c.Wait()
			}
		}},
	{name: "a clone that is not attached", records: true, outcomes: "done: /",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.MaxPages(2), collyrobots.SkipFresh(), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			c := p.new()
			detail := c.Clone()
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { detail.Visit(e.Request.AbsoluteURL(e.Attr("href"))) })
			detail.OnError(func(r *colly.Response, err error) {
				if !errors.Is(err, colly.ErrRobotsTxtBlocked) {
					p.Error(err)
				}
			})
			p.visit(c, "/")
		}},
	{name: "callbacks before the plugin rewrite the URL", records: true, outcomes: "done: /2?k=1 /3 /3?k=1; rule: /closed?k=1; unchanged: /2?k=1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.MaxPages(2), collyrobots.SkipFresh()}, run: func(p *operatorRun) {
			c := p.collector()
			c.OnRequest(func(r *colly.Request) { r.URL.RawQuery = "k=1" })
			p.hear(c)
			c.OnRequest(func(r *colly.Request) {
				if r.URL.Path == "/1" {
					r.URL.Path = "/closed"
				}
			})
			p.visit(c, "/1", "/2", "/3")
			p.plug()
			c = p.new()
			p.visit(c, "/2?k=1", "/3")
		}},
	{name: "a slow event function and Close", outcomes: "budget: /4; done: /1 /2 /3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": 404, "*": "x"}},
		options: []collyrobots.Option{collyrobots.OnEveryEvent(func(collyrobots.Event) { time.Sleep(time.Second) }), collyrobots.MaxPages(3)}, run: func(p *operatorRun) {
			c := p.new()
			p.visit(c, "/1", "/2", "/3", "/4")
			c.Wait()
		}},
	{name: "events that wait for a callback", outcomes: "budget: /2; done: /1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": 404, "*": "x"}},
		options: []collyrobots.Option{collyrobots.StopRefused(1), collyrobots.MaxPages(1)}, run: func(p *operatorRun) {
			p.options = append(p.options, collyrobots.OnEveryEvent(func(e collyrobots.Event) {}))
			p.plug()
			c := p.new()
			p.visit(c, "/1", "/2")
		}},
}
