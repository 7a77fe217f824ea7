package crawl

import (
	"net/http"
	"testing"

	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestRedirects checks that a redirect to a known page is no failure, that a redirect to a denied page
// does not hide the denial, and that the report calls a loop a loop.
func TestRedirects(t *testing.T) {
	t.Parallel()
	to := func(path string) http.Handler { return http.RedirectHandler(path, http.StatusMovedPermanently) }
	web := tooltest.New(t, robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\nDisallow: /safe\n",
		"/":           robotstest.Page("/tea", "/cart", "/to-tea", "/to-cart", "/to-safe", "/self", "/ping"),
		"/tea":        "",
		"/to-tea":     to("/tea"),
		"/to-cart":    to("/cart"),
		"/to-safe":    to("/safe"),
		"/self":       to("/self"),
		"/ping":       to("/pong"),
		"/pong":       to("/ping"),
	}})
	status, report, _ := web.Run(t, "", "-delay=0", "-parallelism=1", "-depth=2", "http://shop.test/")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	wantMatches(t, "the report", report, `\nDenied \(2\):\n`, `/cart +line 2: Disallow: /cart\n`, `/safe +line 3: Disallow: /safe\n`,
		`\nFailed \(2\):\n`, `/ping +redirect loop\n`, `/self +redirect loop\n`, `\n2 pages in \S+ s, 2 failed, 2 denied\n$`)
}
