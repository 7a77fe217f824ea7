package signals

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/robotstest"
)

// withHeaders returns a page with response headers, which are written as "Name: value".
func withHeaders(body string, headers ...string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			if name == "Content-Type" {
				out.Header().Del(name)
			}
			out.Header().Add(name, value)
		}
		io.WriteString(out, body)
	}
}

// followAll visits every link of every page.
func followAll(c *kit.Crawl) {
	c.OnHTML("a[href], area[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
}

// tagged is the page /0 and the paths that a crawl with EnforceNofollow requests because of it.
var tagged = []struct {
	name string
	page any
	want string
}{
	{"no nofollow", `<a href="/1">1</a><a href="/2" rel="noopener">2</a>`, "/1 /2"},
	{"rel=nofollow", `<a href="/1" rel="nofollow">1</a><a href="/2">2</a>`, "/2"},
	{"rel with several words", `<a href="/1" rel="noopener NoFollow
		me">1</a><a href="/2" rel="nofollowed">2</a>`, "/2"},
	{"ugc and sponsored", `<a href="/1" rel="ugc">1</a><a href="/2" rel="sponsored">2</a><a href="/3" rel="ugc nofollow">3</a>`, "/1 /2"},
	{"area", `<map><area href="/1" rel="nofollow"><area href="/2"></map>`, "/2"},
	{"with and without nofollow", `<a href="/1" rel="nofollow">1</a><a href="/1">1</a>`, "/1"},
	{"without and with nofollow", `<a href="/1">1</a><a href="/1" rel="nofollow">1</a>`, "/1"},
	{"with and without nofollow, written differently", `<a href="/1" rel="nofollow">1</a><a href="HTTP://A.test:80/x/../1#top">1</a>`, "/1 /1"}, // Colly takes them for two pages,
	{"fragments of one URL", `<a href="/1#a" rel="nofollow">1</a><a href="/1#b" rel="nofollow">1</a>`, ""},
	{"blanks, case and percent signs", `<a href=" HTTP://A.TEST/1?q=a b%zz " rel=nofollow>1</a><a href="/2">2</a>`, "/2"},
	{"base", `<base href="/d/"><a href="1" rel="nofollow">1</a><a href="/1">1</a><a href="2">2</a>`, "/1 /d/2"},
	{"base after a link", `<a href="1" rel="nofollow">1</a><base href="/d/"><base href="/e/">`, ""},
	{"broken base", `<base href="http://["><a href="1" rel="nofollow">1</a>`, ""},
	{"broken HTML", `<p><a rel=nofollow href=/1 <b><a href='/2' rel=>2<a href="/3`, "/2"},
	{"a comment", `<!-- <a href="/1" rel="nofollow"> --><a href="/1">1</a>`, "/1"},
	{"repeated attributes", `<a href="/1" href="/2" rel="nofollow" rel="me">1</a>`, ""},
	{"meta nofollow", `<meta name="robots" content="noindex, nofollow"><a href="/1">1</a>`, ""},
	{"meta none", `<meta name="ROBOTS" content="NONE"><a href="/1">1</a>`, ""},
	{"meta for the crawler", `<meta name="examplebot" content="nofollow"><a href="/1">1</a>`, ""},
	{"meta for another crawler", `<meta name="otherbot" content="nofollow"><a href="/1">1</a>`, "/1"},
	{"meta noindex", `<meta name="robots" content="noindex"><a href="/1">1</a>`, "/1"},
	{"meta in the body", `<p>text</p><meta name="robots" content="nofollow"><a href="/1">1</a>`, "/1"},
	{"X-Robots-Tag", withHeaders(`<a href="/1">1</a>`, "X-Robots-Tag: nofollow"), ""},
	{"X-Robots-Tag for another crawler", withHeaders(`<a href="/1">1</a>`, "X-Robots-Tag: otherbot: nofollow"), "/1"},
	{"Robots-Tag", withHeaders(`<a href="/1">1</a>`, "Robots-Tag: *;noindex, ExampleBot;nofollow"), ""},
	{"a page that is no HTML", withHeaders(`<a href="/1" rel="nofollow">1</a>`, "Content-Type: text/plain"), ""},
	{"XHTML", withHeaders(`<html xmlns="http://www.w3.org/1999/xhtml"><a href="/1" rel="nofollow"/><a href="/2"/></html>`, "Content-Type: application/xhtml+xml"), "/2"},
	{"another character set", withHeaders("<a href=\"/\xe9\" rel=nofollow>1</a><a href=\"/\xe8\">2</a>", "Content-Type: text/html; charset=iso-8859-1"), "/%C3%A8"},
	{"no content type", withHeaders(`<html><a href="/1" rel="nofollow">1</a><a href="/2">2</a>`, "Content-Type: "), "/2"},
	{"a redirect to the page", robotstest.Redirect("/moved"), "/moved /1"},
	{"a link to the page itself", `<a href="/0" rel="nofollow">0</a><a href="/1">1</a>`, "/1"},
	{"a link to a page with links", `<a href="/1" rel="nofollow">1</a><a href="/leads">2</a>`, "/leads /1 /9"}, // /leads has a link to /1
	{"a link to a page with nofollow", `<a href="/1">1</a><a href="/2">2</a><a href="/ends">3</a>`, "/1 /2 /ends"},
	{"a link that robots.txt denies", `<a href="/closed" rel="nofollow">1</a><a href="/1">1</a>`, "/1"},
}

func TestEnforceNofollow(t *testing.T) {
	for name, mode := range map[string]struct {
		async bool
		opts  func() []collyrobots.Option
	}{
		"sync":     {false, func() []collyrobots.Option { return nil }},
		"async":    {true, func() []collyrobots.Option { return nil }},
		"frontier": {true, func() []collyrobots.Option { return []collyrobots.Option{collyrobots.Frontier(kit.NewMemoryStore())} }},
	} {
		for _, test := range tagged {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": {
					"/robots.txt": "User-agent: *\nDisallow: /closed",
					"/0":          test.page,
					"/moved":      `<a href="/1">1</a><a href="/2" rel=nofollow>2</a>`,
					"/leads":      `<a href="/1">1</a><a href="/9">9</a>`,
					"/ends":       withHeaders(`<a href="/9">9</a>`, "X-Robots-Tag: nofollow"),
					"*":           robotstest.Page(),
				}}, func(t *testing.T, web *robotstest.Web) {
					var options []colly.CollectorOption
					if mode.async {
						options = kit.Async
					}
					c := kit.Start(t, web, options, append(mode.opts(), collyrobots.EnforceNofollow(true))...)
					followAll(c)
					kit.Must(t, c.Visit("http://a.test/0"))
					c.Wait()
					got := web.Log("a.test").SortedURIs()
					want := append(strings.Fields(test.want), "/robots.txt", "/0")
					slices.Sort(want)
					if name == "frontier" {
						want = slices.Compact(want) // two spellings of a URL are one page of a urlstore.Store
					}
					if !slices.Equal(got, want) {
						t.Errorf("requests %q, want %q", got, want)
					}
				})
			})
		}
	}
}

// Without the option, all links are visited, and the pages without headers are not counted.
func TestRobotsTagsAreNotEnforced(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<meta name="robots" content="none"><a href="/1" rel="nofollow">1</a>`,
		"/1": withHeaders(`<a href="/2">2</a>`, "X-Robots-Tag: none, max-snippet: 3", "Robots-Tag: ExampleBot;noarchive, OtherBot;nosnippet"),
		"*":  robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		var events []*collyrobots.Event
		c := kit.Start(t, web, nil, collyrobots.OnEvent(func(e *collyrobots.Event) {
			if e.Kind == report.EventTags {
				events = append(events, e)
			}
		}))
		followAll(c)
		tags := make(map[string]robotstags.Tags)
		c.OnScraped(func(r *colly.Response) { tags[r.Request.URL.Path] = c.Robots.RobotsTags(r) })
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1 /2")
		if got := fmt.Sprint(tags); got != "map[/0:[none] /1:[none max-snippet: 3 noarchive] /2:[]]" {
			t.Errorf("got %v", got)
		}
		if !tags["/0"].NoIndex() || !tags["/0"].NoFollow() || tags["/0"][0].Source != robotstags.SourceMeta {
			t.Errorf("tags of /0: %+v", tags["/0"])
		}
		if got, want := c.Robots.Stats().RobotsTags, (report.RobotsTagStats{Pages: 1, NoIndex: 1, NoFollow: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		kit.Must(t, c.Robots.Close())
		if len(events) != 1 || events[0].URL != "http://a.test/1" || events[0].Host != "a.test" || len(events[0].Tags) != 3 || events[0].Request == 0 {
			t.Errorf("events %+v", events)
		}
	})
}

// The denial of a link is reported everywhere.
func TestNofollowIsReported(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<meta name="robots" content="noindex"><a href="/1" rel="nofollow">1</a><a href="http://b.test/" rel="nofollow">b</a>`,
		"*":  robotstest.Page(),
	}, "b.test": {"*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		var events []*collyrobots.Event
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true), collyrobots.OnEvent(func(e *collyrobots.Event) {
			if e.Kind == report.EventDenied || e.Kind == report.EventTags {
				events = append(events, e)
			}
		}))
		var returned []error
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { returned = append(returned, e.Request.Visit(e.Attr("href"))) })
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0")
		kit.WantURIs(t, web, "b.test", "") // not even its robots.txt
		for i, u := range []string{"http://a.test/1", "http://b.test/"} {
			for name, err := range map[string]error{"Visit": returned[i], "OnDenied": c.Denied[u], "OnError": c.Errs[u]} {
				denied := (*collyrobots.DeniedError)(nil)
				if !errors.As(err, &denied) {
					t.Errorf("%s of %s: %v", name, u, err)
					continue
				}
				d := denied.Decision
				if d.Allowed || d.Reason != report.ReasonNofollow || d.LinkedFrom != "http://a.test/0" || d.URL != u {
					t.Errorf("%s of %s: %+v", name, u, d)
				}
				if want := u + " denied: nofollow for this link on http://a.test/0 (rfc9309)"; d.String() != want {
					t.Errorf("got %q, want %q", d, want)
				}
			}
		}
		stats := c.Robots.Stats()
		if stats.Decisions[report.ReasonNofollow] != 2 || stats.Totals.Denied != 2 || stats.RobotsTags != (report.RobotsTagStats{Pages: 1, NoIndex: 1}) {
			t.Errorf("stats %+v", stats)
		}
		kit.Must(t, c.Robots.Close())
		if len(events) != 3 || events[0].Kind != report.EventTags || events[1].Decision.Reason != report.ReasonNofollow {
			t.Errorf("events %+v", events)
		}
	})
}

// If robots.txt denies a link as well, it is the reason if the file is known.
func TestNofollowAfterRobotsTxt(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /1",
		"/0":          `<a href="/1" rel="nofollow">1</a>`,
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true))
		followAll(c)
		kit.Must(t, c.Visit("http://a.test/0"))
		denied := (*collyrobots.DeniedError)(nil)
		if !errors.As(c.Denied["http://a.test/1"], &denied) || denied.Decision.Reason != report.ReasonRule {
			t.Errorf("got %v", c.Denied)
		}
	})
}

// TestLinkOfAnotherPage has a page with a link that another page has with nofollow. It is visited,
// in whichever order the pages come.
func TestLinkOfAnotherPage(t *testing.T) {
	for _, first := range []string{"/with", "/without"} {
		for name, opts := range map[string][]collyrobots.Option{"plain": nil, "frontier": {collyrobots.Frontier(kit.NewMemoryStore())}} {
			t.Run(name+first, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": {
					"/0":       robotstest.Page(first, "/with", "/without"),
					"/with":    `<a href="/1" rel="nofollow">1</a>`,
					"/without": `<a href="/1">1</a><a href="/1#again">1</a>`,
					"*":        robotstest.Page(),
				}}, func(t *testing.T, web *robotstest.Web) {
					var options []colly.CollectorOption
					if name == "frontier" {
						options = kit.Async
					}
					c := kit.Start(t, web, options, append(opts, collyrobots.EnforceNofollow(true), collyrobots.MinDelay(time.Second))...)
					c.OnHTML("a[href]", func(e *colly.HTMLElement) {
						link, _, _ := strings.Cut(e.Attr("href"), "#")
						e.Request.Visit(link)
					})
					kit.Must(t, c.Visit("http://a.test/0"))
					c.Wait()
					if got := strings.Count(kit.URIsOf(web.Log("a.test")), "/1"); got != 1 {
						t.Errorf("%d requests of /1: %s", got, kit.URIsOf(web.Log("a.test")))
					}
				})
			})
		}
	}
}

// TestWaysToMakeARequest checks which requests follow a link, if the page has nofollow for all.
func TestWaysToMakeARequest(t *testing.T) {
	for name, test := range map[string]struct {
		visit func(c *kit.Crawl, r *colly.Request) error
		want  bool // whether it is allowed
	}{
		"Request.Visit": {func(_ *kit.Crawl, r *colly.Request) error { return r.Visit("/1") }, false},
		"Request.New and Do": {func(_ *kit.Crawl, r *colly.Request) error {
			next, err := r.New(http.MethodGet, r.AbsoluteURL("/1"), nil)
			if err != nil {
				return err
			}
			return next.Do()
		}, false},
		"Request.Post": {func(_ *kit.Crawl, r *colly.Request) error { return r.Post("/1", map[string]string{"a": "b"}) }, true},
		"Request.Retry": {func(c *kit.Crawl, r *colly.Request) error {
			if r.Ctx.Get("again") != "" {
				return nil
			}
			r.Ctx.Put("again", "yes")
			return r.Retry()
		}, true},
		"Request.Retry of a page of Request.New": {func(c *kit.Crawl, r *colly.Request) error {
			if r.Depth != 0 {
				next, err := r.New(http.MethodGet, "http://b.test/0", nil)
				if err != nil {
					return err
				}
				next.Ctx = colly.NewContext()
				return next.Do()
			}
			if r.Ctx.Get("again") != "" {
				return nil
			}
			r.Ctx.Put("again", "yes")
			return r.Retry()
		}, true},
		"Collector.Visit": {func(c *kit.Crawl, r *colly.Request) error { return c.Visit(r.AbsoluteURL("/1")) }, true},
		"colly/queue": {func(c *kit.Crawl, r *colly.Request) error {
			q, err := queue.New(1, nil)
			if err != nil {
				return err
			}
			if err := q.AddURL(r.AbsoluteURL("/1")); err != nil {
				return err
			}
			return q.Run(c.Collector.Collector)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/0": withHeaders("<p>0</p>", "X-Robots-Tag: nofollow"),
				"*":  robotstest.Page(),
			}, "b.test": {"/0": withHeaders("<p>0</p>", "X-Robots-Tag: nofollow")}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true))
				c.OnHTML("p", func(e *colly.HTMLElement) {
					if e.Request.URL.Path == "/0" {
						if err := test.visit(c, e.Request); (err == nil) != test.want {
							t.Errorf("got %v", err)
						}
					}
				})
				kit.Must(t, c.Visit("http://a.test/0"))
				want := 2
				switch {
				case strings.HasSuffix(name, "Request.New"):
					want = 5
				case test.want:
					want = 3
				}
				if got := len(web.Log("")); got != want {
					t.Errorf("%d requests, want %d: %v", got, want, web.Log(""))
				}
			})
		})
	}
}

// OnResponse callbacks that were registered before Attach come after that of the plugin.
func TestNofollowInEarlyCallbacks(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<a href="/1" rel="nofollow">1</a>`,
		"*":  robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := colly.NewCollector()
		c.WithTransport(web.Transport())
		c.OnResponse(func(r *colly.Response) {
			r.Body = []byte("<p>changed</p>")
			r.Request.Visit("/1")
		})
		p, err := collyrobots.WithRobots(c, collyrobots.EnforceNofollow(true))
		kit.Must(t, err)
		defer p.Close()
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0")
	})
}

// The callbacks of OnError, and those of pages behind an admitted link, do not follow links of the
// page before.
func TestLinksOfTheNextPage(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0":       `<a href="/1" rel="nofollow">1</a><a href="/missing">m</a><a href="/2">2</a>`,
		"/missing": 404,
		"/2":       robotstest.Page("/1?from=2", "/3"),
		"/3":       robotstest.Page("/1"),
		"*":        robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true))
		followAll(c)
		c.OnError(func(r *colly.Response, _ error) {
			if r.Request.URL.Path == "/missing" {
				r.Request.Visit("/1?from=error")
				r.Request.Visit("/1")
			}
		})
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /missing /1?from=error /1 /2 /1?from=2 /3")
	})
}

// A denied link that OnDenied retries again and again is denied each time, until the row is ended.
func TestRetryOfNofollow(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<a href="/1" rel="nofollow">1</a>`,
		"*":  robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		n := 0
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true), collyrobots.OnDenied(func(r *colly.Request, _ error) {
			n++
			r.Retry()
		}))
		followAll(c)
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0")
		if n != 10 {
			t.Errorf("OnDenied was called %d times", n)
		}
	})
}

func TestEnforceNofollowInADryRun(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<a href="/1" rel="nofollow">1</a><a href="/2">2</a>`,
		"*":  robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true), collyrobots.DryRun(true))
		c.Impolite = true
		followAll(c)
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			if err := c.Robots.CheckLink(e.Request, e.Attr("href")); err != nil {
				t.Error(err)
			}
		})
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1 /2")
		if len(c.Denied) != 1 || c.Robots.Stats().Decisions[report.ReasonNofollow] != 1 {
			t.Errorf("denied %v, %v", c.Denied, c.Robots.Stats().Decisions)
		}
	})
}

// Inside ForHosts, the option is for the pages of the hosts, wherever their links lead.
func TestEnforceNofollowForHosts(t *testing.T) {
	link := `<a href="http://a.test/1" rel="nofollow">1</a><a href="http://b.test/1" rel="nofollow">1</a>`
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/0": link, "*": robotstest.Page()},
		"b.test": {"/0": link, "*": robotstest.Page()},
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.ForHosts("a.test", collyrobots.EnforceNofollow(true)))
		followAll(c)
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0")
		kit.WantURIs(t, web, "b.test", "")
		kit.Must(t, c.Visit("http://b.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1")
		kit.WantURIs(t, web, "b.test", "/robots.txt /0 /1")
	})
}

// A page that the program decodes in OnResponse cannot be read before, so a warning is logged. The
// rules in its headers count.
func TestNofollowInEncodedPages(t *testing.T) {
	page := withHeaders(`encoded`, "Content-Encoding: br", "Content-Type: text/html")
	tagged := withHeaders(`encoded`, "Content-Encoding: br", "Content-Type: text/html", "X-Robots-Tag: nofollow")
	kit.InBubble(t, robotstest.Sites{"a.test": {"/0": page, "/1": tagged, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true))
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Accept-Encoding", "gzip, br") })
		c.OnResponse(func(r *colly.Response) {
			if r.Headers.Get("Content-Encoding") == "br" {
				r.Body = []byte(`<a href="/linked` + r.Request.URL.Path + `" rel="nofollow">1</a>`)
			}
		})
		followAll(c)
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /linked/0 /1")
		if n := strings.Count(c.Logged.String(), "coding=br"); n != 1 {
			t.Errorf("%d warnings name the content coding, want 1: %s", n, c.Logged)
		}
	})
}

// Clones share the pages that they have visited with the collector, and obey nofollow.
func TestNofollowInClones(t *testing.T) {
	for name, opts := range map[string][]collyrobots.Option{"plain": nil, "frontier": {collyrobots.Frontier(kit.NewMemoryStore())}} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/0": `<a href="/1" rel="nofollow">1</a><a href="/2">2</a>`,
				"*":  robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, append(opts, collyrobots.EnforceNofollow(true))...)
				clone := c.Clone()
				clone.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
				kit.Must(t, clone.Visit("http://a.test/0"))
				clone.Wait()
				kit.WantURIs(t, web, "a.test", "/robots.txt /0 /2")
				kit.Must(t, c.Visit("http://a.test/1"))
				c.Wait()
				kit.WantURIs(t, web, "a.test", "/robots.txt /0 /2 /1")
			})
		})
	}
}

func TestCheckLink(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/0": `<base href="/d/"><a href="1" rel="nofollow">1</a><a href="2">2</a><a href="http://b.test/" rel="nofollow">b</a>`,
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.EnforceNofollow(true))
		results := make(map[string]error)
		c.OnHTML("html", func(e *colly.HTMLElement) {
			for _, href := range []string{"1", "2", "/1", "http://b.test/", "#top", "mailto:a@b.test", "http://["} {
				results[href] = c.Robots.CheckLink(e.Request, href)
			}
		})
		kit.Must(t, c.Visit("http://a.test/0"))
		for href, want := range map[string]string{
			"1": "denied", "2": "", "/1": "", "http://b.test/": "denied", "#top": "error", "mailto:a@b.test": "error", "http://[": "error",
		} {
			denied := (*collyrobots.DeniedError)(nil)
			got := ""
			switch {
			case errors.As(results[href], &denied):
				got = "denied"
			case results[href] != nil:
				got = "error"
			}
			if got != want {
				t.Errorf("CheckLink(%q) = %v, want %q", href, results[href], want)
			}
		}
		if n := c.Robots.Stats().Decisions[report.ReasonNofollow]; n != 2 {
			t.Errorf("%d denials", n)
		}
		u := &url.URL{Scheme: "http", Host: "a.test"}
		if err := c.Robots.CheckLink(&colly.Request{URL: u}, "/1"); err != nil {
			t.Errorf("got %v for a request of the program", err)
		}
		if err := c.Robots.CheckLink(nil, "/1"); !errors.Is(err, collyrobots.ErrNilRequest) {
			t.Errorf("got %v", err)
		}
		if err := new(collyrobots.Plugin).CheckLink(&colly.Request{URL: u}, "/1"); err == nil {
			t.Error("no error of the zero Plugin")
		}
		if tags := new(collyrobots.Plugin).RobotsTags(nil); tags != nil {
			t.Errorf("got %v", tags)
		}
		d, err := c.Robots.Check(t.Context(), "http://a.test/d/1")
		if err != nil || !d.Allowed {
			t.Errorf("Check: %v, %v", d, err)
		}
	})
}

// The rules are those for the name of the crawler.
func TestNamesInRobotsTags(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/": withHeaders(`<meta name="newsbot" content="nosnippet"><meta name="examplebot" content="noarchive">`, "X-Robots-Tag: newsbot: noindex, examplebot: nofollow"),
	}}, func(t *testing.T, web *robotstest.Web) {
		for want, opts := range map[string][]collyrobots.Option{
			"[nofollow noarchive]":                   nil,
			"[noindex nosnippet]":                    {collyrobots.ProductToken("NewsBot")},
			"[noindex nofollow nosnippet noarchive]": {collyrobots.ProductToken("NewsBot", "ExampleBot")},
		} {
			c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()}, opts...)
			c.Impolite = true
			got := ""
			c.OnResponse(func(r *colly.Response) { got = fmt.Sprint(c.Robots.RobotsTags(r)) })
			kit.Must(t, c.Visit("http://a.test/"))
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// TestCutPageWithNofollow checks a page that is longer than the collector reads. The links in the
// part that was read have their rules, also the one that is cut off.
func TestCutPageWithNofollow(t *testing.T) {
	const limit = 1000
	const begin = `<base href="/d/"><a href="1" rel="nofollow">1</a><a href="2">2</a>`
	const end = `<a href="3" rel="nofollow">3`
	page := begin + strings.Repeat("x", limit-len(begin)-len(end)) + end + `</a><a href="1">1</a><a href="4">4</a>`
	kit.InBubble(t, robotstest.Sites{"a.test": {"/0": page, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, []colly.CollectorOption{colly.MaxBodySize(limit)}, collyrobots.EnforceNofollow(true))
		followAll(c)
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /d/2")
	})
}
