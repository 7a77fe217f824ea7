package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// What a redirect may lead to, and when each request comes. No hook of Colly sees any of these hops.
func TestRedirectHopsKeepThePace(t *testing.T) {
	const second = "User-agent: *\nCrawl-delay: 1\n"
	cases := []struct {
		name  string
		sites map[string]site
		want  map[string]string // the schedule, by host
		err   error             // of Visit
	}{
		{
			name:  "chain within a host",
			sites: map[string]site{"a.test": {"/robots.txt": second, "/": redirect("/1"), "/1": redirect("/2"), "/2": redirect("/3"), "/3": page()}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /1, 3s /2, 4s /3"},
		},
		{
			name: "http to https: two robots.txt, one pace",
			sites: map[string]site{"a.test": {
				"/robots.txt": second, "/": redirect("https://a.test/s"), "/s": redirect("http://a.test/t"), "/t": page(),
			}},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /robots.txt, 3s /s, 4s /t"},
		},
		{
			name: "to a host not seen before",
			sites: map[string]site{
				"a.test": {"/robots.txt": second, "/": redirect("http://b.test/")},
				"b.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "/": page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt, 6s /"},
		},
		{
			name: "there and back",
			sites: map[string]site{
				"a.test": {"/robots.txt": second, "/": redirect("http://b.test/"), "/end": page()},
				"b.test": {"/robots.txt": "", "/": redirect("http://a.test/end")},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /end", "b.test": "1s /robots.txt, 1s /"},
		},
		{
			name: "to a host written otherwise",
			sites: map[string]site{
				"a.test": {"/robots.txt": second, "/": redirect("HTTP://B.Test:80/x")},
				"b.test": {"/robots.txt": second, "/x": redirect("http://b.test/y"), "/y": page()},
			},
			want: map[string]string{"b.test": "1s /robots.txt, 2s /x, 3s /y"},
		},
		{
			name:  "to a disallowed page",
			sites: map[string]site{"a.test": {"/robots.txt": second + "Disallow: /x", "/": redirect("/1"), "/1": redirect("/x"), "/x": page()}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /1"},
			err:   colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a disallowed page of a host not seen before",
			sites: map[string]site{
				"a.test": {"/robots.txt": second, "/": redirect("http://b.test/x")},
				"b.test": {"/robots.txt": "User-agent: ExampleBot\nDisallow: /x", "/x": page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a page that only https disallows",
			sites: map[string]site{"a.test": {
				"/robots.txt": http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
					if r.TLS != nil {
						fmt.Fprint(out, "User-agent: *\nDisallow: /x")
					}
				}),
				"/": redirect("/x"), "/x": redirect("https://a.test/x"),
			}},
			want: map[string]string{"a.test": "0s /robots.txt, 0s /, 0s /x, 0s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name: "to a host whose robots.txt cannot be read",
			sites: map[string]site{
				"a.test": {"/robots.txt": second, "/": redirect("http://b.test/x")},
				"b.test": {"/robots.txt": 503, "/x": page()},
			},
			want: map[string]string{"a.test": "0s /robots.txt, 1s /", "b.test": "1s /robots.txt"},
			err:  colly.ErrRobotsTxtBlocked,
		},
		{
			name:  "to robots.txt itself",
			sites: map[string]site{"a.test": {"/robots.txt": second, "/": redirect("/robots.txt")}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /robots.txt"},
		},
		{
			name:  "in a circle, which Colly ends",
			sites: map[string]site{"a.test": {"/robots.txt": second, "/": redirect("/?1"), "/?1": redirect("/?1")}},
			want:  map[string]string{"a.test": "0s /robots.txt, 1s /, 2s /?1"},
			err:   errAny,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			onWire(t, tc.sites, func(t *testing.T, w *wire) {
				c := w.start(t, nil)
				err := c.Visit("http://a.test/")
				switch {
				case tc.err == errAny:
					if err == nil {
						t.Error("Visit: no error")
					}
				case !errors.Is(err, tc.err):
					t.Errorf("Visit: %v, want %v", err, tc.err)
				}
				for host, want := range tc.want {
					w.wantSchedule(t, host, want)
				}
				if denied := errors.Is(tc.err, colly.ErrRobotsTxtBlocked); denied != (len(c.denied) == 1) {
					t.Errorf("OnDenied was told %v", c.denied)
				}
			})
		})
	}
}

// Errors of Visit that are Colly's and without a value of their own.
var (
	errAny     = errors.New("any")
	errVisited = errors.New("visited before")
)

// A hop of one page and the pages in line share the host's starts; nothing is lost.
func TestHopsAndPagesShareThePace(t *testing.T) {
	a := pages(10, "User-agent: *\nCrawl-delay: 2")
	for i := range 5 {
		a[fmt.Sprint("/", i)] = redirect(fmt.Sprint("/hop/", i))
		a[fmt.Sprint("/hop/", i)] = redirect(fmt.Sprint("/end/", i))
		a[fmt.Sprint("/end/", i)] = page()
	}
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		c := w.start(t, async).follow()
		c.Visit("http://a.test/")
		c.Wait()
		w.wantPace(t, "a.test", 2*time.Second, 2+10+2*5)
		if len(c.pages) != 11 || len(c.errs) > 0 {
			t.Errorf("%d pages, want 11; %v", len(c.pages), c.errs)
		}
	})
}

// The wait before a hop does not count against the collector's timeout, wherever that was set; a server that hangs does.
func TestTheRequestTimeoutIsForTheServer(t *testing.T) {
	const timeout = 50 * time.Millisecond
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	halfway := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, "<p>")
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, set := range map[string]struct {
		before, after func(w *wire, c *colly.Collector)
	}{
		"SetRequestTimeout before Attach": {before: func(_ *wire, c *colly.Collector) { c.SetRequestTimeout(timeout) }},
		"SetRequestTimeout after Attach":  {after: func(_ *wire, c *colly.Collector) { c.SetRequestTimeout(timeout) }},
		"SetClient before Attach":         {before: func(w *wire, c *colly.Collector) { c.SetClient(&http.Client{Transport: w.client, Timeout: timeout}) }},
		"SetClient after Attach":          {after: func(w *wire, c *colly.Collector) { c.SetClient(&http.Client{Transport: w.client, Timeout: timeout}) }},
		"SetRequestTimeout in the crawl": {after: func(_ *wire, c *colly.Collector) {
			c.OnResponse(func(*colly.Response) { c.SetRequestTimeout(timeout) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 30", "/": page(), "/1": redirect("/2"), "/2": page(), "/hang": hang, "/3": redirect("/hang?"),
				"/hang?": hang, "/half": halfway, "/4": page(),
			}}, func(t *testing.T, w *wire) {
				inner := colly.NewCollector()
				inner.WithTransport(w.client)
				if set.before != nil {
					set.before(w, inner)
				}
				if _, err := collyrobots.WithRobots(inner); err != nil {
					t.Fatal(err)
				}
				if set.after != nil {
					set.after(w, inner)
				}
				failedAfter := map[string]time.Duration{}
				for _, path := range []string{"/", "/1", "/hang", "/3", "/half", "/4"} {
					if err := inner.Visit("http://a.test" + path); err != nil {
						hits := w.hits("a.test")
						failedAfter[path] = time.Since(hits[len(hits)-1].at)
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s: %v, want a timeout", path, err)
						}
					}
				}
				w.wantPace(t, "a.test", 30*time.Second, 9)
				if want := map[string]time.Duration{"/hang": timeout, "/3": timeout, "/half": timeout}; fmt.Sprint(failedAfter) != fmt.Sprint(want) {
					t.Errorf("failed so long after being asked: %v, want %v", failedAfter, want)
				}
			})
		})
	}
}

// A hop holds a LimitRule slot while it waits. It gives up after a minute, and says so; its host is not asked sooner for that.
func TestAHopThatWouldWaitTooLongIsReported(t *testing.T) {
	onWire(t, map[string]site{
		"a.test":    {"/robots.txt": "User-agent: *\nCrawl-delay: 300", "/": redirect("/1"), "/1": page(), "/2": page()},
		"fast.test": pages(5, noDenys),
	}, func(t *testing.T, w *wire) {
		c := w.start(t, async).follow()
		limited(t, c, &colly.LimitRule{DomainGlob: "*"})
		c.Visit("http://a.test/")
		time.Sleep(time.Second)
		c.Visit("http://a.test/2")
		time.Sleep(300 * time.Second) // the hop holds the only slot
		c.Visit("http://fast.test/")
		c.Wait()
		w.wantSchedule(t, "a.test", "0s /robots.txt, 5m0s /, 10m0s /2")
		if err := c.denied["http://a.test/"]; !errors.Is(err, collyrobots.ErrHopWait) || !errors.Is(c.errs["http://a.test/"], collyrobots.ErrHopWait) {
			t.Errorf("OnDenied was told %v, OnError %v; want ErrHopWait", err, c.errs)
		}
		fast := w.hits("fast.test")
		if last := fast[len(fast)-1].at.Sub(w.began); len(fast) != 7 || last > 6*time.Minute {
			t.Errorf("fast.test was asked %d times, the last time at %v; want 7 by 6m", len(fast), last)
		}
	})
}

// 307 and 308 send the body once more, 302 and 303 go on with a GET.
func TestPostsAndTheirRedirects(t *testing.T) {
	moved := func(code int, to string) http.HandlerFunc { return http.RedirectHandler(to, code).ServeHTTP }
	bodies := make(chan string, 10)
	form := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		bodies <- r.Method + " " + r.RequestURI + " " + r.PostFormValue("q")
	})
	onWire(t, map[string]site{
		"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\nDisallow: /closed", "/form": form, "/307": moved(307, "/form"), "/308": moved(308, "http://b.test/form"),
			"/303": moved(303, "/form"), "/to-closed": moved(307, "/closed"), "/closed": form},
		"b.test": {"/robots.txt": "", "/form": form},
	}, func(t *testing.T, w *wire) {
		c := w.start(t, []colly.CollectorOption{colly.AllowURLRevisit()})
		for _, path := range []string{"/form", "/307", "/308", "/303", "/closed", "/to-closed"} {
			err := c.Post("http://a.test"+path, map[string]string{"q": "x"})
			if refused := path == "/to-closed"; errors.Is(err, colly.ErrRobotsTxtBlocked) != refused {
				t.Errorf("%s: %v", path, err)
			}
		}
		w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /form, 2s /307, 3s /form, 4s /308, 5s /303, 6s /form, 7s /to-closed")
		close(bodies)
		var got []string
		for b := range bodies {
			got = append(got, b)
		}
		if got, want := strings.Join(got, ", "), "POST /form x, POST /form x, POST /form x, GET /form "; got != want {
			t.Errorf("forms: %s, want %s", got, want)
		}
	})
}

// The user's redirect handler, and Colly's visited store and filters, decide about hops as ever.
func TestAUsersRedirectHandlerStays(t *testing.T) {
	for _, when := range []string{"before Attach", "after Attach"} {
		t.Run(when, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": {
				"/robots.txt": redirect("/moved-robots.txt"), "/moved-robots.txt": "User-agent: *\nCrawl-delay: 1\nDisallow: /closed",
				"/": redirect("/1"), "/1": page(), "/2": redirect("/stop"), "/stop": page(), "/3": redirect("/closed"), "/closed": page(),
				"/4": redirect("/filtered"), "/filtered": page(), "/5": redirect("/1"),
			}}, func(t *testing.T, w *wire) {
				stop := errors.New("stop")
				var seen []string
				handler := func(req *http.Request, via []*http.Request) error {
					seen = append(seen, req.URL.Path)
					if req.URL.Path == "/stop" {
						return stop
					}
					return nil
				}
				c := colly.NewCollector()
				c.WithTransport(w.client)
				c.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile("filtered")}
				if when == "before Attach" {
					c.SetRedirectHandler(handler)
				}
				if _, err := collyrobots.WithRobots(c); err != nil {
					t.Fatal(err)
				}
				if when == "after Attach" {
					c.SetRedirectHandler(handler)
				}
				for _, visit := range []struct {
					path string
					err  error
				}{
					{"/", nil}, {"/2", stop}, {"/3", colly.ErrRobotsTxtBlocked}, {"/4", colly.ErrForbiddenURL}, {"/5", errVisited},
				} {
					err := c.Visit("http://a.test" + visit.path)
					if visited := (*colly.AlreadyVisitedError)(nil); errors.As(err, &visited) {
						err = errVisited
					}
					if !errors.Is(err, visit.err) {
						t.Errorf("%s: %v, want %v", visit.path, err, visit.err)
					}
				}
				w.wantSchedule(t, "a.test", "0s /robots.txt, 0s /moved-robots.txt, 1s /, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5")
				for _, path := range seen {
					if strings.Contains(path, "robots") {
						t.Errorf("the handler was shown %s, which is no page", path)
					}
				}
			})
		})
	}
}
