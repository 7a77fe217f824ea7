package collyrobots_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// These tests change where a name leads during a crawl, as DNS rebinding does.

// An addressedConn is a connection that reports another remote address.
type addressedConn struct {
	net.Conn
	ip net.IP
}

func (c addressedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 80} }

var (
	publicIP   = net.IPv4(93, 184, 216, 34)
	publicIPv6 = net.ParseIP("2606:2800:220:1::1")
	internalIP = net.IPv4(10, 0, 0, 1)
)

// names has the current address of each name. Names that it does not have are public.
type names struct {
	mu sync.Mutex
	ip map[string]net.IP
}

// moves makes transport dial a new connection for each request, with the address of the host in
// the names that it returns.
func moves(transport *http.Transport) *names {
	n := &names{ip: make(map[string]net.IP)}
	transport.DisableKeepAlives = true
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, target string) (net.Conn, error) {
		conn, err := dial(ctx, network, target)
		if err != nil {
			return nil, err
		}
		return addressedConn{Conn: conn, ip: n.of(target)}, nil
	}
	return n
}

func (n *names) of(target string) net.IP {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, _, _ := net.SplitHostPort(target)
	if ip := n.ip[host]; ip != nil {
		return ip
	}
	return publicIP
}

func (n *names) set(host string, ip net.IP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ip[host] = ip
}

// then returns a handler that moves host to ip and then answers as answer does.
func (n *names) then(host string, ip net.IP, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.set(host, ip)
		answer(w, r)
	}
}

func redirectTo(url string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }
}

// TestRebinding checks that a public site cannot lead the crawler to itself after its name has
// moved to a private address, in any way.
func TestRebinding(t *testing.T) { forEachClient(t, testRebinding) }

func testRebinding(t *testing.T, start starter) {
	for name, evil := range map[string]func(n *names) robotstest.Site{
		"a page redirects": func(n *names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.then("evil.test", internalIP, redirectTo("http://evil.test/internal"))}
		},
		"a page redirects to https": func(n *names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.then("evil.test", internalIP, redirectTo("https://evil.test/internal"))}
		},
		"a page redirects to another port": func(n *names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "", "/": n.then("evil.test", internalIP, redirectTo("http://evil.test:6379/internal"))}
		},
		"robots.txt redirects": func(n *names) robotstest.Site {
			return robotstest.Site{"/robots.txt": n.then("evil.test", internalIP, redirectTo("/internal"))}
		},
		"robots.txt names a sitemap": func(n *names) robotstest.Site {
			return robotstest.Site{"/robots.txt": "Sitemap: /internal", "/": n.then("evil.test", internalIP, text("page"))}
		},
		"a sitemap redirects": func(n *names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.then("evil.test", internalIP, redirectTo("/internal")),
			}
		},
		"an index names a sitemap": func(n *names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.then("evil.test", internalIP, text(robotstest.SitemapIndex("http://evil.test/internal"))),
			}
		},
		"a sitemap lists a page": func(n *names) robotstest.Site {
			return robotstest.Site{
				"/robots.txt": "Sitemap: /map.xml", "/": robotstest.Page(),
				"/map.xml": n.then("evil.test", internalIP, text(robotstest.Sitemap("http://evil.test/internal"))),
			}
		},
		"from IPv6": func(n *names) robotstest.Site {
			n.set("evil.test", publicIPv6)
			return robotstest.Site{"/robots.txt": "", "/": n.then("evil.test", net.ParseIP("fd00::1"), redirectTo("/internal"))}
		},
		"it was private before": func(n *names) robotstest.Site {
			n.set("evil.test", internalIP)
			toInternal := n.then("evil.test", internalIP, redirectTo("/internal"))
			return robotstest.Site{"/robots.txt": n.then("evil.test", publicIP, text("")), "/": toInternal}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"evil.test": {}, "evil.test:6379": {"*": "internal"}}
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				n := moves(c.transport)
				for path, answer := range evil(n) {
					web.Set("evil.test", path, answer)
				}
				c.Visit("http://evil.test/")
				for _, host := range []string{"evil.test", "evil.test:6379"} {
					if uris := urisOf(web.Log(host)); strings.Contains(uris, "/internal") {
						t.Errorf("requests to %s: %s, want none", host, uris)
					}
				}
			})
		})
	}
}

// TestPublicHostMovesToPrivateAddress moves a site to a private address. The program may visit it
// there, but the site still may not lead to other private addresses or to itself.
func TestPublicHostMovesToPrivateAddress(t *testing.T) {
	forEachClient(t, testPublicHostMovesToPrivateAddress)
}

func testPublicHostMovesToPrivateAddress(t *testing.T, start starter) {
	sites := robotstest.Sites{
		"evil.test": {
			"/robots.txt": "", "/": robotstest.Page(), "/again": robotstest.Page(),
			"/redirect": robotstest.Redirect("http://inner.test/internal"),
			"/self":     robotstest.Redirect("http://evil.test/internal"),
		},
		"inner.test": {"*": robotstest.Page()},
	}
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		n := moves(c.transport)
		n.set("inner.test", internalIP)
		must(t, c.Visit("http://evil.test/"))
		n.set("evil.test", internalIP)
		must(t, c.Visit("http://evil.test/again"))
		for _, path := range []string{"/redirect", "/self"} {
			private := (*collyrobots.PrivateNetworkError)(nil)
			if err := c.Visit("http://evil.test" + path); !errors.As(err, &private) || private.From != "evil.test" || private.Address != "10.0.0.1" {
				t.Errorf("%s: got %v, want a PrivateNetworkError", path, err)
			}
		}
		wantURIs(t, web, "inner.test", "")
		wantURIs(t, web, "evil.test", "/robots.txt / /again /redirect /self")
	})
}

// TestPrivateSiteLeadsToItself crawls a site in a private network that leads to itself in every
// way.
func TestPrivateSiteLeadsToItself(t *testing.T) {
	sites := robotstest.Sites{
		"inner.test": {
			"/robots.txt": robotstest.Redirect("https://inner.test/robots"), "/robots": "Sitemap: /map.xml",
			"/map.xml": robotstest.Redirect("/index.xml"), "/index.xml": robotstest.SitemapIndex("http://inner.test/pages.xml"),
			"/pages.xml": robotstest.Sitemap("http://inner.test/page"), "/page": robotstest.Redirect("http://inner.test:8080/end"),
			"/": robotstest.Redirect("/home"), "/home": robotstest.Page(),
		},
		"inner.test:8080": {"/end": robotstest.Page()},
	}
	for name, ip := range map[string]net.IP{"10.0.0.1": internalIP, "::1": net.IPv6loopback} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				moves(c.transport).set("inner.test", ip)
				must(t, c.Visit("http://inner.test/"))
				wantURIs(t, web, "inner.test", "/robots.txt /robots / /home /map.xml /index.xml /pages.xml /page")
				wantURIs(t, web, "inner.test:8080", "/robots.txt /end")
			})
		})
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
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		n := moves(c.transport)
		for _, host := range []string{"inner.test", "inner2.test", "victim.test"} {
			n.set(host, internalIP)
		}
		must(t, c.Visit("http://inner.test/"))
		c.Visit("http://inner2.test/")
		wantURIs(t, web, "victim.test", "")
		wantSortedURIs(t, web, "inner.test", "/ /1 /2 /own.xml /robots.txt")
	})
}

// TestResumeBehindDialer runs a crawl twice through a dialer on this machine. In the second run the
// page comes from the collector's cache and robots.txt from the Store, so the sitemap is the first
// file that needs the dialer.
func TestResumeBehindDialer(t *testing.T) {
	for name, tc := range map[string]struct {
		then net.IP // the address of all names in the second run
		want string
	}{
		"on this machine": {net.IPv4(127, 0, 0, 1), "/robots.txt /map.xml /map.xml"},
		"in the network":  {internalIP, "/robots.txt /map.xml /map.xml"},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{
				"a.test":    {"/robots.txt": "Sitemap: http://maps.test/map.xml\n", "/": robotstest.Page()},
				"maps.test": {"/robots.txt": "", "/map.xml": robotstest.Sitemap()},
			}
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				dir, s := t.TempDir(), store.Memory()
				for range 2 {
					c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.Store(s))
					c.CacheDir = dir
					n := moves(c.transport)
					n.set("a.test", tc.then)
					n.set("maps.test", tc.then)
					must(t, c.Visit("http://a.test/"))
					must(t, c.robots.Close())
				}
				wantURIs(t, web, "a.test", "/robots.txt /")
				wantURIs(t, web, "maps.test", tc.want)
			})
		})
	}
}

// TestRebindingBetweenRuns is like TestResumeBehindDialer for a site that was public when its
// robots.txt was read. In the second run it may not lead into the private network.
func TestRebindingBetweenRuns(t *testing.T) {
	sites := robotstest.Sites{
		"evil.test":  {"/robots.txt": "Sitemap: http://inner.test/map.xml\nSitemap: http://10.0.0.2/map.xml\n", "/": robotstest.Page()},
		"inner.test": {"*": robotstest.Sitemap()},
		"10.0.0.2":   {"*": robotstest.Sitemap()},
	}
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		dir, s := t.TempDir(), store.Memory()
		for _, ip := range []net.IP{publicIP, internalIP} {
			c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.Store(s))
			c.CacheDir = dir
			n := moves(c.transport)
			n.set("inner.test", internalIP)
			n.set("evil.test", ip)
			must(t, c.Visit("http://evil.test/"))
			must(t, c.robots.Close())
		}
		wantURIs(t, web, "evil.test", "/robots.txt /")
		wantURIs(t, web, "inner.test", "")
		wantURIs(t, web, "10.0.0.2", "")
	})
}
