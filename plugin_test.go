package collyrobots_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file are short programs of users. Each one shows one promise of the plugin.

// shop is a site with a start page that has a link to each of the other pages.
func shop(robots string, pages ...string) robotstest.Site {
	site := robotstest.Site{"/robots.txt": robots, "/": robotstest.Page(pages...)}
	for _, page := range pages {
		site[page] = robotstest.Page()
	}
	return site
}

// spider returns a collector that follows all links.
func spider(web *robotstest.Web, options ...colly.CollectorOption) *colly.Collector {
	c := colly.NewCollector(append(options, colly.UserAgent("ExampleBot/1.0"))...)
	c.WithTransport(web.Transport())
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c
}

// crawl attaches a new plugin to c, visits the start page, and closes the plugin at the end.
func crawl(t *testing.T, c *colly.Collector, options ...collyrobots.Option) {
	t.Helper()
	robots, err := collyrobots.WithRobots(c, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer robots.Close()
	if err := c.Visit("http://shop.test/"); err != nil {
		t.Error(err)
	}
	c.Wait()
}

// wantSchedule compares the access log of shop.test with lines such as "5s /tea".
func wantSchedule(t *testing.T, web *robotstest.Web, want ...string) {
	t.Helper()
	if got := web.Log("shop.test").Schedule(); !slices.Equal(got, want) {
		t.Errorf("requests to shop.test: got %q, want %q", got, want)
	}
}

// sentTo returns the paths of all requests to shop.test.
func sentTo(web *robotstest.Web) (paths []string) {
	for _, r := range web.Log("shop.test") {
		paths = append(paths, r.URI)
	}
	return paths
}

// TestExistingSpider checks that one more line is enough for an existing spider: nothing that
// robots.txt disallows is requested, whether a link or a redirect leads there, and the other
// callbacks of the spider get what they got before.
func TestExistingSpider(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": {colly.Async()}} {
		t.Run(name, func(t *testing.T) {
			site := shop("User-agent: *\nDisallow: /cart\nAllow: /cart/help\n", "/tea", "/cart", "/cart/help", "/moved")
			site["/moved"] = robotstest.Redirect("/cart/2")
			web := robotstest.New(t, robotstest.Sites{"shop.test": site})
			c := spider(web, options...)
			failed := make(chan string, 4)
			c.OnError(func(r *colly.Response, err error) {
				if errors.Is(err, colly.ErrRobotsTxtBlocked) {
					failed <- r.Request.URL.Path
				}
			})
			crawl(t, c)
			close(failed)
			denied := slices.Sorted(func(yield func(string) bool) {
				for path := range failed {
					yield(path)
				}
			})
			if !slices.Equal(denied, []string{"/cart", "/moved"}) { // Colly knows a request by its first URL
				t.Errorf("OnError got %q, want /cart and /moved", denied)
			}
			sent := sentTo(web)
			slices.Sort(sent)
			if !slices.Equal(sent, []string{"/", "/cart/help", "/moved", "/robots.txt", "/tea"}) {
				t.Errorf("requests: %q", sent)
			}
		})
	}
}

// TestPolicyIsResolvedInOnRequest checks that the plugin reads robots.txt in OnRequest, before the next
// callback gets the page, and that Colly's built-in check does not read the file again, even if the
// environment asks for it.
func TestPolicyIsResolvedInOnRequest(t *testing.T) {
	t.Setenv("COLLY_IGNORE_ROBOTSTXT", "no")
	web := robotstest.New(t, robotstest.Sites{"shop.test": shop("User-agent: *\nDisallow: /cart\n", "/tea", "/cart")})
	c := spider(web)
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		t.Fatal(err)
	}
	defer robots.Close()
	c.OnRequest(func(r *colly.Request) {
		if len(web.Log("shop.test")) == 0 {
			t.Errorf("robots.txt was not read before the next callback got %s", r.URL)
		}
	})
	if err := c.Visit("http://shop.test/"); err != nil {
		t.Error(err)
	}
	sent := sentTo(web)
	if !slices.Equal(sent, []string{"/robots.txt", "/", "/tea"}) {
		t.Errorf("requests: %q, want robots.txt once and two pages", sent)
	}
}

// TestDialectsDenyDifferently checks that the same robots.txt denies different pages when it is read
// as RFC 9309, as Google reads it, and as Coc Coc reads it.
//
//   - RFC 9309 and Google: a Crawl-delay does not end the list of names before it, so the rules are for
//     ExampleBot too. For Coc Coc, ExampleBot has a group without rules.
//   - Google also reads "Allow: /docs/index.html" as "Allow: /docs/".
func TestDialectsDenyDifferently(t *testing.T) {
	const file = "User-agent: ExampleBot\nCrawl-delay: 5\nUser-agent: *\nDisallow: /cart\nDisallow: /docs\nAllow: /docs/index.html\n"
	for _, test := range []struct {
		dialect dialect.Dialect
		pages   []string
	}{
		{dialect.RFC9309(), []string{"/", "/tea"}},
		{dialect.Google(), []string{"/", "/docs/", "/tea"}},
		{dialect.CocCoc(), []string{"/", "/docs/", "/cart", "/tea"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"shop.test": shop(file, "/docs/", "/cart", "/tea")})
			crawl(t, spider(web), collyrobots.Dialect(test.dialect))
			pages := sentTo(web)[1:]
			if !slices.Equal(pages, test.pages) {
				t.Errorf("%s: pages %q, want %q", test.dialect, pages, test.pages)
			}
		})
	}
}

// TestCrawlDelay checks the exact gaps under a Crawl-delay: requests to a host, including the request
// for robots.txt, start one delay apart.
func TestCrawlDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"shop.test": shop("User-agent: *\nCrawl-delay: 5\n", "/tea", "/cups")})
		crawl(t, spider(web))
		wantSchedule(t, web, "0s /robots.txt", "5s /", "10s /tea", "15s /cups")
	})
}

// TestCocCocCapsCrawlDelay checks that under Coc Coc's dialect, a host that asks for a minute gets a
// request every ten seconds.
func TestCocCocCapsCrawlDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"shop.test": shop("User-agent: *\nCrawl-delay: 60\n", "/tea")})
		crawl(t, spider(web), collyrobots.Dialect(dialect.CocCoc()))
		wantSchedule(t, web, "0s /robots.txt", "10s /", "20s /tea")
	})
}

// TestSitemapFeedsCollector checks that the pages in a sitemap that robots.txt names are visited, except
// for those that robots.txt disallows.
func TestSitemapFeedsCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := shop("User-agent: *\nCrawl-delay: 1\nDisallow: /cart\nSitemap: http://shop.test/sitemap.xml\n")
		site["/sitemap.xml"] = robotstest.Sitemap("http://shop.test/tea", "http://shop.test/cart", "http://shop.test/cups")
		site["/tea"] = robotstest.Page()
		site["/cups"] = robotstest.Page()
		web := robotstest.New(t, robotstest.Sites{"shop.test": site})
		crawl(t, spider(web, colly.Async()), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		sent := sentTo(web)
		slices.Sort(sent)
		if !slices.Equal(sent, []string{"/", "/cups", "/robots.txt", "/sitemap.xml", "/tea"}) {
			t.Errorf("requests: %q", sent)
		}
	})
}

// TestEachDenialHasItsReason checks that the error of a denied page has the line of robots.txt.
func TestEachDenialHasItsReason(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"shop.test": shop("User-agent: *\nDisallow: /cart\n", "/cart")})
	c := spider(web)
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		t.Fatal(err)
	}
	defer robots.Close()
	var denied *collyrobots.DeniedError
	if err := c.Visit("http://shop.test/cart"); !errors.As(err, &denied) {
		t.Fatalf("Visit returned %v, want a DeniedError", err)
	}
	if d := denied.Decision; d.Reason != report.ReasonRule || d.Rule.Line != 2 {
		t.Errorf("reason %s, line %d; want a rule in line 2", d.Reason, d.Rule.Line)
	}
}

// TestNothingIsSentAfterClose checks that requests and calls after Close fail with ErrClosed, and
// that Close may be called twice.
func TestNothingIsSentAfterClose(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"shop.test": shop("", "/tea")})
	c := spider(web)
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := robots.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Visit("http://shop.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("Visit returned %v, want ErrClosed", err)
	}
	if _, err := robots.Check(t.Context(), "http://shop.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("Check returned %v, want ErrClosed", err)
	}
	if n := len(web.Log("shop.test")); n != 0 {
		t.Errorf("%d requests after Close", n)
	}
}
