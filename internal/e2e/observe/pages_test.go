package observe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// aboutPages are the kinds of events that have the number of a page.
var aboutPages = []report.EventKind{report.EventStarted, report.EventAnswered, report.EventDenied, report.EventUnsent}

// pagesIn returns a line for each event: the number of its page, its kind, and how long it has waited.
func pagesIn(events []collyrobots.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %s %s", e.Page, e.Kind, e.RequestKind, strings.TrimPrefix(e.URL, "http://"))
		if e.Waited != 0 {
			b.WriteString(" waited " + e.Waited.String())
		}
		if e.RobotsWait != 0 {
			b.WriteString(" robots " + e.RobotsWait.String())
		}
		if e.More {
			b.WriteString(" more")
		}
		if e.Err != nil {
			b.WriteString(" (" + e.Err.Error() + ")")
		}
		b.WriteString("\n")
	}
	return strings.ReplaceAll(b.String(), "  ", " ")
}

func wantPages(t *testing.T, h *kit.Hearing, want string) {
	t.Helper()
	if got := pagesIn(h.Wait()); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", got, want)
	}
}

// TestEventsOfOnePage checks that the attempts and redirects of a page have its number, with the time
// that each of them has waited, and that the last of them has no More.
func TestEventsOfOnePage(t *testing.T) {
	busy := true
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": kit.Takes(time.Second, "User-agent: *\nDisallow: /closed\nCrawl-delay: 2\n"),
		"/old":        robotstest.Redirect("/new"),
		"/new": func(w http.ResponseWriter, _ *http.Request) {
			if busy {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			busy = false
		},
		"/back": robotstest.Redirect("/closed?2"),
	}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(aboutPages...)
		c := kit.Start(t, web, nil, h.On(), collyrobots.RetryThrottled(1))
		c.Visit("http://a.test/old")
		c.Visit("http://a.test/closed")
		c.Visit("http://a.test/back")
		wantPages(t, h, `
1 started robots a.test/robots.txt
1 answered robots a.test/robots.txt
1 started page a.test/old waited 2s robots 1s
1 answered page a.test/old more
1 started redirect a.test/new waited 2s
1 answered redirect a.test/new more
1 started retry a.test/new waited 2s
1 answered retry a.test/new
2 denied a.test/closed
3 started page a.test/back waited 2s
3 answered page a.test/back more
3 denied a.test/closed?2
`)
	})
}

// TestEventsOfRetryThatIsDenied checks that a page has one last event if its robots.txt denies it while it
// waits for another attempt.
func TestEventsOfRetryThatIsDenied(t *testing.T) {
	rules := "User-agent: *\nAllow: /\n"
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=10")
			io.WriteString(w, rules)
			rules = "User-agent: *\nDisallow: /\n"
		},
		"/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "100")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(aboutPages...)
		c := kit.Start(t, web, nil, h.On(), collyrobots.RetryThrottled(1))
		c.Visit("http://a.test/")
		wantPages(t, h, `
1 started robots a.test/robots.txt
1 answered robots a.test/robots.txt
1 started page a.test/
1 answered page a.test/ more
1 started robots a.test/robots.txt waited 1m41s
1 answered robots a.test/robots.txt
1 denied a.test/ waited 1m41s robots 1s
`)
	})
}

// TestPageOfDryRun checks that a page that is denied in a dry run goes on.
func TestPageOfDryRun(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(aboutPages...)
		c := kit.Start(t, web, nil, h.On(), collyrobots.DryRun())
		c.Impolite = true
		c.Visit("http://a.test/")
		wantPages(t, h, `
1 started robots a.test/robots.txt
1 answered robots a.test/robots.txt
1 denied a.test/ more
1 started page a.test/
1 answered page a.test/
`)
	})
}

// TestEventsOfUnsentRequests checks that a request has an event if its context ends while it
// waits, and if there is no connection.
func TestEventsOfUnsentRequests(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 60\n")}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(aboutPages...)
		c := kit.Start(t, web, nil, h.On(), collyrobots.ForHosts("ignored.test", collyrobots.IgnoreRobotsWithPermission()))
		transport := web.Transport()
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !strings.HasPrefix(address, "a.test") {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return dial(ctx, network, address)
		}
		client := &http.Client{Transport: c.Robots.Transport(transport)}
		type key struct{}
		get := func(ctx context.Context, url string) {
			req, err := http.NewRequestWithContext(context.WithValue(ctx, key{}, url), http.MethodGet, url, nil)
			kit.Must(t, err)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		get(ctx, "http://a.test/1")
		get(t.Context(), "http://down.test/")
		get(t.Context(), "http://ignored.test/")
		wantPages(t, h, `
1 started robots a.test/robots.txt
1 answered robots a.test/robots.txt
1 unsent a.test/1 waited 10s (context deadline exceeded)
2 unsent robots down.test/robots.txt (Get "http://down.test/robots.txt": dial tcp: connection refused)
2 unsent robots down.test/robots.txt (Get "http://down.test/robots.txt": dial tcp: connection refused)
2 unsent robots down.test/robots.txt (Get "http://down.test/robots.txt": dial tcp: connection refused)
2 denied down.test/
3 unsent page ignored.test/ (dial tcp: connection refused)
`)
		for _, e := range h.Wait() {
			if e.Context == nil || e.Context.Value(key{}) == nil {
				t.Errorf("%s %s has the context %v, want that of its page", e.Kind, e.URL, e.Context)
			}
		}
	})
}
