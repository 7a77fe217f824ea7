package main

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestQueue crawls a site and its sitemap, and checks the access log.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"a.test": {
			"/robots.txt":  "User-agent: *\nDisallow: /closed\nCrawl-delay: 60\nSitemap: http://a.test/sitemap.txt\n",
			"/":            "",
			"/sitemap.txt": "http://a.test/a\nhttp://a.test/closed\nhttp://a.test/b\n",
			"/a":           "",
			"/b":           "",
		}})
		world := http.DefaultTransport
		http.DefaultTransport = web.Transport()
		defer func() { http.DefaultTransport = world }()
		if err := run([]string{"http://a.test/"}); err != nil {
			t.Fatal(err)
		}
		log := web.Log("a.test")
		if got, want := log.SortedURIs(), []string{"/", "/a", "/b", "/robots.txt", "/sitemap.txt"}; !slices.Equal(got, want) {
			t.Errorf("requests for %v, want %v", got, want)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}
