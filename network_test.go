package collyrobots_test

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
	"github.com/collyrobots/collyrobots/robotstest"
)

// In a bubble connections have no addresses, and every name is a public host.

// privateHosts are hosts that nobody but the user may lead to.
var privateHosts = []string{
	"10.0.0.1", "172.16.5.4", "192.168.1.1:8080", "127.0.0.1:9000", "127.9.9.9", "[::1]", "169.254.169.254", "[fe80::1]", "[fd00:ec2::254]",
	"100.64.0.1", "0.0.0.0:8080", "0.1.2.3", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
	"[64:ff9b::a00:1]", "[2002:a00:1::]", "[::127.0.0.1]", "localhost:6379", "db.localhost", "[fec0::1]", "192.0.0.8", "240.1.1.1",
}

// publicHosts are some that anybody may lead to.
var publicHosts = []string{
	"93.184.216.34", "172.32.0.1", "100.128.0.1", "169.253.1.1", "192.169.0.1:8080", "[2606:2800:220:1::1]", "[64:ff9b::5db8:d822]",
	"[2002:5db8:d822::]", "[::ffff:93.184.216.34]", "localhost.test", "11.0.0.1", "198.51.100.1",
}

// led has a page that redirects to a host, a robots.txt that does, and sitemaps that are there or
// redirect there.
func led(host string) robotstest.Sites {
	to := "http://" + host
	return robotstest.Sites{
		"a.test": {
			"/robots.txt": "Sitemap: " + to + "/direct.xml\nSitemap: http://a.test/moved.xml\nSitemap: http://a.test/index.xml\n",
			"/":           robotstest.Page(),
			"/hop":        robotstest.Redirect(to + "/page"),
			"/moved.xml":  robotstest.Redirect(to + "/hop.xml"),
			"/index.xml":  robotstest.SitemapIndex(to + "/listed.xml"),
		},
		"b.test": {"/robots.txt": robotstest.Redirect(to + "/moved/robots.txt"), "/": robotstest.Page()},
		host: {
			"/robots.txt": "", "/moved/robots.txt": "User-agent: *\nDisallow: /no", "/page": robotstest.Page(),
			"/direct.xml": robotstest.Sitemap(), "/hop.xml": robotstest.Sitemap(), "/listed.xml": robotstest.Sitemap(),
		},
	}
}

func TestAPublicSiteLeadsToNoPrivateAddress(t *testing.T) {
	for _, host := range privateHosts {
		t.Run(host, func(t *testing.T) {
			inBubble(t, led(host), func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				c.Visit("http://a.test/")
				err := c.Visit("http://a.test/hop")
				private := (*collyrobots.PrivateNetworkError)(nil)
				if !errors.As(err, &private) || private.From != "a.test" || private.URL != "http://"+host+"/page" || private.Address == "" {
					t.Errorf("the redirect: %v, %+v", err, private)
				}
				if told := c.errs["http://a.test/hop"]; !errors.As(told, &private) {
					t.Errorf("OnError was told %v", told)
				}
				if told := c.denied["http://a.test/hop"]; !errors.As(told, &private) {
					t.Errorf("OnDenied was told %v", told)
				}
				err = c.Visit("http://b.test/")
				if denied := c.denied["http://b.test/"]; !errors.As(denied, &private) || private.From != "b.test" || !errors.As(err, &private) {
					t.Errorf("the page whose robots.txt is there: %v, OnDenied: %v", err, denied)
				}
				wantURIs(t, web, host, "")
				wantURIs(t, web, "b.test", "/robots.txt")
				if s := c.robots.Stats().Sitemaps; s.FilesFailed != 3 {
					t.Errorf("%d sitemaps failed, want 3", s.FilesFailed)
				}
				if !strings.Contains(c.logged.String(), "AllowPrivateNetworks") {
					t.Errorf("the log does not name the option:\n%s", c.logged)
				}
			})
		})
	}
}

func TestAPublicSiteLeadsToPublicAddresses(t *testing.T) {
	for _, host := range publicHosts {
		t.Run(host, func(t *testing.T) {
			inBubble(t, led(host), func(t *testing.T, web *robotstest.Web) { wantLed(t, web, host) })
		})
	}
}

// wantLed wants all that led has to be asked for.
func wantLed(t *testing.T, web *robotstest.Web, host string, opts ...collyrobots.Option) {
	t.Helper()
	c := start(t, web, nil, append(opts, collyrobots.FollowSitemaps(collyrobots.Feed{}))...)
	for _, url := range []string{"http://a.test/", "http://a.test/hop", "http://b.test/"} {
		if err := c.Visit(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	wantSortedURIs(t, web, host, "/direct.xml /hop.xml /listed.xml /moved/robots.txt /page /robots.txt")
	wantURIs(t, web, "b.test", "/robots.txt /")
}

func TestAllowPrivateNetworks(t *testing.T) {
	for _, host := range []string{"10.0.0.1", "[::1]", "169.254.169.254", "localhost:8080"} {
		inBubble(t, led(host), func(t *testing.T, web *robotstest.Web) { wantLed(t, web, host, collyrobots.AllowPrivateNetworks()) })
	}
}

// What the user visits is his, and a private site may lead to others.
func TestThePrivateLeadToEachOther(t *testing.T) {
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
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		must(t, c.Visit("http://10.0.0.1/"))
		wantURIs(t, web, "10.0.0.2", "/robots.txt /page /map.xml")
		wantURIs(t, web, "10.0.0.1", "/robots.txt / /1")
		wantURIs(t, web, "[::1]:8080", "/robots.txt /")
	})
}

// A dry run sends what robots.txt disallows, but not this.
func TestADryRunIsNotLedThere(t *testing.T) {
	inBubble(t, led("10.0.0.1"), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.DryRun(), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		for _, url := range []string{"http://a.test/", "http://a.test/hop", "http://b.test/"} {
			c.Visit(url)
		}
		wantURIs(t, web, "10.0.0.1", "")
	})
}

// Pages of other hosts that a sitemap lists are led to as well.
func TestFedPagesLeadToNoPrivateAddress(t *testing.T) {
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
	inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		c.Visit("http://a.test/")
		wantURIs(t, web, "10.0.0.1", "")
		wantURIs(t, web, "b.test", "/robots.txt /3")
		wantURIs(t, web, "a.test:8080", "/robots.txt /4")
		if s := c.robots.Stats().Sitemaps; s.Fed != 3 || s.Denied != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A publicConn looks as one to a host on the internet.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}
}

// resolve makes hosts public for t, whose connections lead to the loopback interface. It counts the
// connections to all others.
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

// What a name stands for is known when it is dialled.
func TestNamesOfPrivateAddresses(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			sites := led("inner.test")
			if scheme == "https" {
				sites = led("inner.test:443")
				sites["inner.test"] = sites["inner.test:443"]
				delete(sites, "inner.test:443")
			}
			web := robotstest.New(t, sites)
			c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			c.AllowURLRevisit = true
			dialled := resolve(c.transport, "a.test", "b.test")
			c.Visit("http://a.test/")
			err := c.Visit("http://a.test/hop")
			private := (*collyrobots.PrivateNetworkError)(nil)
			if !errors.As(err, &private) || private.From != "a.test" || private.Address != "127.0.0.1" {
				t.Errorf("the redirect: %v, %+v", err, private)
			}
			c.Visit("http://b.test/")
			wantURIs(t, web, "inner.test", "")
			if n := dialled.Load(); n > 4 { // four files may be asked for at once
				t.Errorf("%d connections were made to be refused", n)
			}

			// The user may go there, whatever was refused before, and that lets nobody else in.
			if err := c.Visit(scheme + "://inner.test/page"); err != nil {
				t.Errorf("the user's visit: %v", err)
			}
			wantURIs(t, web, "inner.test", "/robots.txt /page")
			for range 3 {
				if err := c.Visit("http://a.test/hop"); !errors.As(err, &private) || private.Address != "127.0.0.1" {
					t.Errorf("the redirect, once a connection is there: %v", err)
				}
			}
			wantURIs(t, web, "inner.test", "/robots.txt /page")
		})
	}
}

// TestTransportsAroundHTTP puts a RoundTripper around the transport, as signing and tracing do. One
// that passes the context on changes nothing. Of one that does not, a warning tells.
func TestTransportsAroundHTTP(t *testing.T) {
	for name, tc := range map[string]struct {
		request func(*http.Request) *http.Request // that is passed on
		guarded bool
	}{
		"it signs": {func(r *http.Request) *http.Request {
			r = r.Clone(r.Context())
			r.Header.Set("Signature", "x")
			return r
		}, true},
		"it adds a value":       {func(r *http.Request) *http.Request { return r.WithContext(context.WithValue(r.Context(), t, "x")) }, true},
		"it drops the deadline": {func(r *http.Request) *http.Request { return r.WithContext(context.WithoutCancel(r.Context())) }, true},
		"it drops the context":  {func(r *http.Request) *http.Request { return r.WithContext(context.Background()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, led("inner.test"), func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				moves(c.transport).set("inner.test", internalIP)
				c.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) { return c.transport.RoundTrip(tc.request(r)) }))
				for _, url := range []string{"http://a.test/", "http://a.test/hop", "http://b.test/"} {
					c.Visit(url)
				}
				if asked := urisOf(web.Log("inner.test")); tc.guarded != (asked == "") {
					t.Errorf("inner.test was asked for %q", asked)
				}
				want := 0
				if !tc.guarded {
					want = 1
				}
				if n := strings.Count(c.logged.String(), "a transport reports no connections"); n != want {
					t.Errorf("%d warnings, want %d:\n%s", n, want, c.logged)
				}
			})
		})
	}
}

// A site that is on this machine itself, whatever its name, may lead to others.
func TestNamesOnThisMachine(t *testing.T) {
	web := robotstest.New(t, led("inner.test"))
	wantLed(t, web, "inner.test")
}

// A page that a sitemap lists is still where a site has led, and not where the user goes, when it
// has waited so long for a LimitRule slot that its record was given up, and when its turn has
// lapsed.
func TestALongWaitForgetsNoLead(t *testing.T) {
	for name, crawl := range map[string]func(t *testing.T, c *crawl){
		"for a slot": func(t *testing.T, c *crawl) {
			limited(t, c, &colly.LimitRule{DomainGlob: "*.test", Parallelism: 1})
			for _, url := range []string{"http://slow.test/1", "http://a.test/", "http://slow.test/2"} {
				c.Visit(url)
				synctest.Wait()
			}
			time.Sleep(27 * time.Second) // since 15 s the pages wait behind the last of these
			for i := range 1000 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
		},
		"in a callback": func(t *testing.T, c *crawl) {
			c.OnRequestHeaders(func(*colly.Request) { time.Sleep(5 * time.Second) })
			c.Visit("http://a.test/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{
				"a.test":     {"/robots.txt": "Sitemap: http://a.test/map.xml\n", "/map.xml": robotstest.Sitemap("http://inner.test/0", "http://inner.test/1"), "*": robotstest.Page()},
				"inner.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\n", "*": robotstest.Page()},
				"slow.test":  {"/robots.txt": "", "*": takes(15*time.Second, robotstest.Page())},
			}
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, async, collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
				c.SetRequestTimeout(time.Minute)
				movesIn(c.transport, "inner.test:80")
				crawl(t, c)
				c.Wait()
				for i := range 2 {
					private := (*collyrobots.PrivateNetworkError)(nil)
					if err := c.errs[fmt.Sprint("http://inner.test/", i)]; !errors.As(err, &private) || private.From != "a.test" || private.Address != "10.0.0.1" {
						t.Errorf("page %d: %v, %+v", i, err, private)
					}
				}
				wantURIs(t, web, "inner.test", "/robots.txt")
			})
		})
	}
}

// movesIn makes all hosts public, one of them, "host:port", only for its first connection.
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

// A privateConn seems to lead to a private address.
type privateConn struct{ net.Conn }

func (privateConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}
}

// Through a proxy only what the URLs say counts: the address is the proxy's.
func TestAProxyOnThisMachine(t *testing.T) {
	sites := led("inner.test")
	sites["proxy.test:3128"] = robotstest.Site{}
	sites["a.test"]["/literal"] = robotstest.Redirect("http://10.0.0.1/x")
	sites["10.0.0.1"] = robotstest.Site{"/x": robotstest.Page()}
	web := robotstest.New(t, sites)
	c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
	for _, url := range []string{"http://a.test/", "http://a.test/hop", "http://b.test/"} {
		must(t, c.Visit(url))
	}
	wantSortedURIs(t, web, "inner.test", "/direct.xml /hop.xml /listed.xml /moved/robots.txt /page /robots.txt")
	private := (*collyrobots.PrivateNetworkError)(nil)
	if err := c.Visit("http://a.test/literal"); !errors.As(err, &private) {
		t.Errorf("a literal address: %v", err)
	}
	wantURIs(t, web, "10.0.0.1", "")
}

// A user's visit and a redirect come for the same robots.txt at once: the redirect's refusal is its
// own.
func TestARefusalIsNobodyElses(t *testing.T) {
	sites := robotstest.Sites{"inner.test": {"/robots.txt": "", "/page": robotstest.Page()}}
	var hops []string
	for i := range 20 {
		site := fmt.Sprintf("a%d.test", i)
		hops = append(hops, site)
		sites[site] = robotstest.Site{"/": robotstest.Redirect("http://inner.test/page")}
	}
	web := robotstest.New(t, sites)
	c := start(t, web, []colly.CollectorOption{colly.Async(), colly.AllowURLRevisit()})
	resolve(c.transport, hops...)
	for _, site := range hops {
		c.Visit("http://" + site + "/")
	}
	c.Visit("http://inner.test/page")
	c.Wait()
	for _, site := range hops {
		private := (*collyrobots.PrivateNetworkError)(nil)
		if err := c.errs["http://"+site+"/"]; !errors.As(err, &private) {
			t.Errorf("%s: %v", site, err)
		}
	}
	wantURIs(t, web, "inner.test", "/robots.txt /page")
}

// A domain that the user has forbidden is never asked for anything, whoever leads there.
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
			inBubble(t, led(spelling.host), func(t *testing.T, web *robotstest.Web) {
				web.Set("a.test", "/map.xml", robotstest.Sitemap("http://"+spelling.host+"/page", "http://a.test/good"))
				web.Set("a.test", "/good", robotstest.Page())
				web.Set("a.test", "/robots.txt", "Sitemap: http://a.test/map.xml\n"+led(spelling.host)["a.test"]["/robots.txt"].(string))
				web.Set("a.test", "/to-b", robotstest.Redirect("http://b.test/"))
				c := start(t, web, []colly.CollectorOption{colly.DisallowedDomains("else.test", spelling.domain)},
					collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
				c.Visit("http://a.test/")
				c.Visit("http://b.test/")
				if denied := c.denied["http://b.test/"]; !errors.Is(denied, colly.ErrForbiddenDomain) || !errors.Is(denied, colly.ErrRobotsTxtBlocked) {
					t.Errorf("the page whose robots.txt is there: %v", denied)
				}
				wantURIs(t, web, spelling.host, "")
				wantURIs(t, web, "b.test", "/robots.txt")
				wantSortedURIs(t, web, "a.test", "/ /good /index.xml /map.xml /moved.xml /robots.txt")
			})
		})
	}
}

// Nor for the robots.txt of a redirect hop, which no hook of a collector has seen.
func TestForbiddenDomainsBehindAHop(t *testing.T) {
	inBubble(t, led("bad.test"), func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/to-b", robotstest.Redirect("http://b.test/"))
		c := start(t, web, []colly.CollectorOption{colly.DisallowedDomains("bad.test")})
		if err := c.Visit("http://a.test/to-b"); !errors.Is(err, colly.ErrForbiddenDomain) {
			t.Errorf("%v", err)
		}
		wantURIs(t, web, "bad.test", "")
		wantURIs(t, web, "b.test", "/robots.txt")
	})
}

// Pages and sites that the program names are its own affair, but what they lead to is not.
func TestForbiddenDomainsOfPages(t *testing.T) {
	inBubble(t, led("bad.test"), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, []colly.CollectorOption{colly.DisallowedDomains("bad.test")})
		for e, err := range c.robots.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
			if err != nil && !errors.Is(err, colly.ErrForbiddenDomain) {
				t.Error(e, err)
			}
		}
		wantURIs(t, web, "bad.test", "")
	})
}
