package clients

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestRedirectOfClientGoesFirst checks that a redirect does not wait behind the first requests of
// other goroutines, because it would fail with ErrRedirectWait.
func TestRedirectOfClientGoesFirst(t *testing.T) {
	kit.ForEachClient(t, testRedirectOfClientGoesFirst)
}

func testRedirectOfClientGoesFirst(t *testing.T, start kit.Starter) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 10\n", "/": robotstest.Redirect("/target"), "/target": robotstest.Page(), "*": robotstest.Page(),
	}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, kit.Async)
		c.Visit("http://a.test/")
		synctest.Wait()
		for i := range 20 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		if len(c.Errs) > 0 {
			t.Errorf("got errors %v", c.Errs)
		}
		if got := kit.URIsOf(web.Log("a.test")); !strings.HasPrefix(got, "/robots.txt / /target ") {
			t.Errorf("got requests %s, want the redirect before other requests", got)
		}
		kit.WantPace(t, web, "a.test", 10*time.Second, 23)
	})
}

// TestClientDoesNotOvertakeCollector checks that the requests of a client wait behind the pages of
// a collector that wait already.
func TestClientDoesNotOvertakeCollector(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 10\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		client := &http.Client{Transport: c.Robots.Transport(c.Transport)}
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		var group sync.WaitGroup
		for i := range 5 {
			group.Go(func() { kit.Get(client, fmt.Sprint("http://a.test/", 5+i)) })
			synctest.Wait()
		}
		group.Wait()
		c.Wait()
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1 /2 /3 /4 /5 /6 /7 /8 /9")
	})
}

// TestTurnsAndClientsTakeTurns checks the same for turns and the requests of a client.
func TestTurnsAndClientsTakeTurns(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 10\n")}, func(t *testing.T, web *robotstest.Web) {
		p, client := kit.NewRobots(t, web, collyrobots.HTTPClient(&http.Client{Transport: web.Transport()}))
		var mu sync.Mutex
		var order []string
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() {
				if i%2 == 0 {
					kit.Get(client, fmt.Sprint("http://a.test/", i))
				} else {
					turn, err := p.Acquire(t.Context(), kit.NewRequest(t, fmt.Sprint("http://a.test/", i)))
					if err != nil {
						t.Error(err)
					}
					turn.End()
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprint(i))
			})
			synctest.Wait()
		}
		group.Wait()
		if got := strings.Join(order, " "); got != "0 1 2 3 4 5" {
			t.Errorf("got order %s", got)
		}
	})
}

// TestLongWaitOfClientIsReported checks that the log and the events report that a client waits.
func TestLongWaitOfClientIsReported(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 3600\n")}, func(t *testing.T, web *robotstest.Web) {
		var log bytes.Buffer
		told := kit.Hear(report.EventWaiting)
		_, client := kit.NewRobots(t, web, told.On(), collyrobots.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		_, err := kit.Get(client, "http://a.test/1")
		kit.Must(t, err)
		if events := told.Wait(); len(events) != 1 || events[0].URL != "http://a.test/1" || events[0].Until.IsZero() {
			t.Errorf("got events %+v", events)
		}
		if !strings.Contains(log.String(), "pages wait long for their host") {
			t.Errorf("got log %s", log.String())
		}
	})
}

// TestRequestChangedAfterAcquire checks that a turn belongs to the URL that Acquire got, although
// the program changes its request afterwards.
func TestRequestChangedAfterAcquire(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
		told := kit.Hear(report.EventAnswered)
		p := kit.NewTurns(t, web, told.On())
		req := kit.NewRequest(t, "http://a.test/1")
		turn, err := p.Acquire(t.Context(), req)
		kit.Must(t, err)
		req.URL.Path = "/2"
		turn.Answered(http.StatusOK, nil)
		turn.End()
		events := told.Wait()
		if last := events[len(events)-1]; last.URL != "http://a.test/1" {
			t.Errorf("got an event for %s", last.URL)
		}
	})
}
