package observe

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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
func pagesIn(events []*collyrobots.Event) string {
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
