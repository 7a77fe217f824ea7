package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQueue crawls a site by its sitemap, and judges by what the server was asked for.
func TestQueue(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nDisallow: /closed\nSitemap: %s/sitemap.txt\n", site.URL)
		case "/sitemap.txt":
			fmt.Fprintf(w, "%[1]s/a\n%[1]s/closed\n%[1]s/b\n", site.URL)
		}
	}))
	defer site.Close()
	if err := run([]string{site.URL + "/"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if want := []string{"/", "/a", "/b", "/robots.txt", "/sitemap.txt"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}
