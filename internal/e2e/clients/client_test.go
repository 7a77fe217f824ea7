package clients

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// An ownClient is a collector whose client is set up by a test.
type ownClient struct {
	*colly.Collector
	t         *testing.T
	web       *robotstest.Web
	transport *http.Transport // the first one
}

var proxies = []string{"http://proxy1.test:3128", "http://proxy2.test:3128"}

// ownClients are ways to set up a client.
var ownClients = map[string]struct {
	set func(c *ownClient)
	via string // the proxies that all requests must come through; "" if any are allowed
}{
	"WithTransport": {set: func(c *ownClient) { c.WithTransport(c.web.Transport()) }},
	"WithTransport, a RoundTripper": {set: func(c *ownClient) {
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) { return c.transport.RoundTrip(r) }))
	}},
	"WithTransport, no keep-alives": {set: func(c *ownClient) {
		transport := c.web.Transport()
		transport.DisableKeepAlives = true
		c.WithTransport(transport)
	}},
	"SetClient": {set: func(c *ownClient) { c.SetClient(&http.Client{Transport: c.transport}) }},
	"SetClient with timeout": {set: func(c *ownClient) {
		c.SetClient(&http.Client{Transport: c.transport, Timeout: 10 * time.Millisecond})
	}},
	"SetProxy": {set: func(c *ownClient) { kit.Must(c.t, c.SetProxy(proxies[0])) }, via: "proxy1.test:3128"},
	"SetProxyFunc": {set: func(c *ownClient) {
		to, err := url.Parse(proxies[1])
		kit.Must(c.t, err)
		c.SetProxyFunc(http.ProxyURL(to))
	}, via: "proxy2.test:3128"},
	"RoundRobinProxySwitcher": {set: func(c *ownClient) {
		rotate, err := proxy.RoundRobinProxySwitcher(proxies...)
		kit.Must(c.t, err)
		c.SetProxyFunc(rotate)
		c.OnResponse(func(r *colly.Response) {
			if !slices.Contains(proxies, r.Request.ProxyURL) {
				c.t.Errorf("%s came through proxy %q", r.Request.URL, r.Request.ProxyURL)
			}
		})
	}, via: "proxy1.test:3128 proxy2.test:3128"},
	"SetProxy, then SetProxy": {set: func(c *ownClient) {
		kit.Must(c.t, c.SetProxy(proxies[0]))
		kit.Must(c.t, c.SetProxy(proxies[1]))
	}, via: "proxy2.test:3128"},
	"SetClient, then SetProxy": {set: func(c *ownClient) {
		c.SetClient(&http.Client{Transport: c.web.Transport()})
		kit.Must(c.t, c.SetProxy(proxies[0]))
	}, via: "proxy1.test:3128"},
	"SetCookieJar": {set: func(c *ownClient) { c.DisableCookies() }},
	"SetRedirectHandler": {set: func(c *ownClient) {
		c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return nil })
	}},
	"SetRequestTimeout": {set: func(c *ownClient) { c.SetRequestTimeout(10 * time.Millisecond) }},
}

// TestEveryKindOfClient checks that redirects are checked and paced with every kind of client,
// whether it is set before or after Attach. robots.txt must be fetched like pages, through the same
// proxies and with the same private CA.
func TestEveryKindOfClient(t *testing.T) {
	for name, tc := range ownClients {
		for _, when := range []string{"before Attach", "after Attach", "in the crawl"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{
					"a.test": {
						"/robots.txt": "User-agent: *\nCrawl-delay: 1\nDisallow: /closed\n",
						"/":           robotstest.Page(), "/1": robotstest.Redirect("https://a.test/2"), "/2": robotstest.Page(), "/3": robotstest.Redirect("/closed"), "/4": robotstest.Redirect("https://b.test/"),
					},
					"b.test":           {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n", "/": robotstest.Redirect("http://b.test/closed")},
					"proxy1.test:3128": nil, "proxy2.test:3128": nil,
				}, func(t *testing.T, web *robotstest.Web) {
					c := &ownClient{Collector: colly.NewCollector(), t: t, web: web, transport: web.Transport()}
					c.WithTransport(c.transport)
					if when == "before Attach" {
						tc.set(c)
					}
					robots, err := collyrobots.WithRobots(c.Collector)
					kit.Must(t, err)
					if when == "after Attach" {
						tc.set(c)
					}
					before := 0
					for _, path := range []string{"/", "/1", "/3", "/4", "/closed/too"} {
						err := c.Visit("http://a.test" + path)
						if refused := path == "/3" || path == "/4" || path == "/closed/too"; refused != errors.Is(err, colly.ErrRobotsTxtBlocked) {
							t.Errorf("Visit of %s returned %v", path, err)
						}
						if path == "/" && when == "in the crawl" {
							before = len(web.Log(""))
							tc.set(c)
						}
					}
					kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /, 2s /1, 3s /robots.txt, 4s /2, 5s /3, 6s /4")
					kit.WantSchedule(t, web, "b.test", "6s /robots.txt, 8s /, 10s /robots.txt")
					var via []string
					for _, r := range web.Log("")[before:] {
						via = append(via, r.Proxy)
					}
					slices.Sort(via)
					if got := strings.Join(slices.Compact(via), " "); tc.via != "" && got != tc.via {
						t.Errorf("requests came through %q, want %s", got, tc.via)
					}
					if err := robots.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestFileAfterSetProxy checks that a file can be visited right after SetProxy, which replaces the
// transport.
func TestFileAfterSetProxy(t *testing.T) {
	folder := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(folder, "page"), []byte("text"), 0o600))
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		c.Transport.RegisterProtocol("file", http.NewFileTransport(http.Dir(folder)))
		kit.Must(t, c.Visit("http://a.test/"))
		kit.Must(t, c.SetProxy(proxies[0]))
		kit.Must(t, c.Visit("file:///page"))
	})
}
