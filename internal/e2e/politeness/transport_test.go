package politeness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestRedirectsKeepDelay checks which redirects are followed, and when each request is sent. Colly
// calls no hook for redirects.
func TestRedirectsKeepDelay(t *testing.T) { kit.ForEachClient(t, testRedirectsKeepDelay) }

func testRedirectsKeepDelay(t *testing.T, start kit.Starter) {
	const second = "User-agent: *\nCrawl-delay: 1\n"
	cases := []struct {
		name  string
		sites robotstest.Sites
		want  map[string]string // the schedule, by host
		err   error             // of Visit
	}{
		{
			name:  "chain within a host",
			sites: robotstest.Sites{"a.test": {"/robots.txt": second, "/": robotstest.Redirect("/1"), "/1": robotstest.Redirect("/2"), "/2": robotstest.Redirect("/3"), "/3": robotstest.Page()}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /1, 3s /2, 4s /3"},
		},
		{
			name: "http to https: two robots.txt, one pace",
			sites: robotstest.Sites{"a.test": {
				"/robots.txt": second, "/": robotstest.Redirect("https://a.test/s"), "/s": robotstest.Redirect("http://a.test/t"), "/t": robotstest.Page(),
			}},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /robots.txt, 3s /s, 4s /t"},
		},
		{
			name: "to a new host",
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/")},
				"b.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "/": robotstest.Page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt, 6s /"},
		},
		{
			name: "to another host and back",
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/"), "/end": robotstest.Page()},
				"b.test": {"/robots.txt": "", "/": robotstest.Redirect("http://a.test/end")},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /end", "b.test": "1s /robots.txt, 1s /"},
		},
		{
			name: "to a host in another spelling",
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("HTTP://B.Test:80/x")},
				"b.test": {"/robots.txt": second, "/x": robotstest.Redirect("http://b.test/y"), "/y": robotstest.Page()},
			},
			want: map[string]string{"b.test": "1s /robots.txt, 2s /x, 3s /y"},
		},
		{
			name:  "to a disallowed page",
			sites: robotstest.Sites{"a.test": {"/robots.txt": second + "Disallow: /x", "/": robotstest.Redirect("/1"), "/1": robotstest.Redirect("/x"), "/x": robotstest.Page()}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /1"},
			err:   colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a disallowed page of a new host",
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/x")},
				"b.test": {"/robots.txt": "User-agent: ExampleBot\nDisallow: /x", "/x": robotstest.Page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a page that only https disallows",
			sites: robotstest.Sites{"a.test": {
				"/robots.txt": http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
					if r.TLS != nil {
						fmt.Fprint(out, "User-agent: *\nDisallow: /x")
					}
				}),
				"/": robotstest.Redirect("/x"), "/x": robotstest.Redirect("https://a.test/x"),
			}},
			want: map[string]string{"a.test": "0s /robots.txt, 0s /, 0s /x, 0s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a host whose robots.txt cannot be read",
			sites: robotstest.Sites{
				"a.test": {"/robots.txt": second, "/": robotstest.Redirect("http://b.test/x")},
				"b.test": {"/robots.txt": 503, "/x": robotstest.Page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name:  "to robots.txt itself",
			sites: robotstest.Sites{"a.test": {"/robots.txt": second, "/": robotstest.Redirect("/robots.txt")}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /robots.txt"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			kit.InBubble(t, tc.sites, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil)
				err := c.Visit("http://a.test/")
				if !errors.Is(err, tc.err) {
					t.Errorf("Visit returned %v, want %v", err, tc.err)
				}
				for host, want := range tc.want {
					kit.WantSchedule(t, web, host, want)
				}
				if denied := errors.Is(tc.err, colly.ErrRobotsTxtBlocked); denied != (len(c.Denied) == 1) {
					t.Errorf("OnDenied got %v", c.Denied)
				}
			})
		})
	}
}

// TestTimeoutDoesNotIncludeWait checks that the wait before a redirect does not count against the
// collector's timeout, wherever that was set, and that the time of a server that hangs does.
func TestTimeoutDoesNotIncludeWait(t *testing.T) {
	const timeout = 50 * time.Millisecond
	halfway := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, "<p>")
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, set := range map[string]struct {
		before, after func(web *robotstest.Web, c *colly.Collector)
	}{
		"SetRequestTimeout before Attach": {before: func(_ *robotstest.Web, c *colly.Collector) { c.SetRequestTimeout(timeout) }},
		"SetRequestTimeout after Attach":  {after: func(_ *robotstest.Web, c *colly.Collector) { c.SetRequestTimeout(timeout) }},
		"SetClient before Attach": {before: func(web *robotstest.Web, c *colly.Collector) {
			c.SetClient(&http.Client{Transport: web.Transport(), Timeout: timeout})
		}},
		"SetClient after Attach": {after: func(web *robotstest.Web, c *colly.Collector) {
			c.SetClient(&http.Client{Transport: web.Transport(), Timeout: timeout})
		}},
		"SetRequestTimeout in the crawl": {after: func(_ *robotstest.Web, c *colly.Collector) {
			c.OnResponse(func(*colly.Response) { c.SetRequestTimeout(timeout) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 30", "/": robotstest.Page(), "/1": robotstest.Redirect("/2"), "/2": robotstest.Page(), "/hang": kit.Hang, "/3": robotstest.Redirect("/hang?"),
				"/hang?": kit.Hang, "/half": halfway, "/4": robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				inner := colly.NewCollector()
				inner.WithTransport(web.Transport())
				if set.before != nil {
					set.before(web, inner)
				}
				if _, err := collyrobots.WithRobots(inner); err != nil {
					t.Fatal(err)
				}
				if set.after != nil {
					set.after(web, inner)
				}
				failedAfter := map[string]time.Duration{}
				for _, path := range []string{"/", "/1", "/hang", "/3", "/half", "/4"} {
					if err := inner.Visit("http://a.test" + path); err != nil {
						log := web.Log("a.test")
						failedAfter[path] = time.Since(log[len(log)-1].Time)
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s: got %v, want a timeout", path, err)
						}
					}
				}
				kit.WantPace(t, web, "a.test", 30*time.Second, 9)
				if want := map[string]time.Duration{"/hang": timeout, "/3": timeout, "/half": timeout}; fmt.Sprint(failedAfter) != fmt.Sprint(want) {
					t.Errorf("got times from the request to the failure %v, want %v", failedAfter, want)
				}
			})
		})
	}
}

// TestUnattachedCloneObeysRobotsTxt checks that a clone by Colly's own Clone obeys robots.txt and
// the delay, although it has no callbacks of the plugin, because it shares the client of the
// collector.
func TestUnattachedCloneObeysRobotsTxt(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\nCrawl-delay: 20")}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		clone := c.Collector.Collector.Clone()
		if err := clone.Visit("http://a.test/1"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit of a disallowed page returned %v", err)
		}
		clone.Visit("http://a.test/2")
		c.Visit("http://a.test/")
		kit.WantNoSooner(t, web, "a.test", 20*time.Second, 3)
	})
}
