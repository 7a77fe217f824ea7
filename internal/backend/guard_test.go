package backend_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// TestGuard checks which callbacks get a response that is skipped, and that the last callback stays
// the last one.
func TestGuard(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Skip", r.URL.Path)
	}))
	defer server.Close()
	c := colly.NewCollector(colly.IgnoreRobotsTxt())
	handle, err := backend.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	note := func(what string) func(*colly.Response) {
		return func(*colly.Response) { calls = append(calls, what) }
	}
	c.OnResponseHeaders(note("headers"))
	c.OnScraped(note("scraped 1"))
	handle.Guard(func(r *colly.Response) bool { return r.Headers.Get("Skip") == "/skip" })
	handle.AddOwn(func() { c.OnResponse(note("own")) })
	handle.AddLast(note("last"))
	c.OnResponse(note("response"))
	c.OnScraped(note("scraped 2"))
	c.OnScraped(note("scraped 3"))
	c.OnRequest(func(*colly.Request) { handle.GuardNew() })
	for path, want := range map[string]string{
		"/":     "headers, own, response, scraped 1, scraped 2, scraped 3, last",
		"/skip": "own, last",
	} {
		calls = nil
		err := c.Visit(server.URL + path)
		if got := strings.Join(calls, ", "); err != nil || got != want {
			t.Errorf("%s: %v, calls %s, want %s", path, err, got, want)
		}
	}
}
