package denial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestUnreachableHost checks that a page of a host that cannot be reached fails as it does without
// the plugin: OnError and Visit get an error with the cause. The page itself is not requested.
func TestUnreachableHost(t *testing.T) { kit.ForEachClient(t, testUnreachableHost) }

func testUnreachableHost(t *testing.T, start kit.Starter) {
	for _, tc := range []struct {
		name    string
		answer  any // to every request; nil if the host does not exist
		dialect dialect.Dialect
		reason  report.Reason
		asked   int // requests for robots.txt
		timeout bool
	}{
		{"no such host", nil, dialect.RFC9309(), report.ReasonUnreachable, 0, false},
		{"no such host/Google", nil, dialect.Google(), report.ReasonUnreachable, 0, false},
		{"no such host/CocCoc", nil, dialect.CocCoc(), report.ReasonSiteDown, 0, false},
		{"no such host/Temoto", nil, dialect.Temoto(), report.ReasonUnreachable, 0, false},
		{"reset", kit.Drop, dialect.RFC9309(), report.ReasonUnreachable, 3, false},
		{"hangs", kit.Hang, dialect.RFC9309(), report.ReasonUnreachable, 1, true},
	} {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				sites := robotstest.Sites{"alive.test": robotstest.Pages(1, kit.NoDenys)}
				if tc.answer != nil {
					sites["dead.test"] = robotstest.Site{"*": tc.answer}
				}
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					denials := 0
					c := start(t, web, options, collyrobots.Dialect(tc.dialect), collyrobots.OnDenied(func(*colly.Request, error) { denials++ }))
					plain := c.Collector.Collector
					err := plain.Visit("http://dead.test/")
					c.Wait()
					if mode == "async" {
						err = c.Errs["http://dead.test/"]
					} else if err != c.Errs["http://dead.test/"] {
						t.Errorf("Visit returned %v, OnError got %v", err, c.Errs)
					}
					denied, failed := (*collyrobots.DeniedError)(nil), (*url.Error)(nil)
					if !errors.Is(err, colly.ErrRobotsTxtBlocked) || !errors.As(err, &denied) || denied.Decision.Reason != tc.reason || !errors.As(err, &failed) {
						t.Errorf("Visit returned %v, want a denial for reason %q", err, tc.reason)
					}
					notFound := (*net.DNSError)(nil)
					if errors.As(err, &notFound) != (tc.answer == nil) || failed != nil && failed.Timeout() != tc.timeout || errors.Is(err, context.DeadlineExceeded) != tc.timeout {
						t.Errorf("Visit returned %v, want an error with the cause", err)
					}
					kit.WantURIs(t, web, "dead.test", strings.TrimSpace(strings.Repeat(" /robots.txt", tc.asked)))
					s := c.Robots.Stats().Hosts[0]
					if denials != 1 || s.Denied != 1 || s.Waiting != 0 {
						t.Errorf("OnDenied was called %d times, want once; stats %+v", denials, s)
					}
					kit.Must(t, plain.Visit("http://alive.test/"))
					c.Wait()
					kit.WantURIs(t, web, "alive.test", "/robots.txt /")
				})
			})
		}
	}
}

// TestRetriesOfUnreachablePageAreLogged checks that useless retries in OnError are logged, because
// OnDenied may not be set.
func TestRetriesOfUnreachablePageAreLogged(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"*": kit.Drop}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		tries := 0
		c.OnError(func(r *colly.Response, _ error) {
			tries++
			if tries < 15 {
				r.Request.Retry()
			}
		})
		c.Visit("http://a.test/")
		if log := c.Logged.String(); strings.Count(log, "OnDenied or OnError calls Retry again and again") != 1 || tries != 15 {
			t.Errorf("got log %s after %d tries, want one warning after 15", log, tries)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 0s /robots.txt, 0s /robots.txt, 1s /robots.txt, 2s /robots.txt, 3s /robots.txt, 4s /robots.txt")
	})
}

// TestProxyAuthRequired checks that status 407 from a proxy says nothing about the site. The same
// status from the server means that there is no robots.txt (RFC 9309, section 2.3.1.3).
func TestProxyAuthRequired(t *testing.T) {
	a := robotstest.Pages(3, "")
	a["/robots.txt"] = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 1\nDisallow: /2\n")
	}
	stranger, known := "http://proxy.test:3128", "http://user:pw@proxy.test:3128"
	for name, tc := range map[string]struct {
		proxies []string
		want    string
	}{
		"the first of two": {[]string{stranger, known}, "/robots.txt /robots.txt /0 /1"},
		"the only one":     {[]string{stranger}, "/robots.txt /robots.txt /robots.txt"},
		"no proxy":         {nil, "/robots.txt /0 /1 /2"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": a, "proxy.test:3128": nil}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil)
				if tc.proxies != nil {
					rotate, err := proxy.RoundRobinProxySwitcher(tc.proxies...)
					kit.Must(t, err)
					c.SetProxyFunc(rotate)
				}
				for i := range 3 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				kit.WantURIs(t, web, "a.test", tc.want)
			})
		})
	}
}

// TestCollectorWithDeadProxy checks that a second collector gets its pages although the proxy of the
// first one answers in place of the site.
func TestCollectorWithDeadProxy(t *testing.T) {
	site := robotstest.Site{"*": func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}}
	kit.InBubble(t, robotstest.Sites{"a.test": site, "proxy.test:3128": nil}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		c.Impolite = true
		kit.Must(t, c.SetProxy("http://dead:pw@proxy.test:3128"))
		c.Visit("http://a.test/0")
		kit.WantDenied(t, c, "http://a.test/0", report.ReasonUnreachable, 0)
		direct := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		direct.WithTransport(web.Transport())
		kit.Must(t, c.Robots.Attach(direct))
		kit.Must(t, direct.Visit("http://a.test/1"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /robots.txt /1")
	})
}

// TestVisitReturnsDenial checks when Visit of a synchronous collector returns a denial of its
// page.
func TestVisitReturnsDenial(t *testing.T) {
	a := robotstest.Pages(3, "User-agent: *\nDisallow: /closed\nCrawl-delay: 1\n")
	a["/links"] = robotstest.Page("/closed/1", "/0")
	a["/moved"] = robotstest.Redirect("/closed/2")
	for _, tc := range []struct {
		name   string
		set    func(c *kit.Crawl)
		path   string
		denied bool
		is     error // another error that Visit returns; nil if there is none
	}{
		{name: "allowed", path: "/1"},
		{name: "denied", path: "/closed", denied: true},
		{name: "a link of the page is denied", path: "/links", set: func(c *kit.Crawl) { c.Follow() }},
		{name: "a redirect is denied", path: "/moved", denied: true},
		{name: "CheckHead", path: "/closed", denied: true, set: func(c *kit.Crawl) { c.CheckHead = true }},
		{name: "CheckHead, allowed", path: "/1", set: func(c *kit.Crawl) { c.CheckHead = true }},
		{name: "async", path: "/closed", set: func(c *kit.Crawl) { c.Async = true }},
		{name: "a later callback changes the URL", path: "/1", denied: true,
			set: func(c *kit.Crawl) { c.OnRequest(func(r *colly.Request) { r.URL.Path = "/closed" }) }},
		{name: "a later callback aborts", path: "/1", set: func(c *kit.Crawl) { c.OnRequest(func(r *colly.Request) { r.Abort() }) }},
		{name: "a dry run", path: "/closed", is: errNotFound},
		{name: "a denial within the visit", path: "/1", set: func(c *kit.Crawl) {
			c.OnScraped(func(r *colly.Response) { r.Request.Visit("/closed") })
			c.OnScraped(func(r *colly.Response) {
				again, err := r.Request.New("GET", "http://a.test/closed/again", nil) // as deep as the page
				if err == nil {
					again.Do()
				}
			})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
				var opts []collyrobots.Option
				if tc.name == "a dry run" {
					opts = append(opts, collyrobots.DryRun(true))
				}
				c := kit.Start(t, web, nil, opts...)
				c.Impolite = opts != nil
				if tc.set != nil {
					tc.set(c)
				}
				err := c.Visit("http://a.test" + tc.path)
				c.Wait()
				if denied := (*collyrobots.DeniedError)(nil); errors.As(err, &denied) != tc.denied || errors.Is(err, colly.ErrRobotsTxtBlocked) != tc.denied {
					t.Errorf("Visit returned %v, want a denial: %t", err, tc.denied)
				}
				switch {
				case tc.is == errNotFound && err != nil && err.Error() == "Not Found":
				case tc.is != nil && !errors.Is(err, tc.is), tc.is == nil && !tc.denied && err != nil:
					t.Errorf("Visit returned %v, want %v", err, tc.is)
				}
				if _, ok := err.(*url.Error); ok != tc.denied {
					t.Errorf("Visit returned a %T", err)
				}
			})
		})
	}
}

var errNotFound = errors.New("not found") // Colly has no variable for this error

// TestVisitReturnsOtherReasons checks the other errors of Visit for pages that are not sent.
func TestVisitReturnsOtherReasons(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 10\nDisallow: /2")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.Context = ctx
		if err := c.Visit("http://a.test/0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Visit returned %v, want the context's error", err)
		}
		c.Context = t.Context()
		clone := c.Clone()
		if err := clone.Visit("http://a.test/2"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit of a clone returned %v, want a denial", err)
		}
		kit.Must(t, c.Robots.Close())
		if err := clone.Visit("http://a.test/1"); !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("Visit returned %v, want ErrClosed", err)
		}
		plain := collyrobots.NewCollector(colly.IgnoreRobotsTxt())
		plain.WithTransport(web.Transport())
		kit.Must(t, plain.Visit("http://a.test/2")) // without the plugin
		c.Impolite = true
	})
}

// withoutNoDelay returns the log without the line about a host that has no delay.
func withoutNoDelay(lines *strings.Builder) string {
	var kept strings.Builder
	for line := range strings.Lines(lines.String()) {
		if !strings.Contains(line, "no delay between requests") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// TestFirstDenialOfHostIsLogged checks that the first denial of each host is logged with level
// INFO and a hint at OnDenied. Otherwise a crawl that may fetch nothing would log nothing.
func TestFirstDenialOfHostIsLogged(t *testing.T) {
	closed := robotstest.Pages(2, "User-agent: *\nDisallow: /\n")
	sites := robotstest.Sites{"a.test": closed, "b.test": closed, "c.test": robotstest.Pages(2, "User-agent: *\nDisallow: /1")}
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	web := robotstest.New(t, sites)
	c.WithTransport(web.Transport())
	var lines strings.Builder
	robots, err := c.WithRobots(kit.LogsTo(&lines, slog.LevelInfo))
	kit.Must(t, err)
	defer robots.Close()
	for i := range 2 {
		for _, host := range []string{"a", "b", "c"} {
			c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
			c.Visit(fmt.Sprintf("https://%s.test/%d", host, i))
		}
	}
	want := ""
	for _, u := range []string{"http://a.test/0", "http://b.test/0", "http://c.test/1"} {
		d, err := robots.Check(t.Context(), u)
		kit.Must(t, err)
		want += fmt.Sprintf("level=INFO msg=\"request denied, the first of its host; set OnDenied to get all denials\" url=%s error=%q sent=false\n", u, "collyrobots: "+d.String())
	}
	if log := withoutNoDelay(&lines); log != want {
		t.Errorf("got log\n%swant\n%s", log, want)
	}
}
