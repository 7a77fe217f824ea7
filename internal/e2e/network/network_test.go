package network

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

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

// TestDryRunIsNotLedToPrivateAddress checks that even a dry run, which sends requests that
// robots.txt disallows, does not send requests to private addresses.
func TestDryRunIsNotLedToPrivateAddress(t *testing.T) {
	kit.ForEachClient(t, testDryRunIsNotLedToPrivateAddress)
}

func testDryRunIsNotLedToPrivateAddress(t *testing.T, start kit.Starter) {
	kit.InBubble(t, sitesLeadingTo("10.0.0.1"), func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.DryRun(true), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		for _, url := range []string{"http://a.test/", "http://a.test/redirect", "http://b.test/"} {
			c.Visit(url)
		}
		kit.WantURIs(t, web, "10.0.0.1", "")
	})
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
