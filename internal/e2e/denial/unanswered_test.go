package denial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// An unanswered fetch of robots.txt counts only for the way of the request: the collector, its
// client and its proxy.

// threePages returns a site that can be reached only through the proxy alive.test.
func threePages() robotstest.Sites {
	return robotstest.Sites{
		"a.test":          robotstest.Pages(6, kit.NoDenys),
		"alive.test:3128": nil,
	}
}

var failing = kit.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") })

// TestOneCollectorCannotReachSite checks two collectors with one plugin. One of them cannot reach
// the site. It must fail with its own error, and the other must get its pages, in either order.
func TestOneCollectorCannotReachSite(t *testing.T) {
	for name, tc := range map[string]struct {
		breakIt func(t *testing.T, web *robotstest.Web, c *colly.Collector)
		why     func(err error) bool
	}{
		"a dead proxy": {
			func(t *testing.T, _ *robotstest.Web, c *colly.Collector) {
				kit.Must(t, c.SetProxy("http://dead.test:3128"))
			},
			func(err error) bool { return strings.Contains(err.Error(), "dead.test") },
		},
		"an unknown certificate authority": {
			func(_ *testing.T, web *robotstest.Web, c *colly.Collector) {
				transport := web.Transport()
				transport.TLSClientConfig = &tls.Config{}
				c.WithTransport(transport)
			},
			func(err error) bool { return errors.As(err, new(*tls.CertificateVerificationError)) },
		},
		"a short time limit": {
			func(_ *testing.T, _ *robotstest.Web, c *colly.Collector) { c.SetRequestTimeout(time.Millisecond) },
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		},
		"a transport that fails": {
			func(_ *testing.T, _ *robotstest.Web, c *colly.Collector) { c.WithTransport(failing) },
			func(err error) bool { return strings.Contains(err.Error(), "no route to host") },
		},
	} {
		for _, options := range [][]colly.CollectorOption{nil, kit.Async} {
			for _, first := range []bool{true, false} {
				t.Run(fmt.Sprint(name, ", async: ", len(options) > 0, ", first: ", first), func(t *testing.T) {
					pages := robotstest.Pages(3, kit.NoDenys)
					site := robotstest.Site{"*": func(w http.ResponseWriter, r *http.Request) {
						time.Sleep(100 * time.Millisecond)
						fmt.Fprint(w, pages[r.URL.Path])
					}}
					kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
						robots, err := collyrobots.New(kit.Quiet())
						kit.Must(t, err)
						defer robots.Close()
						make := func() *colly.Collector {
							c := colly.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, options...)...)
							c.WithTransport(web.Transport())
							kit.Must(t, robots.Attach(c))
							return c
						}
						bad, good := make(), make()
						tc.breakIt(t, web, bad)
						var mu sync.Mutex
						var failures, came []string
						bad.OnError(func(r *colly.Response, err error) {
							mu.Lock()
							defer mu.Unlock()
							failures = append(failures, r.Request.URL.Path)
							if !tc.why(err) {
								t.Errorf("%s: got %v", r.Request.URL, err)
							}
						})
						good.OnError(func(r *colly.Response, err error) { t.Errorf("%s: got %v", r.Request.URL, err) })
						good.OnResponse(func(r *colly.Response) {
							mu.Lock()
							defer mu.Unlock()
							came = append(came, r.Request.URL.Path)
						})
						all := []*colly.Collector{bad, good}
						if !first {
							slices.Reverse(all)
						}
						for i := range 3 {
							for _, c := range all {
								c.Visit(fmt.Sprint("https://a.test/", i))
							}
						}
						bad.Wait()
						good.Wait()
						if len(came) != 3 || len(failures) != 3 {
							t.Errorf("got %d pages and %d failures, want 3 and 3", len(came), len(failures))
						}
						if n := strings.Count(kit.URIsOf(web.Log("a.test")), "/robots.txt"); n > 2 {
							t.Errorf("%d requests for robots.txt, want at most 2:\n%s", n, web.Log("a.test"))
						}
					})
				})
			}
		}
	}
}

// upAt returns a transport whose network is up after d.
func upAt(next http.RoundTripper, d time.Duration) http.RoundTripper {
	up := time.Now().Add(d)
	return kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if time.Now().Before(up) {
			return nil, errors.New("network is unreachable")
		}
		return next.RoundTrip(r)
	})
}

// TestLongWaitForService checks that a loop that waits for a service is at most a fifth later than
// without the plugin.
func TestLongWaitForService(t *testing.T) {
	for _, up := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		kit.InBubble(t, threePages(), func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()})
			c.WithTransport(upAt(web.Transport(), up))
			began := time.Now()
			for c.Collector.Visit("http://a.test/0") != nil {
				time.Sleep(100 * time.Millisecond)
			}
			if took := time.Since(began); took > up+up/5+100*time.Millisecond {
				t.Errorf("got the page after %v, want it after %v", took, up)
			}
		})
	}
}

// TestThousandDeadProxies checks that there is one fetch of robots.txt at a time, and a limited
// number of them, however many pages and proxies there are.
func TestThousandDeadProxies(t *testing.T) {
	var mu sync.Mutex
	count := func(asked *[]time.Time) http.RoundTripper {
		return &http.Transport{
			Proxy: func(r *http.Request) (*url.URL, error) {
				return url.Parse("http://" + r.Header.Get("X-Proxy") + ".test:3128")
			},
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				*asked = append(*asked, time.Now())
				return nil, errors.New("connection refused")
			},
		}
	}
	t.Run("a proxy per page", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Time
			c := colly.NewCollector(colly.Async())
			c.WithTransport(count(&asked))
			c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Proxy", r.URL.Path[1:]) })
			robots, err := collyrobots.WithRobots(c, kit.Quiet())
			kit.Must(t, err)
			defer robots.Close()
			failed := 0
			c.OnError(func(*colly.Response, error) { mu.Lock(); failed++; mu.Unlock() })
			for i := range 300 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
			c.Wait()
			if failed != 300 {
				t.Errorf("%d pages failed, want 300", failed)
			}
			wantSpread(t, asked, 100*time.Millisecond)
		})
	})
	t.Run("a retry for each", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Time
			c := colly.NewCollector()
			c.WithTransport(count(&asked))
			proxies := 0
			c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Proxy", fmt.Sprint(proxies)) })
			robots, err := collyrobots.WithRobots(c, kit.Quiet())
			kit.Must(t, err)
			defer robots.Close()
			c.OnError(func(r *colly.Response, _ error) {
				proxies++
				if proxies < 1000 {
					r.Request.Retry()
				}
			})
			c.Visit("http://a.test/0")
			if proxies != 1000 {
				t.Errorf("%d tries, want 1000", proxies)
			}
			wantSpread(t, asked, 100*time.Millisecond)
		})
	})
}

// wantSpread checks that connections after the first 60 are at least gap apart, as for unanswered
// fetches.
func wantSpread(t *testing.T, asked []time.Time, gap time.Duration) {
	t.Helper()
	const atOnce = 60 // ten fetches of up to six connections
	for i := atOnce; i < len(asked); i++ {
		if asked[i].Sub(asked[i-atOnce]) < gap {
			t.Errorf("connection %d of %d was made %v after connection %d", i, len(asked), asked[i].Sub(asked[i-atOnce]), i-atOnce)
			return
		}
	}
}
