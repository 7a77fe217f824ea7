package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// times returns a handler that answers with each status in turn. 0 resets the connection, and -1 takes
// longer than a client waits. After the last one it answers 200.
func times(statuses ...int) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		switch {
		case i >= len(statuses):
			io.WriteString(w, "fine")
		case statuses[i] == 0:
			kit.Drop(w, r)
		case statuses[i] < 0:
			kit.Hang(w, r)
		default:
			w.WriteHeader(statuses[i])
		}
	}
}

// closing returns a handler that closes its connection, so that the next request cannot be repeated by
// net/http.
func closing(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		io.WriteString(w, text)
	}
}

// always is like times for a host that never recovers.
func always(status int) http.HandlerFunc {
	return times(slices.Repeat([]int{status}, 100)...)
}

// TestRetry checks how often a page is requested, what the spider gets, and what Stats says.
func TestRetry(t *testing.T) {
	for name, test := range map[string]struct {
		page    http.HandlerFunc
		retries collyrobots.Retries
		more    []collyrobots.Option
		post    bool
		sent    int    // requests for the page
		got     string // what the spider gets
		givenUp int
	}{
		"500 once":                   {page: times(500), sent: 2, got: "200"},
		"all statuses":               {page: times(408, 425, 429, 500, 502, 503, 504), retries: collyrobots.Retries{Max: 7}, sent: 8, got: "200"},
		"too often":                  {page: always(500), sent: 4, got: "500", givenUp: 1},
		"Max 1":                      {page: always(502), retries: collyrobots.Retries{Max: 1}, sent: 2, got: "502", givenUp: 1},
		"404":                        {page: always(404), sent: 1, got: "404"},
		"501":                        {page: always(501), sent: 1, got: "501"},
		"a status of its own":        {page: times(418), retries: collyrobots.Retries{Statuses: []int{418}}, sent: 2, got: "200"},
		"no status":                  {page: times(500), retries: collyrobots.Retries{Statuses: []int{}}, sent: 1, got: "500"},
		"a reset":                    {page: times(0), sent: 2, got: "200"},
		"resets, too often":          {page: always(0), sent: 4, got: "error", givenUp: 1},
		"a timeout":                  {page: times(-1), sent: 2, got: "200"},
		"a reset, then 500":          {page: times(0, 500), sent: 3, got: "200"},
		"no errors":                  {page: times(0), retries: collyrobots.Retries{Errors: func(error) bool { return false }}, sent: 1, got: "error"},
		"POST":                       {page: times(500), post: true, sent: 1, got: "500"},
		"POST, a reset":              {page: times(0), post: true, sent: 1, got: "error"},
		"POST, any method":           {page: times(500, 0), post: true, retries: collyrobots.Retries{AnyMethod: true}, sent: 3, got: "200"},
		"MaxPagesPerHost counts one": {page: times(0, 500), more: []collyrobots.Option{collyrobots.MaxPagesPerHost(1)}, sent: 3, got: "200"},
		"MaxPages counts one":        {page: times(0, 500), more: []collyrobots.Option{collyrobots.MaxPages(1)}, sent: 3, got: "200"},
		"StopAfterRefusals stops it": {page: always(403), retries: collyrobots.Retries{Statuses: []int{403}}, more: []collyrobots.Option{collyrobots.StopAfterRefusals(2)}, sent: 2, got: "denied"},
		"Retry after RetryThrottled": {page: times(500), more: []collyrobots.Option{collyrobots.RetryThrottled(1)}, sent: 1, got: "500"},
		"MaxInFlightPerHost":         {page: times(0, 500), more: []collyrobots.Option{collyrobots.MaxInFlightPerHost(1)}, sent: 3, got: "200"},
		"MaxRate":                    {page: times(0, 500), more: []collyrobots.Option{collyrobots.MaxRate(1, 1)}, sent: 3, got: "200"},
		"SharedPace":                 {page: times(0, 500), sent: 3, got: "200"},
		"Frontier":                   {page: times(0, 500), sent: 3, got: "200"},
		"Polite":                     {page: times(0, 500), more: []collyrobots.Option{}, sent: 3, got: "200"},
		"a dry run":                  {page: times(500), more: []collyrobots.Option{collyrobots.DryRun(true)}, sent: 2, got: "200"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": closing(kit.NoDenys), "/1": test.page}}, func(t *testing.T, web *robotstest.Web) {
				heard := kit.Hear(report.EventAnswered)
				opts := []collyrobots.Option{heard.On(), collyrobots.Retry(test.retries)}
				switch name {
				case "SharedPace":
					opts = append(opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					opts = append(opts, collyrobots.Frontier(kit.NewMemoryStore()))
				case "Polite":
					opts = append([]collyrobots.Option{collyrobots.Polite()}, opts...)
				}
				c := kit.Start(t, web, kit.Async, append(opts, test.more...)...)
				c.Impolite = name == "a dry run"
				var got []string
				c.OnResponse(func(r *colly.Response) { c.Note(func() { got = append(got, fmt.Sprint(r.StatusCode)) }) })
				c.OnError(func(r *colly.Response, err error) {
					kind := fmt.Sprint(r.StatusCode)
					switch {
					case kit.IsDenial(err):
						kind = "denied"
					case r.StatusCode == 0:
						kind = "error"
					}
					c.Note(func() { got = append(got, kind) })
				})
				began := time.Now()
				if test.post {
					c.Post("http://a.test/1", map[string]string{"a": "b"})
				} else {
					c.Visit("http://a.test/1")
				}
				c.Wait()
				if n := kit.CountURI(web, "/1"); n != test.sent {
					t.Errorf("%d requests, want %d: %v", n, test.sent, web.Log(""))
				}
				if strings.Join(got, " ") != test.got {
					t.Errorf("the spider got %q, want %q", got, test.got)
				}
				s := kit.HostStats(t, c.Robots, "a.test")
				failed := 0
				if test.got != "200" && test.got != "denied" {
					failed = 1
				}
				if s.Retried != test.sent-1 && test.got != "denied" || s.GivenUp != test.givenUp || s.Failed != failed {
					t.Errorf("Stats: %d repeated, %d given up, %d failed: %+v", s.Retried, s.GivenUp, s.Failed, s)
				}
				if pages := 1; test.got != "error" && test.got != "denied" && s.Pages != pages {
					t.Errorf("Stats: %d pages", s.Pages)
				}
				if least := time.Duration(1<<(test.sent-1)-1) * time.Second; test.sent > 1 && time.Since(began) < least {
					t.Errorf("the repetitions took %v, want at least %v", time.Since(began), least)
				}
				more := 0
				for _, e := range heard.Wait() {
					if e.More {
						more++
					}
				}
				if more != test.sent-1 && test.got != "denied" {
					t.Errorf("%d answered events have More, want %d", more, test.sent-1)
				}
			})
		})
	}
}

// TestRetryWaits checks the times of the repetitions: a back-off that doubles, with a share of up to a
// half, and the delay of the host if that is longer.
func TestRetryWaits(t *testing.T) {
	for name, test := range map[string]struct {
		robots string
		wait   time.Duration
		first  time.Duration // the least gap before the first repetition
	}{
		"a second":     {kit.NoDenys, 0, time.Second},
		"a minute":     {kit.NoDenys, time.Minute, time.Minute},
		"five minutes": {kit.NoDenys, 4 * time.Minute, 4 * time.Minute},
		"Crawl-delay":  {"User-agent: *\nCrawl-delay: 20\n", 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": test.robots, "/1": always(500)}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.Retry(collyrobots.Retries{Wait: test.wait}))
				c.Visit("http://a.test/1")
				log := web.Log("a.test")
				least := test.first
				for i := 2; i < len(log); i++ {
					gap := log[i].Time.Sub(log[i-1].Time)
					if gap < least || gap > least+least/2 {
						t.Errorf("the gap before repetition %d is %v, want %v and up to a half more", i-1, gap, least)
					}
					if test.robots == kit.NoDenys {
						least = min(2*least, 5*time.Minute)
					}
				}
			})
		})
	}
}

// TestRetryOfSpider repeats a page with Request.Retry, which the option then does not repeat again.
func TestRetryOfSpider(t *testing.T) {
	retry := collyrobots.Retry(collyrobots.Retries{})
	for name, option := range map[string]collyrobots.Option{
		"for all hosts": retry,
		"ForHosts":      collyrobots.ForHosts("a.test", retry),
		"HostOptions":   collyrobots.HostOptions(func(string) []collyrobots.HostOption { return []collyrobots.HostOption{retry} }),
	} {
		t.Run(name, func(t *testing.T) { retryOfSpider(t, option) })
	}
}

func retryOfSpider(t *testing.T, option collyrobots.Option) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/1": always(500), "/2": times(500)}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, option)
		left := 5
		c.OnError(func(r *colly.Response, _ error) {
			if left > 0 {
				left--
				r.Request.Retry()
			}
		})
		c.Visit("http://a.test/1")
		if n := kit.CountURI(web, "/1"); n != 4+5 {
			t.Errorf("%d requests, want 9", n)
		}
		c.Visit("http://a.test/2") // another page with the callbacks of the spider
		if n := kit.CountURI(web, "/2"); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

// TestRetryOfClients repeats the requests of an http.Client, whose body is read again, within its time
// limit. A turn of Acquire is not repeated.
func TestRetryOfClients(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/1": times(0, 503, 500), "/2": always(500), "/3": always(500), "/4": times(0), "/5": times(0)}}, func(t *testing.T, web *robotstest.Web) {
		robots, client := kit.NewRobots(t, web, collyrobots.Retry(collyrobots.Retries{AnyMethod: true}))
		_, err := kit.Get(client, "http://a.test/1")
		kit.Must(t, err)
		client.Timeout = 2 * time.Second
		began := time.Now()
		resp, err := client.Get("http://a.test/2")
		if err != nil || resp.StatusCode != 500 || time.Since(began) >= client.Timeout {
			t.Errorf("got %v, %v after %v", resp, err, time.Since(began))
		} else {
			resp.Body.Close()
		}
		client.Timeout = 0
		once, err := http.NewRequest(http.MethodPost, "http://a.test/4", io.MultiReader(strings.NewReader("a"), strings.NewReader("b")))
		kit.Must(t, err)
		if _, err := client.Do(once); err == nil || kit.CountURI(web, "/4") != 1 {
			t.Errorf("a body that cannot be read twice: %v, %d requests", err, kit.CountURI(web, "/4"))
		}
		resp, err = client.Post("http://a.test/5", "text/plain", strings.NewReader("body"))
		kit.Must(t, err)
		resp.Body.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		if _, err := client.Do(kit.NewRequest(t, "http://a.test/3").WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ends during the back-off: %v", err)
		}
		if n := kit.HostStats(t, robots, "a.test").GivenUp; n != 1 {
			t.Errorf("%d pages given up, want that of the time limit", n)
		}
	})
}

// TestRetryEnds closes the plugin and changes robots.txt during a back-off.
func TestRetryEnds(t *testing.T) {
	for _, ends := range []string{"Close", "robots.txt"} {
		t.Run(ends, func(t *testing.T) {
			var denies atomic.Bool
			robots := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if denies.Load() {
					io.WriteString(w, "User-agent: *\nDisallow: /\n")
				}
			}
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(robots), "/1": always(500)}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, collyrobots.Retry(collyrobots.Retries{Wait: 4 * time.Minute}))
				var got error
				c.OnError(func(_ *colly.Response, err error) { c.Note(func() { got = err }) })
				c.Visit("http://a.test/1")
				time.Sleep(time.Minute)
				began := time.Now()
				if ends == "Close" {
					kit.Must(t, c.Robots.Close())
				}
				denies.Store(true)
				c.Wait()
				if ends == "Close" && (!errors.Is(got, collyrobots.ErrClosed) || time.Since(began) != 0) {
					t.Errorf("got %v after %v", got, time.Since(began))
				}
				if ends == "robots.txt" && !errors.Is(got, colly.ErrRobotsTxtBlocked) {
					t.Errorf("got %v", got)
				}
				if n := kit.CountURI(web, "/1"); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// TestRetryOfAnHour requests twenty pages of a host that fails for an hour, and twenty of another host.
// The other host is not held up, and each page ends once.
func TestRetryOfAnHour(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "*": always(503)},
		"b.test": robotstest.Pages(20, kit.NoDenys),
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.Retry(collyrobots.Retries{}), collyrobots.MinDelay(time.Second))
		ended := 0
		c.OnScraped(func(*colly.Response) { c.Note(func() { ended++ }) })
		c.OnError(func(*colly.Response, error) { c.Note(func() { ended++ }) })
		for i := range 20 {
			c.Visit(fmt.Sprintf("http://a.test/%d", i))
			c.Visit(fmt.Sprintf("http://b.test/%d", i))
		}
		synctest.Wait()
		c.Wait()
		if ended != 40 {
			t.Errorf("%d pages have ended, want 40", ended)
		}
		if n := len(web.Log("b.test")); n != 21 {
			t.Errorf("b.test got %d requests", n)
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Ended != report.EndingThrottled || s.GivenUp != 20 {
			t.Errorf("a.test: %+v", s)
		}
		if s := kit.HostStats(t, c.Robots, "b.test"); s.Ended != report.EndingDone {
			t.Errorf("b.test: %+v", s)
		}
	})
}

// TestRetryOverAKill kills the process during the back-off of a page. The next run with the same
// urlstore.Store requests it.
func TestRetryOverAKill(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/1": times(500)}}, func(t *testing.T, web *robotstest.Web) {
		pages := kit.NewMemoryStore()
		for range 2 {
			r := &kit.Run{T: t, Web: web}
			r.Plug(collyrobots.Frontier(pages), collyrobots.Retry(collyrobots.Retries{Wait: time.Hour}))
			c := r.New(colly.Async())
			kill := time.AfterFunc(time.Minute, func() {
				pages.Close()
				r.Plugin.Close()
			})
			c.Visit("http://a.test/1")
			c.Wait()
			kill.Stop()
			r.Plugin.Close()
			pages = pages.Reopen()
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 0s /1, 1m0s /1")
		kit.WantStates(t, pages, "done: /1")
	})
}

// TestRetryOfRedirects repeats a redirect that fails, and not the page that leads to it. A turn of
// Acquire is not repeated.
func TestRetryOfRedirects(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/1": robotstest.Redirect("http://b.test/2"), "/turn": always(500)},
		"b.test": {"/robots.txt": kit.NoDenys, "/2": times(500, 503)},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.Retry(collyrobots.Retries{}))
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /1")
		kit.WantURIs(t, web, "b.test", "/robots.txt /2 /2 /2")
		turn, err := c.Robots.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/turn"))
		kit.Must(t, err)
		turn.Answered(http.StatusInternalServerError, nil)
		turn.End()
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Retried != 0 || s.GivenUp != 0 {
			t.Errorf("a turn: %+v", s)
		}
	})
}

// TestRetryOfRefusals resets each connection. The attempts count for StopAfterRefusals, which ends the
// repetitions.
func TestRetryOfRefusals(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.Retry(collyrobots.Retries{Max: 9}), collyrobots.StopAfterRefusals(3))
		transport := web.Transport()
		sent := 0
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/robots.txt" {
				return transport.RoundTrip(r)
			}
			sent++
			return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
		}))
		err := c.Visit("http://a.test/1")
		if !kit.IsDenial(err) || sent != 3 {
			t.Errorf("got %v after %d requests", err, sent)
		}
	})
}
