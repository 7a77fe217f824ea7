package politeness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// dialSlowly makes the first dials of a transport take these times. Further dials take no time.
func dialSlowly(transport *http.Transport, first ...time.Duration) {
	dial, pause := transport.DialContext, pauses(first...)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		pause()
		return dial(ctx, network, address)
	}
}

// pauses returns a function whose first calls take these times. Further calls take no time.
func pauses(first ...time.Duration) func() {
	var mu sync.Mutex
	return func() {
		mu.Lock()
		var d time.Duration
		if len(first) > 0 {
			d = first[0]
			first = first[1:]
		}
		mu.Unlock()
		time.Sleep(d)
	}
}

// linger makes every second page spend d in a callback after those of the plugin.
func linger(c *kit.Crawl, d time.Duration) {
	pause := pauses(d, 0, d)
	c.OnRequestHeaders(func(*colly.Request) { pause() })
}

// untraced hides the trace of a request from the transport.
type untraced struct{ context.Context }

func (c untraced) Value(key any) any {
	if strings.Contains(fmt.Sprintf("%T", key), "httptrace") {
		return nil
	}
	return c.Context.Value(key)
}

// TestDelayBetweenArrivals checks that the delay lies between the times at which requests arrive
// at the server, if dials or callbacks are slow.
func TestDelayBetweenArrivals(t *testing.T) { kit.ForEachClient(t, testDelayBetweenArrivals) }

func testDelayBetweenArrivals(t *testing.T, start kit.Starter) {
	const delay, dial = 500 * time.Millisecond, 400 * time.Millisecond
	alternately := []time.Duration{dial, 0, dial, 0, dial, 0, dial, 0}
	noKeepAlive := func(t *testing.T, c *kit.Crawl) {
		c.Transport.DisableKeepAlives = true
		dialSlowly(c.Transport, alternately...)
	}
	cases := []struct {
		name  string
		url   string // of pages 0 to 3, http://a.test if empty
		set   func(t *testing.T, c *kit.Crawl)
		proto string
		most  time.Duration // the most that a gap may exceed the delay by
	}{
		{name: "first dial slow", set: func(_ *testing.T, c *kit.Crawl) { dialSlowly(c.Transport, dial) }},
		{name: "no keep-alive", set: noKeepAlive, most: dial},
		{name: "proxy switcher", most: dial, set: func(t *testing.T, c *kit.Crawl) {
			noKeepAlive(t, c)
			c.SetProxyFunc(func(r *http.Request) (*url.URL, error) { return url.Parse("http://proxy.test") })
		}},
		{name: "CONNECT proxy", url: "https://a.test", most: dial, set: func(t *testing.T, c *kit.Crawl) {
			noKeepAlive(t, c)
			c.Transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.test") }
		}},
		{name: "https", url: "https://a.test", set: noKeepAlive, most: dial},
		{name: "HTTP/2", url: "https://a.test", proto: "HTTP/2.0", set: func(_ *testing.T, c *kit.Crawl) {
			c.Transport.ForceAttemptHTTP2 = true
			dialSlowly(c.Transport, dial)
		}},
		{name: "HTTP/2 and no keep-alive", url: "https://a.test", proto: "HTTP/2.0", most: dial, set: func(t *testing.T, c *kit.Crawl) {
			c.Transport.ForceAttemptHTTP2 = true
			noKeepAlive(t, c)
		}},
		{name: "slow callback", most: 150 * time.Millisecond, set: func(_ *testing.T, c *kit.Crawl) {
			linger(c, 150*time.Millisecond)
		}},
		{name: "callback slower than the delay", most: 700 * time.Millisecond, set: func(_ *testing.T, c *kit.Crawl) {
			linger(c, 700*time.Millisecond)
		}},
		{name: "callback slower than a second", most: 3 * time.Second, set: func(_ *testing.T, c *kit.Crawl) {
			linger(c, 3*time.Second)
		}},
		{name: "slow callback, transport without trace", most: 150 * time.Millisecond, set: func(_ *testing.T, c *kit.Crawl) {
			c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				return c.Transport.RoundTrip(r.WithContext(untraced{r.Context()}))
			}))
			linger(c, 150*time.Millisecond)
		}},
		{name: "redirects", set: func(t *testing.T, c *kit.Crawl) { noKeepAlive(t, c) }, url: "http://a.test/moved?", most: dial},
	}
	for _, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				a := robotstest.Pages(4, "User-agent: *\nCrawl-delay: 0.5\n")
				var proto string
				a["/3"] = func(out http.ResponseWriter, r *http.Request) { proto = r.Proto }
				for i := range 4 {
					a[fmt.Sprint("/moved?/", i)] = robotstest.Redirect(fmt.Sprint("/", i))
				}
				kit.InBubble(t, robotstest.Sites{"a.test": a, "proxy.test": {}}, func(t *testing.T, web *robotstest.Web) {
					c := start(t, web, options)
					tc.set(t, c)
					site := tc.url
					if site == "" {
						site = "http://a.test"
					}
					for i := range 4 {
						c.Visit(fmt.Sprint(site, "/", i))
					}
					c.Wait()
					log := web.Log("a.test")
					n := 5
					if strings.Contains(site, "moved") {
						n = 9
					}
					if len(log) != n || len(c.Pages) != 4 {
						t.Fatalf("got %d requests for %d pages, want %d for 4: %v", len(log), len(c.Pages), n, c.Errs)
					}
					for i := 1; i < len(log); i++ {
						if gap := log[i].Time.Sub(log[i-1].Time); gap < delay || gap > delay+tc.most+time.Millisecond {
							t.Errorf("gap %v before %s, want %v and at most %v more", gap, log[i].URI, delay, tc.most)
						}
					}
					if s := c.Robots.Stats().Hosts[0]; s.MinGap != log.MinGap() || s.Requests < n {
						t.Errorf("Stats has %d requests, %v apart; the server log has %d, %v apart", s.Requests, s.MinGap, n, log.MinGap())
					}
					if tc.proto != "" && proto != tc.proto {
						t.Errorf("got pages over %s, want %s", proto, tc.proto)
					}
					if strings.Contains(c.Logged.String(), "had not seen") {
						t.Errorf("got log %s", c.Logged)
					}
				})
			})
		}
	}
}

// TestDelayBetweenArrivalsInFlight checks the same if several requests may be in flight, and a
// request that started first is written later.
func TestDelayBetweenArrivalsInFlight(t *testing.T) {
	kit.ForEachClient(t, testDelayBetweenArrivalsInFlight)
}

func testDelayBetweenArrivalsInFlight(t *testing.T, start kit.Starter) {
	const delay, dial = 500 * time.Millisecond, 900 * time.Millisecond
	for name, slow := range map[string]func(c *kit.Crawl){
		"dials": func(c *kit.Crawl) {
			c.Transport.DisableKeepAlives = true
			dialSlowly(c.Transport, 0, dial, 0, dial, dial, 0, 0, 0)
		},
		"callbacks": func(c *kit.Crawl) {
			pause := pauses(dial, 0, dial, dial, 0, 0, 0)
			c.OnRequestHeaders(func(*colly.Request) { pause() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := robotstest.Pages(7, "User-agent: *\nCrawl-delay: 0.5\n")
			kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, kit.Async, collyrobots.MaxInFlightPerHost(3))
				slow(c)
				for i := range 7 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				kit.WantNoSooner(t, web, "a.test", delay, 8)
				if s := c.Robots.Stats().Hosts[0]; s.MinGap != web.Log("a.test").MinGap() || s.Requests != 8 || s.GapOverDelay < 1 {
					t.Errorf("got stats %+v, want 8 requests, %v apart", s, web.Log("a.test").MinGap())
				}
			})
		})
	}
}
