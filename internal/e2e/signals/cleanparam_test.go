package signals

import (
	"slices"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// catalog is a site whose sitemap and links name pages several times, with parameters that do not
// change the page.
func catalog() robotstest.Site {
	return robotstest.Site{
		"/robots.txt": "User-agent: *\nDisallow: /basket\nClean-param: ref&utm_source /catalog\nSitemap: http://a.test/sitemap.xml\n",
		"/sitemap.xml": robotstest.Sitemap("http://a.test/catalog?ref=1&id=1", "http://a.test/catalog?id=1&utm_source=x", "http://a.test/catalog?id=2",
			"http://a.test/news?ref=1", "http://a.test/news?ref=2"),
		"/": robotstest.Page("/catalog?id=3&ref=a", "/catalog?id=3&ref=b", "/catalog?id=3", "/catalog?id=4"),
		"*": robotstest.Page(),
	}
}

// pagesOf returns the sorted URIs of the requests for the catalog and the news.
func pagesOf(web *robotstest.Web) string {
	var uris []string
	for _, r := range web.Log("a.test") {
		if strings.HasPrefix(r.URI, "/catalog") || strings.HasPrefix(r.URI, "/news") {
			uris = append(uris, r.URI)
		}
	}
	slices.Sort(uris)
	return strings.Join(uris, " ")
}

// TestCleanParamOfSitemap checks that Clean-param is used to find the duplicates in sitemaps, under
// Yandex only.
func TestCleanParamOfSitemap(t *testing.T) {
	for _, test := range []struct {
		dialect dialect.Dialect
		want    string
		count   int
	}{
		{dialect.Yandex(), "/catalog?id=2 /catalog?ref=1&id=1 /news?ref=1 /news?ref=2", 1},
		{dialect.RFC9309(), "/catalog?id=1&utm_source=x /catalog?id=2 /catalog?ref=1&id=1 /news?ref=1 /news?ref=2", 0},
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": catalog()}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, kit.Async, collyrobots.Dialect(test.dialect), collyrobots.FollowSitemaps(collyrobots.Feed{}))
			kit.Must(t, c.Visit("http://a.test/"))
			c.Wait()
			if got := pagesOf(web); got != test.want {
				t.Errorf("%s: requests %s, want %s", test.dialect, got, test.want)
			}
			if got := c.Robots.Stats().Sitemaps.Duplicate; got != test.count {
				t.Errorf("%s: %d duplicates, want %d", test.dialect, got, test.count)
			}
		})
	}
}

// TestCleanParamOfFrontier checks that a urlstore.Store recognizes a page with other parameters that do
// not change it.
func TestCleanParamOfFrontier(t *testing.T) {
	for d, want := range map[dialect.Dialect]string{
		dialect.Yandex():  "/catalog?id=3 /catalog?id=4",
		dialect.RFC9309(): "/catalog?id=3 /catalog?id=3 /catalog?id=3 /catalog?id=4",
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": catalog()}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, kit.Async, collyrobots.Dialect(d), collyrobots.Frontier(kit.NewMemoryStore()))
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
			kit.Must(t, c.Visit("http://a.test/"))
			c.Wait()
			got := strings.NewReplacer("&ref=a", "", "&ref=b", "").Replace(pagesOf(web)) // any of the three may come first
			if got != want {
				t.Errorf("%s: requests %s, want %s", d, got, want)
			}
		})
	}
}
