package robotstest_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// crawl is the spider of a user. Its tests pass it the transport.
func crawl(transport http.RoundTripper, start string) error {
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"), colly.Async())
	c.WithTransport(transport)
	robots, err := c.WithRobots(collyrobots.MinDelay(time.Second))
	if err != nil {
		return err
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	if err := c.Visit(start); err != nil {
		return err
	}
	c.Wait()
	return nil
}

func TestSpider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"shop.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 60\nDisallow: /cart\n",
			"/":           robotstest.Page("/1", "/cart/3"),
			"/1":          robotstest.Page("/", "/2"),
			"/2":          robotstest.Page("/4"),
			"/4":          http.StatusNotFound,
		}})
		crawl(web.Transport(), "http://shop.test/") // your spider: c.WithTransport(transport)
		want := []string{"0s /robots.txt", "1m0s /", "2m0s /1", "3m0s /2", "4m0s /4"}
		if got := web.Log("shop.test").Schedule(); !slices.Equal(got, want) {
			t.Errorf("requests to shop.test: got %q, want %q", got, want)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}

// The package documentation contains the test above.
func TestTheDocumentationHasTestSpider(t *testing.T) {
	test, doc := read(t, "spider_test.go"), read(t, "web.go")
	_, test, _ = strings.Cut(test, "\nfunc TestSpider")
	test, _, _ = strings.Cut("func TestSpider"+test, "\n}\n")
	test = "//\t" + strings.ReplaceAll(test+"\n}", "\n", "\n//\t")
	if !strings.Contains(doc, test+"\n") {
		t.Errorf("the package documentation does not contain\n%s", test)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A spider that uses only Colly's built-in check obeys the rules as temoto reads them, and keeps no
// delay.
func TestVerifyFailsASpiderWithoutThePlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, builtIn := range []bool{true, false} {
			web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nDisallow: /1\nCrawl-delay: 5")})
			c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
			c.IgnoreRobotsTxt = !builtIn
			c.WithTransport(web.Transport())
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
			c.Visit("http://a.test/")
			faults, temoto := "GET http://a.test/0 at 0s: 0s after /, want 5s\nGET http://a.test/1 at 0s: robots.txt disallows\nGET http://a.test/1 at 0s: 0s after /0", "GET http://a.test/1 at 0s"
			if builtIn {
				faults, temoto = "GET http://a.test/ at 0s: 0s after /robots.txt, want 5s\nGET http://a.test/0 at 0s: 0s after /, want 5s", ""
			}
			wantFaults(t, web, faults, dialect.RFC9309())
			wantFaults(t, web, temoto, dialect.Temoto())
		}
	})
}

// A robots.txt behind more than five redirects counts as one that does not exist. Each host of this chain
// redirects to the next one, and the last one disallows all pages.
func TestVerifyPassesManyRedirects(t *testing.T) {
	sites := robotstest.Sites{"h8.test": {"/robots.txt": "User-agent: *\nDisallow: /", "/": ""}}
	for i := range 8 {
		sites[fmt.Sprintf("h%d.test", i)] = robotstest.Site{"/robots.txt": robotstest.Redirect(fmt.Sprintf("http://h%d.test/robots.txt", i+1)), "/": ""}
	}
	onBoth(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		c.WithTransport(web.Transport())
		robots, err := c.WithRobots()
		if err != nil {
			t.Fatal(err)
		}
		defer robots.Close()
		fetched := 0
		c.OnResponse(func(*colly.Response) { fetched++ })
		for _, i := range []int{0, 6, 5, 4, 3, 2, 1, 7, 8} {
			c.Visit(fmt.Sprintf("http://h%d.test/", i))
		}
		if fetched != 3 {
			t.Errorf("%d pages were fetched, want those of h0, h1 and h2", fetched)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}

// A polite crawl with robots.txt, redirects, sitemaps and several hosts passes in a bubble and on
// the loopback interface.
func TestVerifyPassesThePlugin(t *testing.T) {
	aborted := false
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 0.4\nDisallow: /closed\nSitemap: http://a.test/map.xml",
			"/":           robotstest.Page("/1", "/2", "/closed", "/3", "https://a.test/1", "http://b.test/"),
			"/1":          robotstest.Redirect("/closed"), "/2": robotstest.Redirect("http://b.test/1"), "/3": 404,
			"/map.xml": robotstest.Sitemap("http://a.test/4"), "/4": robotstest.Page(),
		},
		"b.test": {"/robots.txt": robotstest.Redirect("http://cdn.test/robots"), "/": robotstest.Page("http://c.test/"), "/1": robotstest.Page()},
		"cdn.test": {"/robots.txt": "User-agent: *\nDisallow: /", "/robots": func(w http.ResponseWriter, r *http.Request) {
			if aborted = !aborted; aborted {
				panic(http.ErrAbortHandler)
			}
			w.Write([]byte("User-agent: *\nCrawl-delay: 0.5"))
		}},
		"c.test": {"/robots.txt": 503},
	}
	onBoth(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		c.WithTransport(web.Transport())
		robots, err := c.WithRobots(collyrobots.FollowSitemaps(collyrobots.Feed{}))
		if err != nil {
			t.Fatal(err)
		}
		defer robots.Close()
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		c.Visit("http://a.test/")
		c.Wait()
		time.Sleep(time.Millisecond)
		if n := len(web.Log("")); n < 10 {
			t.Errorf("%d requests:\n%s", n, web.Log(""))
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}
