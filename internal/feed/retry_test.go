package feed

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// TestSitemapThatFailsOnce checks that a sitemap that fails is requested three times.
func TestSitemapThatFailsOnce(t *testing.T) {
	const site = "http://a.test/"
	doc := urlset(site + "1")
	for _, test := range []struct {
		name    string
		answers []any // the last one is repeated
		asked   string
		visited string
	}{
		{"a 503", []any{503, doc}, "a.test/index.xml a.test/index.xml 503", "a.test/1"},
		{"a 429 and a 502", []any{429, 502, doc}, "a.test/index.xml a.test/index.xml 429 a.test/index.xml 502", "a.test/1"},
		{"a connection that fails", []any{errReset, doc}, "a.test/index.xml a.test/index.xml failed", "a.test/1"},
		{"a transfer that is cut off", []any{cutAt(doc, 20), cutAt(doc, 30), doc}, "a.test/index.xml a.test/index.xml a.test/index.xml", "a.test/1"},
		{"always a 503", []any{503}, "a.test/index.xml 503 a.test/index.xml 503 a.test/index.xml 503", ""},
		{"always cut off", []any{cutAt(doc, len(doc)-3)}, "a.test/index.xml a.test/index.xml a.test/index.xml", "a.test/1"},
		{"a 500", []any{500, doc}, "a.test/index.xml 500", ""},
		{"a 404", []any{404, doc}, "a.test/index.xml 404", ""},
		{"a 403", []any{403, doc}, "a.test/index.xml 403", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(map[string]any{}).start(Options{})
			w.get = func(_ context.Context, u *url.URL) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.files[u.String()] = test.answers[0]
				if len(test.answers) > 1 {
					test.answers = test.answers[1:]
				}
				return nil
			}
			w.crawl(t.Context(), "http://a.test", site+"index.xml")
			w.want(t, "asked", w.asks(), test.asked)
			w.want(t, "visited", w.visits(), test.visited)
		})
	}
}

// TestSitemapThatFailsBehindARedirect checks that a failure does not repeat the redirects that lead
// to the sitemap, and that the tries count for all of these requests together.
func TestSitemapThatFailsBehindARedirect(t *testing.T) {
	const index = "http://a.test/index.xml"
	w := newWorld(map[string]any{"http://a.test/map.xml": 503}).start(Options{})
	answer := any(503)
	w.get = func(context.Context, *url.URL) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.files[index] = answer
		answer = "-> http://a.test/map.xml"
		return nil
	}
	w.crawl(t.Context(), "http://a.test", index)
	w.want(t, "asked", w.asks(), "a.test/index.xml 302 a.test/index.xml 503 a.test/map.xml 503 a.test/map.xml 503")
}

// TestSitemapThatMayNotBeRequested checks that a request that was refused before it was sent is not
// repeated.
func TestSitemapThatMayNotBeRequested(t *testing.T) {
	w, n := newWorld(map[string]any{}).start(Options{}), 0
	w.get = func(context.Context, *url.URL) error {
		n++
		return errors.New("denied by robots.txt")
	}
	w.crawl(t.Context(), "http://a.test", "http://a.test/index.xml")
	if n != 1 {
		t.Errorf("the sitemap was requested %d times, want once", n)
	}
}

// TestTriesOfASitemapAreBounded checks that all tries of a file share the time limit of one file,
// and count as failures of the site.
func TestTriesOfASitemapAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, _ http.Header, timeout time.Duration, resp *http.Response) {
			d := min(timeout, 40*time.Second)
			time.Sleep(d)
			resp.StatusCode = 503
			resp.Body = http.NoBody
		}
		w := newWorld(map[string]any{"http://a.test/index.xml": hangs}).start(Options{Limits: sitemap.Limits{Time: time.Minute}})
		began := time.Now()
		w.crawl(t.Context(), "http://a.test", "http://a.test/index.xml")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		w.want(t, "asked", w.asks(), "a.test/index.xml 503 a.test/index.xml 503")

		files := map[string]any{"http://a.test/index.xml": index(numberedURLs("http://a.test/map", 100)...)}
		for _, loc := range numberedURLs("http://a.test/map", 100) {
			files[loc] = 503
		}
		w = newWorld(files).start(Options{Budget: Budget{Failures: 10}})
		w.crawl(t.Context(), "http://a.test", "http://a.test/index.xml")
		if n := len(strings.Fields(w.asks()))/2 - 1; n > 10+3*fetchedAtOnce {
			t.Errorf("%d requests failed", n)
		}
	})
}
