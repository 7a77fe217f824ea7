package collectors

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"

// TestTemotoUsesUserAgentOfCollector checks that under Temoto the UserAgent of the collector
// selects the group, as in Colly's built-in check, and not the header of the request.
func TestTemotoUsesUserAgentOfCollector(t *testing.T) {
	const robots = "User-agent: ExampleBot\nDisallow: /0\n\nUser-agent: Mozilla\nDisallow: /1\n\nUser-agent: *\nDisallow: /2\n"
	for _, name := range []string{"ExampleBot/1.0 (+http://x.test)", browser, "OtherBot"} {
		for how, set := range map[string]func(c *colly.Collector){
			"same header":   func(*colly.Collector) {},
			"random header": func(c *colly.Collector) { extensions.RandomUserAgent(c) },
			"header in OnRequest": func(c *colly.Collector) {
				c.OnRequest(func(r *colly.Request) { r.Headers.Set("User-Agent", "ExampleBot") })
			},
			"header in Headers": func(c *colly.Collector) { c.Headers.Set("User-Agent", "ExampleBot") },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				sites := robotstest.Sites{"a.test": robotstest.Pages(4, robots)}
				sites["a.test"]["/moved"] = robotstest.Redirect("/3")
				crawl := func(attach func(c *colly.Collector)) string {
					web := robotstest.New(t, sites)
					c := colly.NewCollector(colly.UserAgent(name), colly.Headers(map[string]string{}))
					c.IgnoreRobotsTxt = false
					c.WithTransport(web.Transport())
					set(c)
					attach(c)
					for _, path := range []string{"/0", "/1", "/2", "/moved"} {
						if err := c.Visit("http://a.test" + path); err != nil && !errors.Is(err, colly.ErrRobotsTxtBlocked) {
							t.Error(err)
						}
					}
					return kit.URIsOf(web.Log("a.test"))
				}
				var lines strings.Builder
				with := crawl(func(c *colly.Collector) {
					p, err := collyrobots.WithRobots(c, collyrobots.Dialect(dialect.Temoto()), kit.LogsTo(&lines, slog.LevelWarn))
					kit.Must(t, err)
					t.Cleanup(func() { p.Close() })
				})
				if without := crawl(func(*colly.Collector) {}); with != without {
					t.Errorf("requests to a.test: %s, with the built-in check: %s", with, without)
				}
				if lines.Len() > 0 {
					t.Errorf("got log %s, want none", lines.String())
				}
			})
		}
	}
}

// TestTemotoUsesOneNameForRedirectsAndShadows checks that this name also applies to redirects and
// to the decisions of shadows. A shadow whose dialect has product tokens uses the token of the
// name.
func TestTemotoUsesOneNameForRedirectsAndShadows(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: ExampleBot\nDisallow: /0\n\nUser-agent: Other\nDisallow: /1\n",
		"/moved/0":    robotstest.Redirect("/0"), "/moved/1": robotstest.Redirect("/1"), "/0": robotstest.Page(), "/1": robotstest.Page(),
	}})
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+http://x.test)"))
	c.WithTransport(web.Transport())
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("User-Agent", "Other/1.0") })
	p, err := collyrobots.WithRobots(c, collyrobots.Dialect(dialect.Temoto()), collyrobots.Shadow(dialect.RFC9309(), dialect.Original1994()))
	kit.Must(t, err)
	defer p.Close()
	if err := c.Visit("http://a.test/moved/0"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("/moved/0: Visit returned %v, want a denial", err)
	}
	kit.Must(t, c.Visit("http://a.test/moved/1"))
	c.Visit("http://a.test/0?")
	kit.WantURIs(t, web, "a.test", "/robots.txt /moved/0 /moved/1 /1")
	for _, s := range p.Stats().Shadows {
		if s.Compared != 5 || s.Stricter+s.Laxer != 0 {
			t.Errorf("%v: got %+v, want 5 compared pages and no difference", s.Dialect, s)
		}
	}
}

// TestLaterCallbackChangesUserAgent has a callback that changes the user agent of a page after the
// page was allowed. The page must obey the group for the new name, also if the callback is called
// after the wait.
func TestLaterCallbackChangesUserAgent(t *testing.T) {
	rename := func(r *colly.Request) {
		if r.URL.Path != "/2" {
			r.Headers.Set("User-Agent", "OtherBot/1.0")
		}
	}
	for name, register := range map[string]func(c *kit.Crawl){
		"OnRequest":        func(c *kit.Crawl) { c.OnRequest(rename) },
		"OnRequestHeaders": func(c *kit.Crawl) { c.OnRequestHeaders(rename) },
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: OtherBot\nDisallow: /1\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /3\nCrawl-delay: 2\n", "*": robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil)
				register(c)
				for i := range 4 {
					err := c.Visit(fmt.Sprint("http://a.test/", i))
					if denied := i == 1 || i == 3; errors.Is(err, colly.ErrRobotsTxtBlocked) != denied {
						t.Errorf("/%d: Visit returned %v, want a denial: %t", i, err, denied)
					}
				}
				kit.WantDenied(t, c, "http://a.test/1", report.ReasonRule, 2)
				if gap := web.Log("a.test").MinGap(); gap < 2*time.Second-time.Microsecond {
					t.Errorf("two requests within %v, want at least 2s:\n%s", gap, web.Log("a.test"))
				}
				if uris := strings.ReplaceAll(kit.URIsOf(web.Log("a.test")), "/robots.txt ", ""); uris != "/0 /2" {
					t.Errorf("got pages %s, want /0 /2", uris)
				}
			})
		})
	}
}
