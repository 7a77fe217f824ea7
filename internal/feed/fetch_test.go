package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// TestSpool checks that a large sitemap uses a temporary file, and that a sitemap that is cut off
// returns the bytes that arrived.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, size := range []int{0, 10, spoolInMemory - 1, spoolInMemory, spoolInMemory + 1, 3 * spoolInMemory} {
		for _, end := range []error{io.EOF, errReset} {
			doc := strings.Repeat("0123456789", size/10+1)[:size]
			s, err := keep(io.MultiReader(strings.NewReader(doc), failure{end}))
			if err != nil || s.size != int64(size) {
				t.Fatalf("%d bytes: %d, %v", size, s.size, err)
			}
			for range 2 {
				got, err := io.ReadAll(s.open())
				if string(got) != doc || err != nil && !errors.Is(err, end) || err == nil && end != io.EOF {
					t.Errorf("%d bytes: got %d, %v, want %v", size, len(got), err, end)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left", left, err)
	}
}

func TestResponsesOfServers(t *testing.T) {
	coded := func(coding, doc string) any {
		return func(_ context.Context, _ http.Header, _ time.Duration, resp *http.Response) {
			resp.Header.Set("Content-Encoding", coding)
			resp.Body = body(doc)
		}
	}
	files := map[string]any{
		"http://a.test/brotli":    coded("br", "\x0b\x02\x80abc\x03"),
		"http://a.test/lie":       coded("br", urlset("http://a.test/1")),
		"http://a.test/none":      coded("none", urlset("http://a.test/1")),
		"http://a.test/zip":       coded("gzip", string(gzipped(urlset("http://a.test/1")))),
		"http://a.test/html":      "<html>",
		"http://a.test/moved":     "-> elsewhere",
		"http://a.test/elsewhere": urlset("http://a.test/1"),
		"http://a.test/loop":      "-> /loop2", "http://a.test/loop2": "-> /loop",
		"http://a.test/1": "-> /2", "http://a.test/2": "-> /3", "http://a.test/3": "-> /4", "http://a.test/4": "-> /5", "http://a.test/5": "-> /6", "http://a.test/6": "-> /7", "http://a.test/7": urlset("http://a.test/1"),
		"http://a.test/mail":   "-> mailto:a@a.test",
		"http://a.test/reset":  errReset,
		"http://a.test/broken": 500,
		"http://a.test/bare":   302,
	}
	for _, test := range []struct{ file, visited, log string }{
		{"brotli", "", `not a sitemap; its Content-Encoding is \"br\"`},
		{"lie", "a.test/1", ""},
		{"none", "a.test/1", ""},
		{"zip", "a.test/1", ""},
		{"html", "", "not a sitemap"},
		{"moved", "a.test/1", ""},
		{"loop", "", "more than five redirects"},
		{"2", "a.test/1", ""},
		{"1", "", "more than five redirects"},
		{"mail", "", "not an http or https URL"},
		{"reset", "", "connection reset"},
		{"broken", "", "status 500"},
		{"bare", "", "status 302"},
	} {
		t.Run(test.file, func(t *testing.T) {
			w := newWorld(files).start(Options{})
			w.crawl(t.Context(), "http://a.test", "http://a.test/"+test.file)
			w.want(t, "visited", w.visits(), test.visited)
			if log := w.log.String(); !strings.Contains(log, test.log) || test.log == "" && log != "" {
				t.Errorf("log: %s, want %s", log, test.log)
			}
			if n, want := w.feed.Count(Errors), min(1, len(test.log)); n != want {
				t.Errorf("%d errors were counted, want %d", n, want)
			}
		})
	}
}

// TestPanicOfTransport checks that a panic of a transport reaches the caller of Run, and that the
// feed can be used afterwards.
func TestPanicOfTransport(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset("http://a.test/1")}).start(Options{})
	w.get = func(_ context.Context, u *url.URL) error {
		if u.Path == "/panic.xml" {
			panic("transport")
		}
		return nil
	}
	func() {
		defer func() {
			if r := recover(); r != "transport" {
				t.Errorf("recovered %v", r)
			}
		}()
		w.crawl(t.Context(), "http://b.test", "http://a.test/panic.xml")
	}()
	w.visit = func(sitemap.Entry) Result { panic("page") }
	func() {
		defer func() {
			if r := recover(); r != "page" {
				t.Errorf("recovered %v", r)
			}
		}()
		w.crawl(t.Context(), "http://c.test", "http://c.test/map.xml")
		w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
	}()
	w.visit = nil
	w.files["http://d.test/map.xml"] = urlset("http://d.test/1")
	w.crawl(t.Context(), "http://d.test", "http://d.test/map.xml")
	if got := w.visits(); !strings.HasSuffix(got, "d.test/1") {
		t.Errorf("visited %s", got)
	}
}

// TestPasswordsAreNotLogged checks that the password of a sitemap's URL is in no log and in no
// entry.
func TestPasswordsAreNotLogged(t *testing.T) {
	w := newWorld(map[string]any{"http://u:secret@a.test/map.xml": urlset("http://a.test/1", "ftp://x"), "http://u:secret@a.test/gone.xml": 404}).start(Options{})
	w.visit = func(e sitemap.Entry) Result {
		if s := fmt.Sprint(e); strings.Contains(s, "secret") {
			t.Error(s)
		}
		return Done
	}
	w.crawl(t.Context(), "http://a.test", "http://u:secret@a.test/map.xml", "http://u:secret@a.test/gone.xml")
	if w.visits() != "a.test/1" || strings.Contains(w.log.String(), "secret") {
		t.Error(w.log.String())
	}
}
