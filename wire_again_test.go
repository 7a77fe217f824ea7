package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
)

// dropFirst ends the connection without an answer when it is asked for the first time, and answers from then on.
func dropFirst(answer string) http.HandlerFunc {
	var asked atomic.Bool
	return func(out http.ResponseWriter, _ *http.Request) {
		if !asked.Swap(true) {
			panic(http.ErrAbortHandler)
		}
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, answer)
	}
}

// When a server drops a connection that it had kept, net/http sends a GET once more, at once and unseen by any hook of Colly. It is a request
// like others, and waits like others; that wait is not the server's, so no timeout counts it.
func TestWhatIsSentTwiceIsPacedTwice(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 2", "/0": page(), "/1": dropFirst(page()), "/2": redirect("/hop"), "/hop": dropFirst(page()), "/3": page(),
			}}, func(t *testing.T, w *wire) {
				c := w.start(t, nil)
				c.SetRequestTimeout(50 * time.Millisecond)
				for i := range 4 {
					if err := c.Visit(fmt.Sprint(scheme, "://a.test/", i)); err != nil {
						t.Error(err)
					}
				}
				w.wantSchedule(t, "a.test", "0s /robots.txt, 2s /0, 4s /1, 6s /1, 8s /2, 10s /hop, 12s /hop, 14s /3")
				if s := c.robots.Stats().Hosts[0]; s.Requests != 8 || s.MinGap.Round(time.Millisecond) != 2*time.Second {
					t.Errorf("Stats: %+v, want 8 requests, 2 s apart", s)
				}
			})
		})
	}
}

// So is a robots.txt that is read again, and a page for which others wait.
func TestARobotsTxtSentTwiceIsPacedTwice(t *testing.T) {
	a := pages(3, "")
	asked := 0
	a["/robots.txt"] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 2 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 36000")
	})
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		c := w.start(t, async)
		for i := range 3 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		hits := w.hits("a.test")
		for i := 1; i < len(hits); i++ {
			if gap := hits[i].at.Sub(hits[i-1].at); gap < 10*time.Hour-time.Microsecond {
				t.Errorf("%v before %s, want 10h", gap, hits[i].uri)
			}
		}
		if len(c.pages) != 3 || asked < 3 {
			t.Errorf("%d pages of 3, robots.txt asked for %d times:\n%s", len(c.pages), asked, w.schedule("a.test"))
		}
	})
}

func TestTheEndOfTheContextEndsASecondAttempt(t *testing.T) {
	onWire(t, map[string]site{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 60", "/0": page(), "/1": dropFirst(page()),
	}}, func(t *testing.T, w *wire) {
		ctx, cancel := context.WithTimeout(t.Context(), 130*time.Second)
		defer cancel()
		c := w.start(t, []colly.CollectorOption{colly.StdlibContext(ctx)})
		c.Visit("http://a.test/0")
		if err := c.Visit("http://a.test/1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(w.began) != 130*time.Second {
			t.Errorf("Visit: %v after %v", err, time.Since(w.began))
		}
		w.wantSchedule(t, "a.test", "0s /robots.txt, 1m0s /0, 2m0s /1")
	})
}

// A sync spider that visits the host whose answer it is looking at does not wait for itself.
func TestVisitsWhileAnAnswerIsOpen(t *testing.T) {
	for name, register := range map[string]func(c *crawl, visit func(path string)){
		"OnResponseHeaders": func(c *crawl, visit func(string)) {
			c.OnResponseHeaders(func(r *colly.Response) { visit(r.Request.URL.Path) })
		},
		"redirect handler": func(c *crawl, visit func(string)) {
			c.SetRedirectHandler(func(r *http.Request, _ []*http.Request) error { visit(r.URL.Path); return nil })
		},
		"OnResponse": func(c *crawl, visit func(string)) {
			c.OnResponse(func(r *colly.Response) { visit(r.Request.URL.Path) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 2", "/0": redirect("/1"), "/1": page(), "/2": page(), "/3": page(),
			}}, func(t *testing.T, w *wire) {
				c := w.start(t, nil)
				c.SetRequestTimeout(0)
				register(c, func(path string) {
					if path == "/1" {
						c.Visit("http://a.test/2")
					}
				})
				c.Visit("http://a.test/0")
				c.Visit("http://a.test/3")
				w.wantPace(t, "a.test", 2*time.Second, 5)
				if len(c.pages) != 3 || len(c.errs) != 0 {
					t.Errorf("pages %v, errors %v", c.pages, c.errs)
				}
			})
		})
	}
}
