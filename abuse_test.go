package collyrobots_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// What a site's robots.txt and sitemaps may cost others, and the crawl: by the access log.

// lines returns n Sitemap lines; %d in the format is the number of each.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Sitemap: "+format+"\n", i)
	}
	return b.String()
}

// A site cannot have a third host flooded by naming its URLs.
func TestSitemapLinesToAThirdHost(t *testing.T) {
	const bound = 1000 + 1 // requests elsewhere for each site, and a robots.txt
	victim := func(answer any) robotstest.Site { return robotstest.Site{"/robots.txt": "", "*": answer} }
	for name, tc := range map[string]struct {
		robots string
		victim robotstest.Site
		max    int
	}{
		"pages that are none": {lines(10_000, "http://victim.test/?%d"), victim(robotstest.Page()), bound},
		"the same file":       {strings.Repeat("Sitemap: http://victim.test/map.xml\nSitemap: HTTP://VICTIM.test:80/map.xml#x\n", 5_000), victim(robotstest.Sitemap()), 2},
		"by subdomain":        {lines(3_000, "http://h%d.victim.test/map.xml"), victim(404), 2 * 1000}, // each has a robots.txt
		"by redirects":        {lines(10_000, "http://a.test/to?%d"), victim(404), bound},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"a.test": {"/robots.txt": tc.robots, "/": robotstest.Page(), "*": func(out http.ResponseWriter, r *http.Request) {
				http.Redirect(out, r, "http://victim.test/"+r.URL.RawQuery, http.StatusFound)
			}}}
			sites["victim.test"] = tc.victim
			for i := range strings.Count(tc.robots, ".victim.test") {
				sites[fmt.Sprintf("h%d.victim.test", i)] = tc.victim
			}
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.MaxBackOff(0))
				c.Visit("http://a.test/")
				if n := len(web.Log("")) - len(web.Log("a.test")); n > tc.max || n < 2 {
					t.Errorf("others were asked %d times, want at most %d", n, tc.max)
				}
				if said := strings.Count(c.logged.String(), "\n"); said > 60 {
					t.Errorf("%d lines were logged", said)
				}
			})
		})
	}
}

// Sitemaps that drip do not hold a crawl for weeks.
func TestSitemapsThatDrip(t *testing.T) {
	drip := func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(out, " ")
			out.(http.Flusher).Flush()
			time.Sleep(10 * time.Second)
		}
	}
	for name, robots := range map[string]string{
		"of the site":     lines(5_000, "http://a.test/%d.xml"),
		"of another site": lines(5_000, "http://b.test/%d.xml"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{
				"a.test": {"/robots.txt": robots, "/": robotstest.Page(), "*": drip},
				"b.test": {"/robots.txt": "", "*": drip},
			}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				began := time.Now()
				c.Visit("http://a.test/")
				// Four hours of waiting, some of it side by side.
				if d := time.Since(began); d > 4*time.Hour+10*time.Minute {
					t.Errorf("the crawl was held for %v", d)
				}
				if n := len(web.Log("")); n > 4*60/5+8 {
					t.Errorf("%d requests, each for five minutes", n)
				}
			})
		})
	}
}

// Redirects that go on for ever cost six requests each.
func TestSitemapsThatRedirectForEver(t *testing.T) {
	hops := 0
	inBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: /loop.xml\nSitemap: http://a.test/on?0\nSitemap: http://a.test/to-self.xml\nSitemap: http://a.test/ping.xml\n", "/": robotstest.Page(),
		"/to-self.xml": robotstest.Redirect("/to-self.xml"),
		"/ping.xml":    robotstest.Redirect("http://b.test/pong.xml"),
		"*": func(out http.ResponseWriter, r *http.Request) {
			hops++
			http.Redirect(out, r, fmt.Sprint("/on?", hops), http.StatusFound)
		},
	}, "b.test": {"/robots.txt": robotstest.Redirect("http://a.test/robots.txt"), "/pong.xml": robotstest.Redirect("http://a.test/ping.xml")}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		if n := len(web.Log("")); n > 30 {
			t.Errorf("%d requests: %s", n, web.Log("").URIs())
		}
	})
}

// Two sites whose robots.txt files and indexes name each other's sitemaps read each file a few
// times at most.
func TestSitesThatNameEachOther(t *testing.T) {
	site := func(own, other string) robotstest.Site {
		return robotstest.Site{
			"/robots.txt": fmt.Sprintf("Sitemap: http://%s/index.xml\nSitemap: http://%s/index.xml\n", other, own),
			"/":           robotstest.Page(),
			"/index.xml":  robotstest.SitemapIndex("http://"+other+"/index.xml", "http://"+own+"/index.xml", "http://"+other+"/map.xml", "http://"+own+"/map.xml"),
			"/map.xml":    robotstest.Sitemap("http://"+own+"/1", "http://"+other+"/1"),
			"/1":          robotstest.Page("http://"+other+"/", "http://"+own+"/"),
		}
	}
	inBubble(t, robotstest.Sites{"a.test": site("a.test", "b.test"), "b.test": site("b.test", "a.test")}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{})).follow()
		c.Visit("http://a.test/")
		for _, host := range []string{"a.test", "b.test"} {
			asked := map[string]int{}
			for _, r := range web.Log(host) {
				asked[r.URI]++
			}
			for uri, n := range asked {
				if most := map[string]int{"/index.xml": 2, "/map.xml": 2}[uri]; n > max(most, 1) {
					t.Errorf("%s%s was asked for %d times", host, uri, n)
				}
			}
			if asked["/1"] != 1 || asked["/map.xml"] == 0 {
				t.Errorf("%s was asked for %v", host, asked)
			}
		}
	})
}

// An index of indexes without end is read as far as Limits say.
func TestIndexesWithoutEnd(t *testing.T) {
	next := 0
	inBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: http://a.test/0.xml\n", "/": robotstest.Page(),
		"*": func(out http.ResponseWriter, r *http.Request) {
			next += 3
			fmt.Fprint(out, robotstest.SitemapIndex(fmt.Sprintf("http://a.test/%d.xml", next), fmt.Sprintf("http://a.test/%d.xml", next+1), fmt.Sprintf("http://victim.test/%d.xml", next)))
		},
	}, "victim.test": {"*": 404}}, func(t *testing.T, web *robotstest.Web) {
		f := collyrobots.Feed{}
		f.Limits.Files, f.Limits.Depth = 100, 50
		c := start(t, web, nil, collyrobots.FollowSitemaps(f))
		c.Visit("http://a.test/")
		if n := len(web.Log("")); n > 100+3 { // two robots.txt and the page
			t.Errorf("%d requests", n)
		}
	})
}

// Hosts that no request can be sent to are errors, wherever they come from: nothing is made of
// them.
func TestHostsThatCannotBe(t *testing.T) {
	for _, host := range []string{"[::%25\xff]", "[::1%25%2f]", "[fe80::1%25a%0ab]", "", ".", "a\x00b.test", "a%ffb.test", strings.Repeat("a", 2000) + ".test", "a.test:99999"} {
		inBubble(t, robotstest.Sites{"a.test": {
			"/robots.txt": "Sitemap: http://" + host + "/map.xml\n", "/": robotstest.Page(),
			"/hop": func(out http.ResponseWriter, _ *http.Request) {
				out.Header()["Location"] = []string{"http://" + host + "/"}
				out.WriteHeader(http.StatusFound)
			},
		}}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			if d, err := c.robots.Check(t.Context(), "http://"+host+"/"); err == nil {
				t.Errorf("Check of %.40q: %v", host, d)
			}
			if err := c.Visit("http://a.test/hop"); err == nil {
				t.Errorf("a redirect to %.40q: no error", host)
			}
			wantURIs(t, web, "a.test", "/robots.txt /hop")
		})
	}
}
