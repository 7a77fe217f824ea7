package sitemaps

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// mapped returns sites with pages at all paths. The robots.txt of a.test lists one sitemap.
func mapped(sitemap any) robotstest.Sites {
	any := robotstest.Site{"*": robotstest.Page(), "/robots.txt": ""}
	return robotstest.Sites{
		"a.test":     {"/robots.txt": "Sitemap: http://a.test/map.xml\n", "/map.xml": sitemap, "*": robotstest.Page()},
		"www.a.test": any, "shop.a.test": any, "b.test": any,
	}
}

// crawled crawls a.test and returns the visited pages, except for the first one, sorted.
func crawled(t *testing.T, web *robotstest.Web, f collyrobots.Feed) (c *kit.Crawl, pages string) {
	t.Helper()
	c = kit.Start(t, web, nil, collyrobots.FollowSitemaps(f))
	c.Visit("http://a.test/")
	slices.Sort(c.Pages)
	pages = strings.Join(slices.DeleteFunc(c.Pages, func(u string) bool { return u == "http://a.test/" }), " ")
	return c, strings.ReplaceAll(pages, "http://", "")
}

func TestScopes(t *testing.T) {
	sitemap := robotstest.Sitemap("http://a.test/1", "https://a.test/2", "http://www.a.test/3", "http://shop.a.test/4", "http://b.test/5")
	for scope, want := range map[collyrobots.Scope]struct{ pages, option string }{
		collyrobots.ScopeHost: {"a.test/1 https://a.test/2", "Scope: ScopeWWW"},
		collyrobots.ScopeWWW:  {"a.test/1 www.a.test/3 https://a.test/2", "Scope: ScopeSite"},
		collyrobots.ScopeSite: {"a.test/1 shop.a.test/4 www.a.test/3 https://a.test/2", "Scope: ScopeAny"},
		collyrobots.ScopeAny:  {"a.test/1 b.test/5 shop.a.test/4 www.a.test/3 https://a.test/2", ""},
	} {
		t.Run(scope.String(), func(t *testing.T) {
			c, pages := crawled(t, robotstest.New(t, mapped(sitemap)), collyrobots.Feed{Scope: scope})
			if pages != want.pages {
				t.Errorf("got pages %s, want %s", pages, want.pages)
			}
			s := c.Robots.Stats()
			if out := int(collyrobots.ScopeAny - scope); s.Sitemaps.OutOfScope != out || len(s.NotFed["out_of_scope"]) != out {
				t.Errorf("%d pages out of scope, for example %v; want %d", s.Sitemaps.OutOfScope, s.NotFed, out)
			}
			said := strings.Count(c.Logged.String(), "pages of other sites")
			if said != min(s.Sitemaps.OutOfScope, 1) || !strings.Contains(c.Logged.String(), want.option) {
				t.Errorf("%d log records, want one with %s:\n%s", said, want.option, c.Logged)
			}
		})
	}
}

// TestOddSitemaps crawls sitemaps that do not follow any standard.
func TestOddSitemaps(t *testing.T) {
	text := func(body string) any {
		return func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, body) }
	}
	entry := func(inside string) any { return text("<urlset><url>" + inside + "</url></urlset>") }
	dated := func(date string) any { return entry("<loc>http://a.test/1</loc><lastmod>" + date + "</lastmod>") }
	for name, tc := range map[string]struct {
		sitemap any
		pages   string // the visited pages
		errors  int
		said    string // a text in the log
	}{
		"a percent sign":      {entry("<loc>http://a.test/50%</loc>"), "a.test/50%25", 0, ""},
		"a bad escape":        {entry("<loc>http://a.test/%zz?q=%</loc>"), "a.test/%25zz?q=%", 0, ""},
		"an invalid port":     {entry("<loc>http://a.test:x/1</loc>"), "", 1, "loc"},
		"an old date, UTC":    {dated("2004-05-06Z"), "", 0, ""},
		"an old date, zone":   {dated("2004-05-06+02:00"), "", 0, ""},
		"an old date, 24:00":  {dated("2004-05-06T24:00:00Z"), "", 0, ""},
		"a new date":          {dated("2024-05-06Z"), "a.test/1", 0, ""},
		"an invalid date":     {dated("yesterday"), "a.test/1", 1, "lastmod"},
		"a text with a title": {text("Pages of ours\nhttp://a.test/1\nhttp://a.test/2\n"), "a.test/1 a.test/2", 0, ""},
		"an undefined entity": {entry("<loc>&undefined;</loc>"), "", 1, "loc"},
		"an unwanted coding": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "br")
			out.Write([]byte("\x8b\x02\x80not for us\x03"))
		}, "", 1, `Content-Encoding is \"br\"`},
	} {
		t.Run(name, func(t *testing.T) {
			since := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)
			c, pages := crawled(t, robotstest.New(t, mapped(tc.sitemap)), collyrobots.Feed{Since: since})
			if pages != tc.pages {
				t.Errorf("got pages %s, want %s", pages, tc.pages)
			}
			if s := c.Robots.Stats(); s.Sitemaps.Errors != tc.errors || len(s.NotFed["errors"]) != tc.errors {
				t.Errorf("got %d errors, for example %v; want %d", s.Sitemaps.Errors, s.NotFed, tc.errors)
			}
			if !strings.Contains(c.Logged.String(), tc.said) {
				t.Errorf("the log does not contain %s:\n%s", tc.said, c.Logged)
			}
		})
	}
}

// TestFaultsAreSummed checks that a fault that repeats is logged three times, and then as a sum.
func TestFaultsAreSummed(t *testing.T) {
	for name, sitemap := range map[string]string{
		"empty entries":  "<urlset>" + strings.Repeat("<url/>", 20_000) + "</urlset>",
		"bad dates":      "<urlset>" + strings.Repeat("<url><loc>http://a.test/1</loc><lastmod>soon</lastmod></url>", 10_000) + "</urlset>",
		"long locations": "<urlset>" + strings.Repeat("<url><loc>http://a.test/"+strings.Repeat("x", 9_000)+"</loc></url>", 500) + "</urlset>",
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := crawled(t, robotstest.New(t, mapped(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, sitemap) })), collyrobots.Feed{})
			if n := strings.Count(c.Logged.String(), "\n"); n == 0 || n > 10 || len(c.Logged.String()) > 5_000 {
				t.Errorf("%d lines with %d bytes were logged: %.2000s", n, c.Logged.Len(), c.Logged)
			}
			if s := c.Robots.Stats(); s.Sitemaps.Errors < 500 && s.Sitemaps.Errors != 1 || len(s.NotFed["errors"]) > 3 {
				t.Errorf("got %d errors, for example %.200v", s.Sitemaps.Errors, s.NotFed)
			}
		})
	}
}

// TestSitemapIsReadOnce checks that a sitemap is read once in a crawl, also if it has several URLs
// and is listed several times. It is read again for another site, because it may list other pages
// for that site.
func TestSitemapIsReadOnce(t *testing.T) {
	robots := "Sitemap: http://a.test/map.xml\nSitemap: https://a.test/map.xml\nSitemap: http://A.TEST:80/map.xml#1\nSitemap: http://a.test/index.xml\nSitemap: /map.xml\n"
	site := func() robotstest.Site {
		return robotstest.Site{
			"/robots.txt": robots, "/index.xml": robotstest.SitemapIndex("http://a.test/map.xml", "https://a.test/map.xml", "http://a.test/index.xml", "http://a.test/moved.xml"),
			"/moved.xml": robotstest.Redirect("/map.xml"), "/map.xml": robotstest.Sitemap("http://a.test/1", "https://b.test/2"), "*": robotstest.Page(),
		}
	}
	web := robotstest.New(t, robotstest.Sites{"a.test": site(), "b.test": site()})
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	count := func() (maps int) {
		for _, r := range web.Log("a.test") {
			if r.URI == "/map.xml" {
				maps++
			}
		}
		return maps
	}
	c.Visit("http://a.test/")
	c.Visit("https://a.test/")
	if n := count(); n != 1 || c.Robots.Stats().Sitemaps.Fed != 1 {
		t.Errorf("the sitemap was read %d times, stats %+v", n, c.Robots.Stats().Sitemaps)
	}
	c.Visit("http://b.test/") // the sitemap may list other pages for this site
	c.Visit("https://b.test/")
	if n := count(); n != 2 || c.Robots.Stats().Sitemaps.Fed != 2 {
		t.Errorf("the sitemap was read %d times, stats %+v", n, c.Robots.Stats().Sitemaps)
	}
}

// TestRelativeSitemapLine checks that a Sitemap line with a path is resolved against its
// robots.txt.
func TestRelativeSitemapLine(t *testing.T) {
	sites := mapped(robotstest.Sitemap("http://a.test/1"))
	sites["a.test"]["/robots.txt"] = "Sitemap: /map.xml\n"
	if _, pages := crawled(t, robotstest.New(t, sites), collyrobots.Feed{}); pages != "a.test/1" {
		t.Errorf("got pages %s", pages)
	}
}

// TestNewestFirstCountsOnlyAcceptedPages checks that NewestFirst selects the newest of the pages
// that are accepted, and that MaxURLs does not count the others.
func TestNewestFirstCountsOnlyAcceptedPages(t *testing.T) {
	sites := mapped(robotstest.Sitemap("2021-01-01 http://a.test/1", "2025-01-01 http://a.test/refused/5", "2022-01-01 http://a.test/2",
		"2024-01-01 http://a.test/refused/4", "2023-01-01 http://a.test/denied/3", "2024-06-01 http://a.test/"))
	sites["a.test"]["/robots.txt"] = "User-agent: *\nDisallow: /denied\nSitemap: http://a.test/map.xml\n"
	c := kit.Start(t, robotstest.New(t, sites), nil, collyrobots.FollowSitemaps(collyrobots.Feed{NewestFirst: true, MaxURLs: 2}))
	c.DisallowedURLFilters = append(c.DisallowedURLFilters, refusedURLs)
	c.Visit("http://a.test/")
	if got, want := strings.Join(c.Pages, " "), "http://a.test/ http://a.test/2 http://a.test/1"; got != want {
		t.Errorf("got pages %s, want %s", got, want)
	}
	if s := c.Robots.Stats().Sitemaps; s.Fed != 2 || s.Refused != 3 || s.Denied != 1 {
		t.Errorf("got stats %+v", s)
	}
}

// TestMaxURLsBoundsSitemapPages checks that MaxURLs bounds the pages of all sitemaps together, but
// not the links on these pages.
func TestMaxURLsBoundsSitemapPages(t *testing.T) {
	sites := mapped(robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3"))
	sites["a.test"]["/1"] = robotstest.Page("/found", "http://b.test/")
	sites["b.test"] = robotstest.Site{"/robots.txt": "Sitemap: http://b.test/map.xml", "/map.xml": robotstest.Sitemap("http://b.test/1", "http://b.test/2"), "*": robotstest.Page()}
	web := robotstest.New(t, sites)
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{MaxURLs: 2})).Follow()
	c.Visit("http://a.test/")
	if got, want := strings.Join(c.Pages, " "), "http://a.test/ http://a.test/1 http://a.test/found http://b.test/ http://a.test/2"; got != want {
		t.Errorf("got pages %s, want %s", got, want)
	}
}

// feeding returns n hosts whose sitemaps list pages of each other. The pages link to other hosts.
func feeding(rng *rand.Rand, n int) robotstest.Sites {
	host := func() string { return fmt.Sprintf("http://h%d.test", rng.IntN(n)) }
	sites := make(robotstest.Sites)
	for i := range n {
		own := fmt.Sprintf("http://h%d.test", i)
		locs := []string{fmt.Sprintf("http://h%d.test/0", (i+1)%n)} // so that all hosts are found
		for range rng.IntN(4) {
			locs = append(locs, fmt.Sprint(host(), "/", rng.IntN(3)))
		}
		s := robotstest.Site{
			"/robots.txt": "Sitemap: " + own + "/index.xml\n", "/map.xml": robotstest.Sitemap(locs...),
			"/index.xml": robotstest.SitemapIndex(own+"/map.xml", host()+"/map.xml", host()+"/index.xml"), "/0": robotstest.Page(), "/1": robotstest.Page(host() + "/2"), "/2": robotstest.Redirect(host() + "/0"),
		}
		if rng.IntN(3) == 0 {
			s["/robots.txt"] = s["/robots.txt"].(string) + "Sitemap: " + host() + "/map.xml\nSitemap: " + host() + "/index.xml\n"
		}
		sites[fmt.Sprintf("h%d.test", i)] = s
	}
	return sites
}

// TestSitesThatListEachOtherDoNotHang crawls random webs of sites that list each other's pages. The
// crawl must not wait for itself: synctest fails if all goroutines of a bubble wait. It must reach
// all hosts.
func TestSitesThatListEachOtherDoNotHang(t *testing.T) {
	const hosts = 100
	for seed := range uint64(2) {
		for _, window := range []int{1, 2, 64} {
			for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
				t.Run(fmt.Sprintf("%s, window %d, seed %d", name, window, seed), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, uint64(window)))
					kit.InBubble(t, feeding(rng, hosts), func(t *testing.T, web *robotstest.Web) {
						c := kit.Start(t, web, options, collyrobots.FollowSitemaps(collyrobots.Feed{Window: window, Scope: collyrobots.ScopeAny})).Follow()
						if n := rng.IntN(3); n > 0 {
							kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: n})
						}
						c.Visit("http://h0.test/0")
						c.Wait()
						if n := len(c.Robots.Stats().Hosts); n != hosts {
							t.Errorf("%d of %d hosts were reached", n, hosts)
						}
						if s := c.Robots.Stats().Sitemaps; s.Fed < hosts-1 || s.Files+s.FilesFailed < 2*hosts { // a site may lead to ten other domains
							t.Errorf("got stats %+v", s)
						}
					})
				})
			}
		}
	}
}

var refusedURLs = regexp.MustCompile("/refused/")
