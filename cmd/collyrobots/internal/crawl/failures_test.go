package crawl

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
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

// TestFailedLikeStats checks that the command and Stats count the same pages as failed.
func TestFailedLikeStats(t *testing.T) {
	t.Parallel()
	to := func(path string) http.Handler { return http.RedirectHandler(path, http.StatusMovedPermanently) }
	web := tooltest.New(t, robotstest.Sites{"shop.test": {
		"/robots.txt":  "User-agent: *\nDisallow: /cart\n",
		"/":            robotstest.Page("/tea", "/cart", "/to-tea", "/to-cart", "/loop", "/empty", "/partial", "/missing", "/broken", "/to-missing", "/no-location", "/reset", "http://gone.test/"),
		"/tea":         "",
		"/to-tea":      to("/tea"),
		"/to-cart":     to("/cart"),
		"/loop":        to("/loop"),
		"/empty":       http.StatusNoContent,
		"/partial":     http.StatusPartialContent,
		"/missing":     http.StatusNotFound,
		"/broken":      http.StatusInternalServerError,
		"/to-missing":  to("/gone"),
		"/gone":        http.StatusGone,
		"/no-location": http.StatusFound,
		"/reset":       http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
	}})
	_, out, _ := web.Run(t, "", "-json", "-delay=0", "http://shop.test/")
	var failed []string
	for line := range strings.Lines(out) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Kind {
		case kindFailed:
			failed = append(failed, strings.TrimPrefix(r.URL, "http://shop.test"))
		case kindEnd:
			if n := r.End.Stats.Totals.Failed; n != len(failed) {
				t.Errorf("Stats counts %d failed pages, and the command %d", n, len(failed))
			}
		}
	}
	slices.Sort(failed)
	if got := strings.Join(failed, " "); got != "/broken /gone /loop /missing /no-location /reset" {
		t.Errorf("failed: %s", got)
	}
}
