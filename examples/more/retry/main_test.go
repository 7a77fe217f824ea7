package main

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRetry checks that each attempt waits for its turn, and that a denied page is not tried again.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		web := robotstest.New(t, robotstest.Sites{"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\nCrawl-delay: 10\n",
			"/closed":     robotstest.Page(),
			"/broken": func(w http.ResponseWriter, _ *http.Request) {
				tries++
				if tries < 3 {
					w.WriteHeader(http.StatusInternalServerError)
				}
			},
			"/busy": func(w http.ResponseWriter, _ *http.Request) {
				tries++
				if tries == 4 {
					w.Header().Set("Retry-After", "60")
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				io.WriteString(w, "text")
			},
		}})
		next := web.Transport()
		defer next.CloseIdleConnections()
		var out bytes.Buffer
		err := run([]string{"http://a.test/broken", "http://a.test/closed", "http://a.test/busy"}, next, &out)
		if err != nil {
			t.Fatal(err)
		}
		const want = "200 http://a.test/broken\n" +
			"GET http://a.test/closed giving up after 1 attempt(s): Get \"http://a.test/closed\": " +
			"collyrobots: denied: \"Disallow: /closed\", line 2 of http://a.test/robots.txt, group \"*\" (rfc9309)\n" +
			"200 http://a.test/busy\n"
		if out.String() != want {
			t.Errorf("printed\n%swant\n%s", out.String(), want)
		}
		schedule := []string{"0s /robots.txt", "10s /broken", "20s /broken", "30s /broken", "40s /busy", "1m40s /busy"}
		if got := web.Log("a.test").Schedule(); !slices.Equal(got, schedule) {
			t.Errorf("got %q, want %q", got, schedule)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}
