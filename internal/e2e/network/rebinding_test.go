package network

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// These tests change where a name leads during a crawl, as DNS rebinding does.

func redirectTo(url string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }
}

// TestRebinding checks that a public site cannot lead the crawler to itself after its name has
// moved to a private address, in any way.
func TestRebinding(t *testing.T) { kit.ForEachClient(t, testRebinding) }

func testRebinding(t *testing.T, start kit.Starter) {
	for name, evil := range map[string]func(n *kit.Names) robotstest.Site{
		"a page redirects": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.Then("evil.test", kit.InternalIP, redirectTo("http://evil.test/internal"))}
		},
		"a page redirects to https": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.Then("evil.test", kit.InternalIP, redirectTo("https://evil.test/internal"))}
		},
		"a page redirects to another port": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.Then("evil.test", kit.InternalIP, redirectTo("http://evil.test:6379/internal"))}
		},
		"robots.txt redirects": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{"/robots.txt": n.Then("evil.test", kit.InternalIP, redirectTo("/internal"))}
		},
		"robots.txt names a sitemap": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "Sitemap: /internal", "/": n.Then("evil.test", kit.InternalIP, text("page"))}
		},
		"a sitemap redirects": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.Then("evil.test", kit.InternalIP, redirectTo("/internal")),
			}
		},
		"an index names a sitemap": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.Then("evil.test", kit.InternalIP, text(robotstest.SitemapIndex("http://evil.test/internal"))),
			}
		},
		"a sitemap lists a page": func(n *kit.Names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.Then("evil.test", kit.InternalIP, text(robotstest.Sitemap("http://evil.test/internal"))),
			}
		},
		"from IPv6": func(n *kit.Names) robotstest.Site {
			n.Set("evil.test", kit.PublicIPv6)
			return robotstest.Site{"/robots.txt": "", "/": n.Then("evil.test", net.ParseIP("fd00::1"), redirectTo("/internal"))}
		},
		"it was private before": func(n *kit.Names) robotstest.Site {
			n.Set("evil.test", kit.InternalIP)
			toInternal := n.Then("evil.test", kit.InternalIP, redirectTo("/internal"))
			return robotstest.Site{"/robots.txt": n.Then("evil.test", kit.PublicIP, text("")), "/": toInternal}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"evil.test": {}, "evil.test:6379": {"*": "internal"}}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				n := kit.MovingNames(c.Transport)
				for path, answer := range evil(n) {
					web.Set("evil.test", path, answer)
				}
				c.Visit("http://evil.test/")
				for _, host := range []string{"evil.test", "evil.test:6379"} {
					if uris := kit.URIsOf(web.Log(host)); strings.Contains(uris, "/internal") {
						t.Errorf("requests to %s: %s, want none", host, uris)
					}
				}
			})
		})
	}
}

// TestPrivateNetworksDenied checks that no request goes to a private address, also if the program
// makes it, whether the URL has the address or a name that leads there.
func TestPrivateNetworksDenied(t *testing.T) { kit.ForEachClient(t, testPrivateNetworksDenied) }

func testPrivateNetworksDenied(t *testing.T, start kit.Starter) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "", "*": robotstest.Page()}, "inner.test": {"*": robotstest.Page()}, "10.0.0.1": {"*": robotstest.Page()}}
	for _, ignores := range []bool{false, true} {
		options := []collyrobots.Option{collyrobots.PrivateNetworks(collyrobots.AllowAll), collyrobots.PrivateNetworks(collyrobots.DenyAll)}
		if ignores {
			options = append(options, kit.IgnoreRobots())
		}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, options...)
			n := kit.MovingNames(c.Transport)
			n.Set("inner.test", kit.InternalIP)
			kit.Must(t, c.Visit("http://a.test/"))
			n.Set("a.test", kit.InternalIP)
			c.Transport.CloseIdleConnections()
			for _, url := range []string{"http://10.0.0.1/", "http://inner.test/", "http://a.test/moved"} {
				wantPrivate(t, c.Visit(url), url)
			}
			for _, url := range []string{"http://10.0.0.1/", "http://inner.test/"} {
				turn, err := c.Robots.Acquire(t.Context(), kit.NewRequest(t, url))
				if ignores && url == "http://inner.test/" {
					turn.End() // nothing has to be requested, so there is no connection
					continue
				}
				wantPrivate(t, err, url)
			}
			for host, want := range map[string]string{"a.test": "/robots.txt /", "inner.test": "", "10.0.0.1": ""} {
				if ignores && want != "" {
					want = "/"
				}
				kit.WantURIs(t, web, host, want)
			}
		})
	}
}

// wantPrivate checks that an error is that of a private address which the program has requested.
func wantPrivate(t *testing.T, err error, url string) {
	t.Helper()
	private := (*report.PrivateNetworkError)(nil)
	if !errors.As(err, &private) || private.From != "" || private.Address != "10.0.0.1" || !strings.Contains(err.Error(), url+" has a private address (10.0.0.1)") {
		t.Errorf("%s: %v, want a PrivateNetworkError", url, err)
	}
}

// TestPublicHostOfPrivateSite crawls private sites whose sitemaps and robots.txt are on a public
// host. This host may lead back to the site, but not to other private hosts.
func TestPublicHostOfPrivateSite(t *testing.T) {
	internal := []string{"http://victim.test/redirect", "http://victim.test/index", "http://victim.test/page"}
	sites := robotstest.Sites{
		"inner.test":  {"/robots.txt": "Sitemap: http://cdn.test/index.xml\nSitemap: http://cdn.test/moved.xml\n", "/": robotstest.Page(), "/1": robotstest.Page(), "/own.xml": robotstest.Sitemap("http://inner.test/2"), "/2": robotstest.Page()},
		"inner2.test": {"/robots.txt": robotstest.Redirect("http://cdn.test/moved-robots"), "/": robotstest.Page()},
		"cdn.test": {
			"/moved.xml": robotstest.Redirect(internal[0]), "/moved-robots": robotstest.Redirect("http://victim.test/robots"),
			"/index.xml": robotstest.SitemapIndex(internal[1], "http://inner.test/own.xml", "http://cdn.test/map.xml"),
			"/map.xml":   robotstest.Sitemap(internal[2], "http://inner.test/1"),
		},
		"victim.test": {"*": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		n := kit.MovingNames(c.Transport)
		for _, host := range []string{"inner.test", "inner2.test", "victim.test"} {
			n.Set(host, kit.InternalIP)
		}
		kit.Must(t, c.Visit("http://inner.test/"))
		c.Visit("http://inner2.test/")
		kit.WantURIs(t, web, "victim.test", "")
		kit.WantSortedURIs(t, web, "inner.test", "/ /1 /2 /own.xml /robots.txt")
	})
}
