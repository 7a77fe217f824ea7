package observe_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// failingSite has a page for each way in which a page can fail, and others that do not fail.
func failingSite() robotstest.Site {
	to := func(target string) http.Handler { return http.RedirectHandler(target, http.StatusMovedPermanently) }
	return robotstest.Site{
		"/robots.txt":   "User-agent: *\nDisallow: /private\n",
		"/ok":           "",
		"/empty":        http.StatusNoContent,
		"/to-ok":        to("/ok"),
		"/to-private":   to("/private/2"),
		"/private":      "",
		"/missing":      http.StatusNotFound,
		"/broken":       http.StatusInternalServerError,
		"/forbidden":    http.StatusForbidden,
		"/no-location":  http.StatusFound,
		"/bad-location": to("http://[::1/"),
		"/loop":         to("/loop"),
		"/to-missing":   to("/missing-2"),
		"/missing-2":    http.StatusGone,
		"/reset":        http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"/cut": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("a part"))
		}),
		"/large": strings.Repeat("a", 1000),
	}
}

// failingPages are the pages of failingSite that fail.
var failingPages = []string{"/missing", "/broken", "/forbidden", "/no-location", "/bad-location", "/loop", "/to-missing", "/reset", "/cut"}

// TestFailedPages checks that Stats and events count the same pages as failed, of a collector and of an
// http.Client.
func TestFailedPages(t *testing.T) {
	for page := range failingSite() {
		if page == "/robots.txt" || page == "/missing-2" {
			continue
		}
		want := 0
		if slices.Contains(failingPages, page) {
			want = 1
		}
		for _, client := range []bool{false, true} {
			if client && page == "/loop" {
				continue // the client follows ten redirects, and the plugin does not see why it stops
			}
			kit.InBubble(t, robotstest.Sites{"a.test": failingSite()}, func(t *testing.T, web *robotstest.Web) {
				f := startFailing(t, web)
				f.Visit("http://a.test/ok")
				if client {
					getBody(f.Crawl, "http://a.test"+page)
				} else {
					f.Visit("http://a.test" + page)
				}
				f.Wait()
				f.Robots.Close() // waits until all events were delivered
				if got := f.Robots.Stats().Totals.Failed; got != want || f.heard() != want {
					t.Errorf("%s, client %v: %d pages have failed, and %d events say so, want %d", page, client, got, f.heard(), want)
				}
			})
		}
	}
}

// TestPagesThatAreNotFailed checks a page of a collector whose context ends, and an attempt that is repeated.
func TestPagesThatAreNotFailed(t *testing.T) {
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Minute):
		case <-r.Context().Done():
		}
	})
	busy := 0
	site := robotstest.Site{"/robots.txt": 404, "/slow": slow, "/busy": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy++; busy < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		f := startFailing(t, web, collyrobots.RetryThrottled(3))
		f.Visit("http://a.test/busy")
		if busy != 3 {
			t.Errorf("/busy was requested %d times", busy)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Context = ctx
		time.AfterFunc(time.Second, cancel)
		f.Visit("http://a.test/slow")
		f.Robots.Close()
		if got := f.Robots.Stats().Totals.Failed; got != 0 || f.heard() != 0 {
			t.Errorf("%d pages have failed, and %d events say so", got, f.heard())
		}
	})
}

// A failingCrawl counts the events about failed pages.
type failingCrawl struct {
	*kit.Crawl
	mu sync.Mutex
	n  int
}

func startFailing(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) *failingCrawl {
	f := new(failingCrawl)
	listen := collyrobots.OnEvent(func(e *collyrobots.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if e.Failed {
			f.n++
		}
	})
	f.Crawl = kit.Start(t, web, []colly.CollectorOption{colly.MaxBodySize(100)}, append(opts, listen)...)
	f.Impolite = true
	return f
}

func (f *failingCrawl) heard() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// getBody requests a page with an http.Client of the plugin and reads its body.
func getBody(c *kit.Crawl, page string) {
	resp, err := (&http.Client{Transport: c.Robots.Transport(c.Transport)}).Get(page)
	if err != nil {
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
