package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestStatusTable shows what each response to the first GET /robots.txt means, with one letter for
// each dialect in the order of dialect.All. R means the rules of the body, o no restriction, -
// nothing allowed, and D site down.
func TestStatusTable(t *testing.T) {
	letters := map[policy.RobotsStatus]string{
		policy.Rules: "R", policy.NoRobots: "o", policy.Unreachable: "-", policy.SiteDown: "D",
	}
	status := func(code int) func(*http.Request) (*http.Response, error) { return reply(code, closed) }
	for _, row := range []struct {
		answer string
		reply  func(*http.Request) (*http.Response, error)
		want   string // RFC 9309, Google, Coc Coc, 1994, temoto, Yandex, Seznam
	}{
		{"200", status(200), "RRRRRRR"},
		{"201", status(201), "RRoRRoR"},
		{"203", status(203), "RRoRRoR"},
		{"204", status(204), "RRoRRoR"},
		{"206", status(206), "RRoRRoR"},
		{"299", status(299), "RRoRRoR"},
		{"100", status(100), "--o--o-"},
		{"199", status(199), "--o--o-"},
		{"300", status(300), "--o--o-"},
		{"304 to a plain GET", status(304), "--o--o-"},
		{"305", status(305), "--o--o-"},
		{"302 without Location", status(302), "--o--o-"},
		{"301 to file:", reply(301, closed, "Location", "file:///etc/passwd"), "--o--o-"},
		{"301 to ftp:", reply(301, closed, "Location", "ftp://example.com/robots.txt"), "--o--o-"},
		{"301 to javascript:", reply(301, closed, "Location", "javascript:alert(1)"), "--o--o-"},
		{"301 to an invalid URL", reply(301, closed, "Location", "http://[::1"), "--o--o-"},
		{"400", status(400), "ooooooo"},
		{"401", status(401), "ooooooo"},
		{"403", status(403), "ooooooo"},
		{"404", status(404), "ooooooo"},
		{"407", status(407), "ooooooo"},
		{"410", status(410), "ooooooo"},
		{"429", status(429), "o-ooooo"},
		{"499", status(499), "ooooooo"},
		{"500", status(500), "--o-oo-"},
		{"503", status(503), "--o-oo-"},
		{"599", status(599), "--o-oo-"},
		{"600", status(600), "--o--o-"},
		{"999", status(999), "--o--o-"},
		{"0", status(0), "--o--o-"},
		{"-1", status(-1), "--o--o-"},
		{"connection reset", refuse, "--D----"},
		{"no response in time", hang, "--D----"},
		{"cut body", cut(200, closed), "--D----"},
		{"404 with a cut body", cut(404, closed), "oooo-oo"},
		{"503 with a cut body", cut(503, closed), "--o--o-"},
		{"neither response nor error", func(*http.Request) (*http.Response, error) { return nil, nil }, "--D----"},
		{"panic", func(*http.Request) (*http.Response, error) { panic("ouch") }, "--D----"},
		{"5 redirects to 200", redirects(5, 302, "", status(200)), "RRRRRRR"},
		{"6 redirects to 200", redirects(6, 302, "", status(200)), "ooooRoo"},
		{"9 redirects to 200", redirects(9, 307, "", status(200)), "ooooRoo"},
		{"10 redirects to 200", redirects(10, 307, "", status(200)), "oooo-oo"},
		{"a loop", reply(301, "", "Location", "/robots.txt"), "oooo-oo"},
		{"2 redirects to 404", redirects(2, 308, "", status(404)), "ooooooo"},
		{"2 redirects to 503", redirects(2, 303, "", status(503)), "--o-oo-"},
		{"redirect to an unreachable host", redirects(1, 301, "https://gone.example/", refuse), "--D----"},
	} {
		for i, d := range dialect.All() {
			t.Run(fmt.Sprintf("%s/%s", row.answer, d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrawler(t, under(d), row.reply)
					p := c.get(t)
					if got := letters[p.RobotsStatus]; got != row.want[i:i+1] {
						t.Errorf("got %s (%v), want %s", got, p.Err(), row.want[i:i+1])
					}
					if allowed := allows(p, "/x"); allowed != (row.want[i] == 'o') {
						t.Errorf("/x allowed: %t", allowed)
					}
					if p.Group() == nil {
						t.Error("got no group")
					}
					if p.Err() == nil && (p.RobotsStatus == policy.Unreachable || p.RobotsStatus == policy.SiteDown) {
						t.Errorf("got %v without an error", p.RobotsStatus)
					}
				})
			})
		}
	}
}

// TestErrorTypes checks that each kind of failure has its own error type, which wraps the cause.
func TestErrorTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			status   *policy.StatusError
			none     *policy.NoResponseError
			redirect *policy.RedirectError
			panicked *policy.PanicError
		)
		get := func(answer func(*http.Request) (*http.Response, error)) *policy.Policy {
			return newCrawler(t, under(dialect.RFC9309()), answer).get(t)
		}
		if p := get(reply(503, "")); !errors.As(p.Err(), &status) || status.Status != 503 || p.Status() != 503 {
			t.Errorf("503: got %#v, status %d", p.Err(), p.Status())
		}
		if p := get(refuse); !errors.As(p.Err(), &none) || !errors.Is(p.Err(), errReset) || p.Status() != 0 {
			t.Errorf("reset: got %#v, status %d", p.Err(), p.Status())
		}
		if p := get(reply(302, "", "Location", "ftp://h/")); !errors.As(p.Err(), &redirect) ||
			*redirect != (policy.RedirectError{Status: 302, Location: "ftp://h/"}) {
			t.Errorf("redirect: got %#v", p.Err())
		}
		if p := get(func(*http.Request) (*http.Response, error) { panic(7) }); !errors.As(p.Err(), &panicked) || panicked.Value != 7 {
			t.Errorf("panic: got %#v", p.Err())
		}
		if p := get(reply(404, "")); p.Err() != nil || p.Status() != 404 {
			t.Errorf("404: got %v, status %d", p.Err(), p.Status())
		}
		for _, err := range []error{status, none, redirect, panicked} {
			if err.Error() == "" {
				t.Errorf("%T has no text", err)
			}
		}
		synctest.Wait()
	})
}

// TestTemotoNeverRefetches checks that a file that was read is never fetched again, and that a
// fetch that failed is repeated with the next page, as in Colly's built-in check.
func TestTemotoNeverRefetches(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, under(dialect.Temoto()), reply(status, closed, "Cache-Control", "max-age=1"))
			c.get(t)
			time.Sleep(20 * 365 * 24 * time.Hour)
			c.get(t)
			if c.site.asked() != 1 {
				t.Errorf("status %d: %d requests, want 1", status, c.site.asked())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.Temoto()), refuse)
		c.get(t)
		c.site.says(reply(200, closed))
		if p := c.get(t); p.RobotsStatus != policy.Rules {
			t.Errorf("after a failure: got %v, want rules", p.RobotsStatus)
		}
	})
}
