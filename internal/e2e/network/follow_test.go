package network

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A follower is a transport that sends requests with an http.Client, which follows redirects. The
// StandardClient of hashicorp/go-retryablehttp does the same.
type follower struct{ client http.Client }

func (f *follower) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return resp, nil
}

// followers returns two transports that follow redirects. Only one of them passes on the context of
// a request, so that the plugin can trace its connections.
func followers(web *robotstest.Web) map[string]http.RoundTripper {
	hidden := kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(context.Background()) // without a trace
		context.AfterFunc(req.Context(), cancel)
		return web.Transport().RoundTrip(req.WithContext(ctx))
	})
	return map[string]http.RoundTripper{
		"seen":   &follower{http.Client{Transport: web.Transport()}},
		"hidden": &follower{http.Client{Transport: hidden}},
	}
}

// TestTransportThatFollowsRedirects checks that a redirect that the transport has followed is
// checked when its response arrives, and that the next request to its host keeps the delay.
func TestTransportThatFollowsRedirects(t *testing.T) {
	kit.ForEachClient(t, testTransportThatFollowsRedirects)
}

func testTransportThatFollowsRedirects(t *testing.T, start kit.Starter) {
	const second = "User-agent: *\nCrawl-delay: 1\n"
	for name, tc := range map[string]struct {
		sites robotstest.Sites
		then  string // the page that is visited next
		page  string // the URL of the first page in OnResponse; "" if it is denied
		gap   map[string]time.Duration
		err   error
	}{
		"within a host": {
			sites: robotstest.Sites{"a.test": {"/robots.txt": second, "/": robotstest.Redirect("/d/1"), "/d/1": robotstest.Page("2"), "/d/2": robotstest.Page()}},
			then:  "http://a.test/d/2", page: "http://a.test/d/1",
		},
		"a chain": {
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/"), "/d/1": robotstest.Page("2"), "/d/2": robotstest.Page()},
				"b.test": {"/robots.txt": second, "/": robotstest.Redirect("http://a.test/d/1")},
			},
			then: "http://a.test/d/2", page: "http://a.test/d/1",
		},
		"to a disallowed page": {
			sites: robotstest.Sites{"a.test": {"/robots.txt": second + "Disallow: /x", "/": robotstest.Redirect("/x"), "/x": robotstest.Page(), "/d/2": robotstest.Page()}},
			then:  "http://a.test/d/2", err: colly.ErrRobotsTxtBlocked,
		},
		"over a disallowed page": {
			sites: robotstest.Sites{"a.test": {
				"/robots.txt": second + "Disallow: /x", "/": robotstest.Redirect("/x"), "/x": robotstest.Redirect("/y"), "/y": robotstest.Page(), "/d/2": robotstest.Page(),
			}},
			then: "http://a.test/d/2", err: colly.ErrRobotsTxtBlocked,
		},
		"to a closed host": {
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/"), "/d/2": robotstest.Page()},
				"b.test": {"/robots.txt": "User-agent: *\nDisallow: /", "/": robotstest.Page()},
			},
			then: "http://a.test/d/2", err: colly.ErrRobotsTxtBlocked,
		},
		"to a host with a delay": {
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/d/1")},
				"b.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 20", "/d/1": robotstest.Page("2"), "/d/2": robotstest.Page()},
			},
			then: "http://b.test/d/2", page: "http://b.test/d/1",
		},
		"to another host's private address": {
			sites: robotstest.Sites{"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://127.0.0.1/"), "/d/2": robotstest.Page()}, "127.0.0.1": robotstest.Pages(1, "")},
			then:  "http://a.test/d/2", err: errPrivateNetwork,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"seen", "hidden"} {
				t.Run(kind, func(t *testing.T) {
					kit.InBubble(t, tc.sites, func(t *testing.T, web *robotstest.Web) {
						c := start(t, web, nil)
						c.Impolite = true // the redirect is sent before it is checked
						c.WithTransport(followers(web)[kind])
						c.OnHTML("a", func(e *colly.HTMLElement) {
							if got := e.Request.AbsoluteURL(e.Attr("href")); got != tc.then {
								t.Errorf("a link on the page leads to %s, want %s", got, tc.then)
							}
						})
						err := c.Visit("http://a.test/")
						private := (*report.PrivateNetworkError)(nil)
						if tc.err == errPrivateNetwork && !errors.As(err, &private) || tc.err != errPrivateNetwork && !errors.Is(err, tc.err) {
							t.Errorf("Visit returned %v, want %v", err, tc.err)
						}
						if got := strings.Join(c.Pages, " "); got != tc.page {
							t.Errorf("OnResponse got %q, want %q", got, tc.page)
						}
						before := len(web.Log(""))
						kit.Must(t, c.Visit(tc.then))
						log := web.Log("")
						next := log[before]
						for _, r := range log[:before] {
							delay := time.Second
							if next.Host == "b.test" {
								delay = 20 * time.Second
							}
							if gap := next.Time.Sub(r.Time); r.Host == next.Host && gap < delay {
								t.Errorf("request for %s %v after %s, want at least %v:\n%s", next.URI, gap, r.URI, delay, log)
							}
						}
						if b, asked := tc.sites["b.test"]; asked && b != nil && !strings.Contains(kit.URIsOf(web.Log("b.test")), "/robots.txt") {
							t.Error("the robots.txt of b.test was not requested")
						}
						if n := strings.Count(c.Logged.String(), "the transport follows redirects by itself"); n != 1 {
							t.Errorf("got %d warnings, want 1:\n%s", n, c.Logged)
						}
						if len(c.Errs) != len(c.Denied) || (len(c.Errs) == 1) != (tc.err != nil) {
							t.Errorf("OnError got %v, OnDenied %v", c.Errs, c.Denied)
						}
					})
				})
			}
		})
	}
}

var errPrivateNetwork = errors.New("a *PrivateNetworkError")

// TestTransportThatRewritesURLs has a transport that requests another URL than the one of its
// request, and follows no redirects. The result must be the same as without the plugin.
func TestTransportThatRewritesURLs(t *testing.T) { kit.ForEachClient(t, testTransportThatRewritesURLs) }

func testTransportThatRewritesURLs(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nCrawl-delay: 1")}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		next := web.Transport()
		c.WithTransport(kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
			other := req.Clone(req.Context())
			other.URL.Path = strings.Replace(req.URL.Path, "/0", "/1", 1)
			return next.RoundTrip(other)
		}))
		kit.Must(t, c.Visit("http://a.test/0"))
		if got := strings.Join(c.Pages, " "); got != "http://a.test/1" {
			t.Errorf("got pages %s", got)
		}
		if c.Logged.Len() > 0 {
			t.Errorf("got log %s, want none", c.Logged)
		}
	})
}

// TestTransportThatFollowsRedirectsUnderLease checks that, under SharedPace, a redirect that the
// transport has followed needs a lease, and that the page must end before the lease expires.
func TestTransportThatFollowsRedirectsUnderLease(t *testing.T) {
	kit.ForEachClient(t, testTransportThatFollowsRedirectsUnderLease)
}

func testTransportThatFollowsRedirectsUnderLease(t *testing.T, start kit.Starter) {
	endless := func(out http.ResponseWriter, r *http.Request) {
		out.Write([]byte(strings.Repeat("x", 10000)))
		out.(http.Flusher).Flush()
		kit.Hang(out, r)
	}
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": "", "/": robotstest.Redirect("http://b.test/")},
		"b.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1", "/": http.HandlerFunc(endless)},
	}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.SharedPace(kit.Shared(t)))
		c.Impolite = true
		c.WithTransport(followers(web)["hidden"])
		c.SetRequestTimeout(0)
		began := time.Now()
		err := c.Visit("http://a.test/")
		if took := time.Since(began); !errors.Is(err, collyrobots.ErrLeaseEnded) || took > time.Minute {
			t.Errorf("Visit returned %v after %v, want ErrLeaseEnded", err, took)
		}
	})
}
