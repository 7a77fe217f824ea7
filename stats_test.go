package collyrobots_test

import (
	"net/http"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// Every response that reaches the collector is a page: those from its cache, those of any status,
// and a redirect that is not followed; not a redirect that is, nor what is denied.
func TestPagesAreCounted(t *testing.T) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /denied\n",
		"/":           robotstest.Page(), "/missing": 404, "/hop": robotstest.Redirect("/"), "/stay": robotstest.Redirect("/elsewhere"),
	}}
	web := robotstest.New(t, sites)
	dir := t.TempDir()
	visit := func(want int, path string) {
		t.Helper()
		c := start(t, web, []colly.CollectorOption{colly.CacheDir(dir), colly.AllowURLRevisit()}, collyrobots.AllowPrivateNetworks())
		c.SetRedirectHandler(func(req *http.Request, via []*http.Request) error {
			if req.URL.Path == "/elsewhere" {
				return http.ErrUseLastResponse
			}
			return nil
		})
		c.Visit("http://a.test" + path)
		if hosts := c.robots.Stats().Hosts; len(hosts) != 1 || hosts[0].Pages != want {
			t.Errorf("%s: %+v, want %d pages", path, hosts, want)
		}
	}
	visit(1, "/")
	visit(1, "/") // from the cache
	visit(1, "/missing")
	visit(1, "/hop")
	visit(1, "/stay")
	visit(0, "/denied")
}
