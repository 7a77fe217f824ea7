package collyrobots_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"

	"github.com/collyrobots/collyrobots"
)

// Whatever the user does to the client, and when, every hop is judged and paced, and robots.txt goes the way that pages go:
// through the same proxies and with the same private CA.
func TestEveryClientIsGuarded(t *testing.T) {
	proxies := []string{"http://proxy1.test:3128", "http://proxy2.test:3128"}
	cases := map[string]struct {
		set func(t *testing.T, w *wire, c *colly.Collector)
		via string // which connections were opened; "": the hosts' own
	}{
		"WithTransport": {set: func(t *testing.T, w *wire, c *colly.Collector) { c.WithTransport(w.transport(t)) }},
		"WithTransport, a RoundTripper": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			c.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) { return w.client.RoundTrip(r) }))
		}},
		"WithTransport, no keep-alives": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			transport := w.transport(t)
			transport.DisableKeepAlives = true
			c.WithTransport(transport)
		}},
		"SetClient": {set: func(t *testing.T, w *wire, c *colly.Collector) { c.SetClient(&http.Client{Transport: w.client}) }},
		"SetClient with timeout": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			c.SetClient(&http.Client{Transport: w.client, Timeout: 10 * time.Millisecond})
		}},
		"SetProxy": {set: func(t *testing.T, w *wire, c *colly.Collector) { must(t, c.SetProxy(proxies[0])) }, via: "proxy1.test"},
		"SetProxyFunc": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			to, err := url.Parse(proxies[1])
			must(t, err)
			c.SetProxyFunc(http.ProxyURL(to))
		}, via: "proxy2.test"},
		"RoundRobinProxySwitcher": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			rotate, err := proxy.RoundRobinProxySwitcher(proxies...)
			must(t, err)
			c.SetProxyFunc(rotate)
			c.OnResponse(func(r *colly.Response) {
				if !slices.Contains(proxies, r.Request.ProxyURL) {
					t.Errorf("%s came by proxy %q", r.Request.URL, r.Request.ProxyURL)
				}
			})
		}, via: "proxy1.test proxy2.test"},
		"SetProxy, then SetProxy": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			must(t, c.SetProxy(proxies[0]))
			must(t, c.SetProxy(proxies[1]))
		}, via: "proxy2.test"},
		"SetClient, then SetProxy": {set: func(t *testing.T, w *wire, c *colly.Collector) {
			c.SetClient(&http.Client{Transport: w.transport(t)})
			must(t, c.SetProxy(proxies[0]))
		}, via: "proxy1.test"},
		"SetCookieJar": {set: func(_ *testing.T, _ *wire, c *colly.Collector) { c.DisableCookies() }},
		"SetRedirectHandler": {set: func(_ *testing.T, _ *wire, c *colly.Collector) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return nil })
		}},
		"SetRequestTimeout": {set: func(_ *testing.T, _ *wire, c *colly.Collector) { c.SetRequestTimeout(10 * time.Millisecond) }},
	}
	for name, tc := range cases {
		for _, when := range []string{"before Attach", "after Attach", "in the crawl"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				onWire(t, map[string]site{
					"a.test": {
						"/robots.txt": "User-agent: *\nCrawl-delay: 1\nDisallow: /closed\n",
						"/":           page(), "/1": redirect("https://a.test/2"), "/2": page(), "/3": redirect("/closed"), "/4": redirect("https://b.test/"),
					},
					"b.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n", "/": redirect("http://b.test/closed")},
				}, func(t *testing.T, w *wire) {
					c := colly.NewCollector()
					c.WithTransport(w.client)
					if when == "before Attach" {
						tc.set(t, w, c)
					}
					robots, err := collyrobots.WithRobots(c)
					if err != nil {
						t.Fatal(err)
					}
					if when == "after Attach" {
						tc.set(t, w, c)
					}
					opened := 0
					for _, path := range []string{"/", "/1", "/3", "/4", "/closed/too"} {
						err := c.Visit("http://a.test" + path)
						if refused := path == "/3" || path == "/4"; refused != (err != nil) {
							t.Errorf("%s: %v", path, err)
						}
						if path == "/" && when == "in the crawl" {
							opened = len(w.dialled.hosts)
							tc.set(t, w, c)
						}
					}
					w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /, 2s /1, 3s /robots.txt, 4s /2, 5s /3, 6s /4")
					w.wantSchedule(t, "b.test", "6s /robots.txt, 8s /, 10s /robots.txt")
					slices.Sort(w.dialled.hosts[opened:])
					if via := strings.Join(slices.Compact(w.dialled.hosts[opened:]), " "); tc.via != "" && via != tc.via {
						t.Errorf("connections to %s, want %s", via, tc.via)
					}
					if err := robots.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
