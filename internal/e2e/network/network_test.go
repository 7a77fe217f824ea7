package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// In these tests connections have no addresses, and every name is a public host.

// privateHosts are hosts that only the program may send the crawler to.
var privateHosts = []string{
	"10.0.0.1", "172.16.5.4", "192.168.1.1:8080", "127.0.0.1:9000", "127.9.9.9", "[::1]", "169.254.169.254", "[fe80::1]", "[fd00:ec2::254]",
	"100.64.0.1", "0.0.0.0:8080", "0.1.2.3", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
	"[64:ff9b::a00:1]", "[2002:a00:1::]", "[::127.0.0.1]", "localhost:6379", "db.localhost", "[fec0::1]", "192.0.0.8", "240.1.1.1",
}

// publicHosts are hosts that any site may send the crawler to.
var publicHosts = []string{
	"93.184.216.34", "172.32.0.1", "100.128.0.1", "169.253.1.1", "192.169.0.1:8080", "[2606:2800:220:1::1]", "[64:ff9b::5db8:d822]",
	"[2002:5db8:d822::]", "[::ffff:93.184.216.34]", "localhost.test", "11.0.0.1", "198.51.100.1",
}

// sitesLeadingTo returns a page and a robots.txt that redirect to host, and sitemaps that are on
// host or redirect to it.
func sitesLeadingTo(host string) robotstest.Sites {
	to := "http://" + host
	return robotstest.Sites{
		"a.test": {
			"/robots.txt": "Sitemap: " + to + "/direct.xml\nSitemap: http://a.test/moved.xml\nSitemap: http://a.test/index.xml\n",
			"/":           robotstest.Page(),
			"/redirect":   robotstest.Redirect(to + "/page"),
			"/moved.xml":  robotstest.Redirect(to + "/final.xml"),
			"/index.xml":  robotstest.SitemapIndex(to + "/listed.xml"),
		},
		"b.test": {"/robots.txt": robotstest.Redirect(to + "/moved/robots.txt"), "/": robotstest.Page()},
		host: {
			"/robots.txt": "", "/moved/robots.txt": "User-agent: *\nDisallow: /no", "/page": robotstest.Page(),
			"/direct.xml": robotstest.Sitemap(), "/final.xml": robotstest.Sitemap(), "/listed.xml": robotstest.Sitemap(),
		},
	}
}

// TestPublicSiteLeadsToPrivateAddress checks that redirects and sitemaps of a public site never
// lead to a private address.
func TestPublicSiteLeadsToPrivateAddress(t *testing.T) {
	kit.ForEachClient(t, testPublicSiteLeadsToPrivateAddress)
}

func testPublicSiteLeadsToPrivateAddress(t *testing.T, start kit.Starter) {
	for _, host := range privateHosts {
		t.Run(host, func(t *testing.T) {
			kit.InBubble(t, sitesLeadingTo(host), func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				c.Visit("http://a.test/")
				err := c.Visit("http://a.test/redirect")
				private := (*report.PrivateNetworkError)(nil)
				if !errors.As(err, &private) || private.From != "a.test" || private.URL != "http://"+host+"/page" || private.Address == "" {
					t.Errorf("redirect: got %v, %+v", err, private)
				}
				if told := c.Errs["http://a.test/redirect"]; !errors.As(told, &private) {
					t.Errorf("OnError got %v, want a PrivateNetworkError", told)
				}
				if told := c.Denied["http://a.test/redirect"]; !errors.As(told, &private) {
					t.Errorf("OnDenied got %v, want a PrivateNetworkError", told)
				}
				err = c.Visit("http://b.test/")
				if denied := c.Denied["http://b.test/"]; !errors.As(denied, &private) || private.From != "b.test" || !errors.As(err, &private) {
					t.Errorf("page whose robots.txt redirects: got %v, OnDenied got %v", err, denied)
				}
				kit.WantURIs(t, web, host, "")
				kit.WantURIs(t, web, "b.test", "/robots.txt")
				if s := c.Robots.Stats().Sitemaps; c.Client == nil && s.FilesFailed != 3 {
					t.Errorf("%d sitemaps failed, want 3", s.FilesFailed)
				}
				if !strings.Contains(c.Logged.String(), "PrivateNetworks(AllowAll)") {
					t.Errorf("the log does not name the option:\n%s", c.Logged)
				}
			})
		})
	}
}

// TestPublicSiteLeadsToPublicAddress checks that a public site may lead to other public hosts.
func TestPublicSiteLeadsToPublicAddress(t *testing.T) {
	kit.ForEachClient(t, testPublicSiteLeadsToPublicAddress)
}

func testPublicSiteLeadsToPublicAddress(t *testing.T, start kit.Starter) {
	for _, host := range publicHosts {
		t.Run(host, func(t *testing.T) {
			kit.InBubble(t, sitesLeadingTo(host), func(t *testing.T, web *robotstest.Web) { wantAllRequested(t, web, host) })
		})
	}
}

// wantAllRequested checks that everything in sitesLeadingTo(host) is requested.
func wantAllRequested(t *testing.T, web *robotstest.Web, host string, opts ...collyrobots.Option) {
	t.Helper()
	c := kit.Start(t, web, nil, append(opts, collyrobots.FollowSitemaps(collyrobots.Feed{}))...)
	for _, url := range []string{"http://a.test/", "http://a.test/redirect", "http://b.test/"} {
		if err := c.Visit(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	kit.WantSortedURIs(t, web, host, "/direct.xml /final.xml /listed.xml /moved/robots.txt /page /robots.txt")
	kit.WantURIs(t, web, "b.test", "/robots.txt /")
}

func TestPrivateNetworksAllowed(t *testing.T) { kit.ForEachClient(t, testPrivateNetworksAllowed) }

func testPrivateNetworksAllowed(t *testing.T, start kit.Starter) {
	for _, host := range []string{"10.0.0.1", "[::1]", "169.254.169.254", "localhost:8080"} {
		kit.InBubble(t, sitesLeadingTo(host), func(t *testing.T, web *robotstest.Web) {
			wantAllRequested(t, web, host, collyrobots.PrivateNetworks(collyrobots.AllowAll))
		})
	}
}

// TestPrivateSiteLeadsToPrivateAddress checks that the program may visit a private site, and that
// this site may lead to other private ones.
func TestPrivateSiteLeadsToPrivateAddress(t *testing.T) {
	sites := robotstest.Sites{
		"10.0.0.1": {
			"/robots.txt": "Sitemap: http://10.0.0.2/map.xml\n",
			"/":           robotstest.Redirect("http://10.0.0.2/page"),
		},
		"10.0.0.2": {
			"/robots.txt": robotstest.Redirect("http://10.0.0.3/robots.txt"),
			"/page":       robotstest.Redirect("http://[::1]:8080/"),
			"/map.xml":    robotstest.Sitemap("http://10.0.0.1/1"),
		},
		"10.0.0.3":   {"/robots.txt": ""},
		"[::1]:8080": {"/": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		kit.Must(t, c.Visit("http://10.0.0.1/"))
		kit.WantURIs(t, web, "10.0.0.2", "/robots.txt /page /map.xml")
		kit.WantURIs(t, web, "10.0.0.1", "/robots.txt / /1")
		kit.WantURIs(t, web, "[::1]:8080", "/robots.txt /")
	})
}

// TestDryRunIsNotLedToPrivateAddress checks that even a dry run, which sends requests that
// robots.txt disallows, does not send requests to private addresses.
func TestDryRunIsNotLedToPrivateAddress(t *testing.T) {
	kit.ForEachClient(t, testDryRunIsNotLedToPrivateAddress)
}

func testDryRunIsNotLedToPrivateAddress(t *testing.T, start kit.Starter) {
	kit.InBubble(t, sitesLeadingTo("10.0.0.1"), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.DryRun(), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		for _, url := range []string{"http://a.test/", "http://a.test/redirect", "http://b.test/"} {
			c.Visit(url)
		}
		kit.WantURIs(t, web, "10.0.0.1", "")
	})
}

// TestSitemapListsPrivateAddress checks that a page with a private address is not fetched if the
// sitemap of a public site lists it.
func TestSitemapListsPrivateAddress(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "Sitemap: http://a.test/map.xml\n", "/": robotstest.Page(),
			"/map.xml": robotstest.Sitemap("http://10.0.0.1/1", "http://a.test/2", "http://b.test/3", "http://a.test:8080/4"),
			"/2":       robotstest.Page(),
		},
		"a.test:8080": {"/4": robotstest.Page()},
		"b.test":      {"/3": robotstest.Page()},
		"10.0.0.1":    {"/1": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		c.Visit("http://a.test/")
		kit.WantURIs(t, web, "10.0.0.1", "")
		kit.WantURIs(t, web, "b.test", "/robots.txt /3")
		kit.WantURIs(t, web, "a.test:8080", "/robots.txt /4")
		if s := c.Robots.Stats().Sitemaps; s.Fed != 3 || s.Denied != 1 {
			t.Errorf("got stats %+v", s)
		}
	})
}

// A publicConn is a connection with a public remote address.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}
}

// resolve makes the connections of t to hosts look public, although they lead to the loopback
// interface. It counts the connections to all other hosts.
func resolve(t *http.Transport, hosts ...string) (others *atomic.Int32) {
	dial := t.DialContext
	others = new(atomic.Int32)
	t.DialContext = func(ctx context.Context, network, target string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(target)
		if !slices.Contains(hosts, host) {
			others.Add(1)
			return dial(ctx, network, target)
		}
		conn, err := dial(context.Background(), network, target) // without the trace
		if err != nil {
			return nil, err
		}
		return publicConn{conn}, nil
	}
	return others
}

// TestNameOfPrivateAddress checks that a host name that resolves to a private address is recognized
// when it is dialled.
func TestNameOfPrivateAddress(t *testing.T) { kit.ForEachClient(t, testNameOfPrivateAddress) }

func testNameOfPrivateAddress(t *testing.T, start kit.Starter) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			sites := sitesLeadingTo("inner.test")
			if scheme == "https" {
				sites = sitesLeadingTo("inner.test:443")
				sites["inner.test"] = sites["inner.test:443"]
				delete(sites, "inner.test:443")
			}
			web := robotstest.New(t, sites)
			c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			c.AllowURLRevisit = true
			dialled := resolve(c.Transport, "a.test", "b.test")
			c.Visit("http://a.test/")
			err := c.Visit("http://a.test/redirect")
			private := (*report.PrivateNetworkError)(nil)
			if !errors.As(err, &private) || private.From != "a.test" || private.Address != "127.0.0.1" {
				t.Errorf("redirect: got %v, %+v", err, private)
			}
			c.Visit("http://b.test/")
			kit.WantURIs(t, web, "inner.test", "")
			if n := dialled.Load(); n > 4 { // four files may be requested at once
				t.Errorf("%d connections to private addresses were dialled, want at most 4", n)
			}

			// The program may visit the host, whatever was refused before. Sites still may not lead
			// to it.
			if err := c.Visit(scheme + "://inner.test/page"); err != nil {
				t.Errorf("visit by the program: %v", err)
			}
			kit.WantURIs(t, web, "inner.test", "/robots.txt /page")
			for range 3 {
				if err := c.Visit("http://a.test/redirect"); !errors.As(err, &private) || private.Address != "127.0.0.1" {
					t.Errorf("redirect over an existing connection: got %v, want a PrivateNetworkError", err)
				}
			}
			kit.WantURIs(t, web, "inner.test", "/robots.txt /page")
		})
	}
}

// TestEventsOfPrivateRobots checks the events of a robots.txt whose connection shows a private address. None
// says that it was sent, and each has a RequestKind, so that none seems to be the last event of the page.
func TestEventsOfPrivateRobots(t *testing.T) {
	web := robotstest.New(t, sitesLeadingTo("inner.test"))
	h := kit.Hear(report.EventStarted, report.EventAnswered, report.EventDenied, report.EventUnsent)
	c := kit.Start(t, web, nil, h.On())
	resolve(c.Transport, "a.test", "b.test")
	c.Visit("http://b.test/")
	c.Robots.Close() // all events are delivered when it returns
	files := 0
	for _, e := range h.Events {
		if e.URL == "http://inner.test/moved/robots.txt" {
			files++
			if e.RequestKind != report.RequestRobots {
				t.Errorf("the %s event of %s has the kind %q", e.Kind, e.URL, e.RequestKind)
			}
			if e.Kind == report.EventStarted {
				t.Errorf("%s was sent", e.URL)
			}
		}
	}
	if files == 0 {
		t.Error("there is no event of the robots.txt at the private address")
	}
}

// TestWrappedTransport wraps the transport in a RoundTripper, as programs do for signing and
// tracing. The wrapper has no effect if it passes the context on. Otherwise a warning is logged.
func TestWrappedTransport(t *testing.T) { kit.ForEachClient(t, testWrappedTransport) }

func testWrappedTransport(t *testing.T, start kit.Starter) {
	for name, tc := range map[string]struct {
		request func(*http.Request) *http.Request // the request that the wrapper passes on
		guarded bool
	}{
		"signs": {func(r *http.Request) *http.Request {
			r = r.Clone(r.Context())
			r.Header.Set("Signature", "x")
			return r
		}, true},
		"adds a value":       {func(r *http.Request) *http.Request { return r.WithContext(context.WithValue(r.Context(), t, "x")) }, true},
		"drops the deadline": {func(r *http.Request) *http.Request { return r.WithContext(context.WithoutCancel(r.Context())) }, true},
		"drops the context":  {func(r *http.Request) *http.Request { return r.WithContext(context.Background()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, sitesLeadingTo("inner.test"), func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				kit.MovingNames(c.Transport).Set("inner.test", kit.InternalIP)
				c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) { return c.Transport.RoundTrip(tc.request(r)) }))
				for _, url := range []string{"http://a.test/", "http://a.test/redirect", "http://b.test/"} {
					c.Visit(url)
				}
				if asked := kit.URIsOf(web.Log("inner.test")); tc.guarded != (asked == "") {
					t.Errorf("requests to inner.test: %q, want none", asked)
				}
				want := 0
				if !tc.guarded {
					want = 1
				}
				if n := strings.Count(c.Logged.String(), "a transport reports no connections"); n != want {
					t.Errorf("%d warnings, want %d:\n%s", n, want, c.Logged)
				}
			})
		})
	}
}

// TestLocalSiteLeadsToLocalAddress checks that a site on this machine, whatever its name, may lead
// to other sites on it.
func TestLocalSiteLeadsToLocalAddress(t *testing.T) {
	kit.ForEachClient(t, testLocalSiteLeadsToLocalAddress)
}

func testLocalSiteLeadsToLocalAddress(t *testing.T, start kit.Starter) {
	web := robotstest.New(t, sitesLeadingTo("inner.test"))
	wantAllRequested(t, web, "inner.test")
}

// TestFedPageIsStillLedAfterLongWait checks that a page from a sitemap is not taken for a visit of
// the program after it has waited so long for a LimitRule slot that its record was dropped, or
// after its turn has expired.
func TestFedPageIsStillLedAfterLongWait(t *testing.T) {
	for name, crawl := range map[string]func(t *testing.T, c *kit.Crawl){
		"for a slot": func(t *testing.T, c *kit.Crawl) {
			kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*.test", Parallelism: 1})
			for _, url := range []string{"http://slow.test/1", "http://a.test/", "http://slow.test/2"} {
				c.Visit(url)
				synctest.Wait()
			}
			time.Sleep(27 * time.Second) // the pages have waited behind the last of these for 15 s
			for i := range 1000 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
		},
		"in a callback": func(t *testing.T, c *kit.Crawl) {
			c.OnRequestHeaders(func(*colly.Request) { time.Sleep(5 * time.Second) })
			c.Visit("http://a.test/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{
				"a.test":     {"/robots.txt": "Sitemap: http://a.test/map.xml\n", "/map.xml": robotstest.Sitemap("http://inner.test/0", "http://inner.test/1"), "*": robotstest.Page()},
				"inner.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\n", "*": robotstest.Page()},
				"slow.test":  {"/robots.txt": "", "*": kit.Takes(15*time.Second, robotstest.Page())},
			}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
				c.SetRequestTimeout(time.Minute)
				movesIn(c.Transport, "inner.test:80")
				crawl(t, c)
				c.Wait()
				for i := range 2 {
					private := (*report.PrivateNetworkError)(nil)
					if err := c.Errs[fmt.Sprint("http://inner.test/", i)]; !errors.As(err, &private) || private.From != "a.test" || private.Address != "10.0.0.1" {
						t.Errorf("page %d: got %v, %+v", i, err, private)
					}
				}
				kit.WantURIs(t, web, "inner.test", "/robots.txt")
			})
		})
	}
}

// movesIn makes all hosts public. The host "host:port" in moves is public only for its first
// connection.
func movesIn(transport *http.Transport, moves string) {
	transport.DisableKeepAlives = true
	dial, asked := transport.DialContext, atomic.Bool{}
	transport.DialContext = func(ctx context.Context, network, target string) (net.Conn, error) {
		conn, err := dial(ctx, network, target)
		if target == moves && asked.Swap(true) {
			return privateConn{conn}, err
		}
		return publicConn{conn}, err
	}
}

// A privateConn is a connection with a private remote address.
type privateConn struct{ net.Conn }

func (privateConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}
}

// TestProxyOnThisMachine checks that only addresses in URLs count if there is a proxy, because the
// address of the connection is that of the proxy.
func TestProxyOnThisMachine(t *testing.T) {
	sites := sitesLeadingTo("inner.test")
	sites["proxy.test:3128"] = robotstest.Site{}
	sites["a.test"]["/literal"] = robotstest.Redirect("http://10.0.0.1/x")
	sites["10.0.0.1"] = robotstest.Site{"/x": robotstest.Page()}
	web := robotstest.New(t, sites)
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.Transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
	for _, url := range []string{"http://a.test/", "http://a.test/redirect", "http://b.test/"} {
		kit.Must(t, c.Visit(url))
	}
	kit.WantSortedURIs(t, web, "inner.test", "/direct.xml /final.xml /listed.xml /moved/robots.txt /page /robots.txt")
	private := (*report.PrivateNetworkError)(nil)
	if err := c.Visit("http://a.test/literal"); !errors.As(err, &private) {
		t.Errorf("redirect to a literal address: got %v, want a PrivateNetworkError", err)
	}
	kit.WantURIs(t, web, "10.0.0.1", "")
}

// TestRefusalDoesNotAffectVisit checks that a visit of the program succeeds while redirects that
// need the same robots.txt are refused.
func TestRefusalDoesNotAffectVisit(t *testing.T) {
	sites := robotstest.Sites{"inner.test": {"/robots.txt": "", "/page": robotstest.Page()}}
	var public []string
	for i := range 20 {
		site := fmt.Sprintf("a%d.test", i)
		public = append(public, site)
		sites[site] = robotstest.Site{"/": robotstest.Redirect("http://inner.test/page")}
	}
	web := robotstest.New(t, sites)
	c := kit.Start(t, web, []colly.CollectorOption{colly.Async(), colly.AllowURLRevisit()})
	resolve(c.Transport, public...)
	for _, site := range public {
		c.Visit("http://" + site + "/")
	}
	c.Visit("http://inner.test/page")
	c.Wait()
	for _, site := range public {
		private := (*report.PrivateNetworkError)(nil)
		if err := c.Errs["http://"+site+"/"]; !errors.As(err, &private) {
			t.Errorf("%s: got %v, want a PrivateNetworkError", site, err)
		}
	}
	kit.WantURIs(t, web, "inner.test", "/robots.txt /page")
}

// TestForbiddenDomains checks that nothing is requested from a domain in the collector's
// DisallowedDomains, even if a site leads there.
func TestForbiddenDomains(t *testing.T) {
	for name, spelling := range map[string]struct{ domain, host string }{
		"plain":      {"bad.test", "bad.test"},
		"upper case": {"Bad.Test", "bad.test"},
		"dot":        {"bad.test", "bad.test."},
		"port":       {"bad.test", "bad.test:8080"},
		"punycode":   {"b\u00fccher.test", "xn--bcher-kva.test"},
		"address":    {"93.184.216.34", "93.184.216.34"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, sitesLeadingTo(spelling.host), func(t *testing.T, web *robotstest.Web) {
				web.Set("a.test", "/map.xml", robotstest.Sitemap("http://"+spelling.host+"/page", "http://a.test/good"))
				web.Set("a.test", "/good", robotstest.Page())
				web.Set("a.test", "/robots.txt", "Sitemap: http://a.test/map.xml\n"+sitesLeadingTo(spelling.host)["a.test"]["/robots.txt"].(string))
				web.Set("a.test", "/to-b", robotstest.Redirect("http://b.test/"))
				c := kit.Start(t, web, []colly.CollectorOption{colly.DisallowedDomains("else.test", spelling.domain)},
					collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
				c.Visit("http://a.test/")
				c.Visit("http://b.test/")
				if denied := c.Denied["http://b.test/"]; !errors.Is(denied, colly.ErrForbiddenDomain) || !errors.Is(denied, colly.ErrRobotsTxtBlocked) {
					t.Errorf("page whose robots.txt redirects there: got %v", denied)
				}
				kit.WantURIs(t, web, spelling.host, "")
				kit.WantURIs(t, web, "b.test", "/robots.txt")
				kit.WantSortedURIs(t, web, "a.test", "/ /good /index.xml /map.xml /moved.xml /robots.txt")
			})
		})
	}
}

// TestForbiddenDomainsBehindRedirect is the same for the robots.txt of the target of a redirect.
// Colly calls no hook for the target.
func TestForbiddenDomainsBehindRedirect(t *testing.T) {
	kit.InBubble(t, sitesLeadingTo("bad.test"), func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/to-b", robotstest.Redirect("http://b.test/"))
		c := kit.Start(t, web, []colly.CollectorOption{colly.DisallowedDomains("bad.test")})
		if err := c.Visit("http://a.test/to-b"); !errors.Is(err, colly.ErrForbiddenDomain) {
			t.Errorf("got %v, want ErrForbiddenDomain", err)
		}
		kit.WantURIs(t, web, "bad.test", "")
		kit.WantURIs(t, web, "b.test", "/robots.txt")
	})
}

// TestForbiddenDomainsOfPages checks that Pages requests nothing from forbidden domains, except
// from sites that the program names.
func TestForbiddenDomainsOfPages(t *testing.T) {
	kit.InBubble(t, sitesLeadingTo("bad.test"), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, []colly.CollectorOption{colly.DisallowedDomains("bad.test")})
		for e, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
			if err != nil && !errors.Is(err, colly.ErrForbiddenDomain) {
				t.Error(e, err)
			}
		}
		kit.WantURIs(t, web, "bad.test", "")
	})
}
