package network

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file check that robots.txt is requested with the headers that the pages need.
// Each of these programs gets its pages without the plugin.

// guarded returns a site that answers a request with status if pass does not accept the request. If
// status is 0, it closes the connection instead. The robots.txt of the site denies /2.
func guarded(status int, pass func(r *http.Request) bool) robotstest.Site {
	return robotstest.Site{"*": func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !pass(r) && status == 0:
			kit.Drop(w, r)
		case !pass(r):
			w.WriteHeader(status)
		case r.URL.Path == "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /2\n")
		default:
			fmt.Fprint(w, robotstest.Page())
		}
	}}
}

func hasHeader(name, value string) func(r *http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get(name) == value }
}

// TestCredentialsStayWithTheirHost checks that the credentials of a page are not sent to another
// host, after a redirect from another host, or from https to http.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	for _, tc := range []struct {
		name  string
		start string
		to    string // the target of the redirect of a.test's robots.txt
		host  string
		sent  bool
	}{
		{"another host", "http://a.test/", "http://b.test/robots.txt", "b.test", false},
		{"a subdomain", "http://a.test/", "http://www.a.test/robots.txt", "www.a.test", false},
		{"another port", "http://a.test/", "http://a.test:8080/robots.txt", "a.test:8080", false},
		{"another host and back", "http://a.test/", "http://b.test/back", "a.test", false},
		{"the same host", "http://a.test/", "/file", "a.test", true},
		{"the same host, http to https", "http://a.test/", "https://a.test/file", "a.test", true},
		{"the same host, https to http", "https://a.test/", "http://a.test/file", "a.test", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/robots.txt" && r.Host == "a.test":
					http.Redirect(w, r, tc.to, http.StatusFound)
				case r.URL.Path == "/back":
					http.Redirect(w, r, "http://a.test/file", http.StatusFound)
				default:
					w.WriteHeader(http.StatusForbidden)
				}
			}
			other := robotstest.Site{"*": answer}
			sites := robotstest.Sites{"a.test": other, "b.test": other, "www.a.test": other, "a.test:8080": other}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.Dialect(dialect.Temoto()))
				c.Impolite = true
				c.OnRequest(func(r *colly.Request) {
					r.Headers.Set("Authorization", "secret")
					r.Headers.Set("Cookie", "secret=1")
					r.Headers.Set("Proxy-Authorization", "secret")
				})
				kit.Must(t, c.SetCookies("http://a.test/", []*http.Cookie{{Name: "jar", Value: "secret"}}))
				clone := c.Clone() // its requests are checked when their headers are complete
				clone.OnRequest(func(r *colly.Request) {
					r.Headers.Set("Authorization", "secret")
					r.Headers.Set("Cookie", "secret=1")
					r.Headers.Set("Proxy-Authorization", "secret")
				})
				clone.Visit(tc.start)
				sent := false
				for _, r := range web.Log(tc.host) {
					if r.URI == "/" || r.URI == "/robots.txt" && tc.host == "a.test" {
						continue
					}
					for _, values := range r.Header {
						sent = sent || strings.Contains(strings.Join(values, " "), "secret")
					}
				}
				if sent != tc.sent || len(web.Log(tc.host)) == 0 {
					t.Errorf("credentials sent: %t, want %t\n%s", sent, tc.sent, web.Log(""))
				}
			})
		})
	}
}

// TestProxyFromLaterCallback checks the same if the callback that names the proxy is registered
// after Attach.
func TestProxyFromLaterCallback(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys), "p.test:3128": nil}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		c.WithTransport(web.Transport())
		c.SetProxyFunc(func(r *http.Request) (*url.URL, error) {
			if name := r.Header.Get("X-Proxy"); name != "" {
				return url.Parse("http://" + name)
			}
			return nil, errors.New("no proxy")
		})
		robots, err := collyrobots.WithRobots(c, kit.Quiet())
		kit.Must(t, err)
		defer robots.Close()
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Proxy", "p.test:3128") })
		for i := range 3 {
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1 /2")
	})
}

// TestOwnRequestsKeepCredentialsAtTheirHost checks that no request of the plugin's own has a
// credential of a page, a cookie, or the password of a proxy if it is for another host. A page of
// a.test is behind a login, and its robots.txt, its TDMRep file and its sitemap redirect to hosts
// that refuse their own robots.txt.
func TestOwnRequestsKeepCredentialsAtTheirHost(t *testing.T) {
	site := guarded(401, hasHeader("Authorization", "Basic x"))
	pages := site["*"].(func(http.ResponseWriter, *http.Request))
	redirects := map[string]string{
		"/robots.txt": "http://robots.test/robots.txt",
		"/map.xml":    "http://map.test/map.xml",
		kit.TDMURI:    "http://tdm.test/first",
	}
	site["*"] = func(w http.ResponseWriter, r *http.Request) {
		if to := redirects[r.URL.Path]; to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		pages(w, r)
	}
	sites := robotstest.Sites{
		"a.test":      site,
		"robots.test": {"/robots.txt": "User-agent: *\nDisallow: /2\nSitemap: http://a.test/map.xml\n"},
		"tdm.test":    {"/robots.txt": 401, "/first": robotstest.Redirect("http://a.test/second")},
		"map.test":    {"/robots.txt": 403, "*": 404},
	}
	redirects["/second"] = "https://third.test/third"
	sites["third.test"] = robotstest.Site{"/robots.txt": kit.Drop, "*": kit.ReservedAll}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.TDMRep(true), collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		c.Impolite = true
		kit.Must(t, c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "secret"}}))
		header := http.Header{
			"Authorization": {"Basic x"}, "Cookie": {"own=secret"}, "X-Api-Key": {"secret"}, "Proxy-Authorization": {"Basic secret"},
		}
		kit.Must(t, c.Request(http.MethodGet, "http://a.test/1", nil, nil, header))
		for _, host := range []string{"robots.test", "tdm.test", "map.test", "third.test"} {
			if len(web.Log(host)) == 0 {
				t.Errorf("no request to %s", host)
			}
			for _, r := range web.Log(host) {
				for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization"} {
					if value := r.Header.Get(name); value != "" {
						t.Errorf("%s%s got %s: %s", host, r.URI, name, value)
					}
				}
			}
		}
	})
}

func TestRobotsTxtIsRequestedLikePages(t *testing.T) {
	cookie := hasHeader("Cookie", "session=1")
	setCookie := func(c *colly.Collector) {
		if err := c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "1"}}); err != nil {
			panic(err)
		}
	}
	set := func(name, value string) func(c *colly.Collector) {
		return func(c *colly.Collector) { c.OnRequest(func(r *colly.Request) { r.Headers.Set(name, value) }) }
	}
	const twice, once = "/robots.txt /robots.txt /0 /1", "/robots.txt /0 /1"
	for _, tc := range []struct {
		name    string
		site    robotstest.Site
		set     func(c *colly.Collector)
		dialect dialect.Dialect
		want    string
	}{
		{"cookie/401", guarded(401, cookie), setCookie, dialect.RFC9309(), twice},
		{"cookie/403", guarded(403, cookie), setCookie, dialect.RFC9309(), twice},
		{"cookie/503", guarded(503, cookie), setCookie, dialect.RFC9309(), twice},
		{"cookie/no response", guarded(0, cookie), setCookie, dialect.RFC9309(), twice},
		{"cookie/endless redirect", guarded(302, cookie), setCookie, dialect.RFC9309(), twice},
		{"cookie/429", guarded(429, cookie), setCookie, dialect.RFC9309(), "/robots.txt /0 /1 /2"},
		{"cookie/404", guarded(404, cookie), setCookie, dialect.RFC9309(), "/robots.txt /0 /1 /2"},
		{"cookie/Temoto", guarded(403, cookie), setCookie, dialect.Temoto(), once},
		{"cookie header", guarded(503, cookie), set("Cookie", "session=1"), dialect.RFC9309(), twice},
		{"Authorization", guarded(500, hasHeader("Authorization", "Basic x")), set("Authorization", "Basic x"), dialect.RFC9309(), twice},
		{"API key", guarded(500, hasHeader("X-Api-Key", "1")), set("X-Api-Key", "1"), dialect.RFC9309(), twice},
		{"proxy password", guarded(407, hasHeader("Proxy-Authorization", "Basic x")), set("Proxy-Authorization", "Basic x"), dialect.RFC9309(), once},
		{"no cookie", guarded(503, cookie), func(*colly.Collector) {}, dialect.RFC9309(), "/robots.txt"},
		{"another cookie", guarded(503, cookie), set("Cookie", "session=2"), dialect.RFC9309(), "/robots.txt /robots.txt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
				c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
				c.WithTransport(web.Transport())
				tc.set(c)
				robots, err := collyrobots.WithRobots(c, collyrobots.Dialect(tc.dialect))
				kit.Must(t, err)
				defer robots.Close()
				for i := range 3 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				kit.WantURIs(t, web, "a.test", tc.want)
			})
		})
	}
}
