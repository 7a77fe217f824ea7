package clients

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests in this file check statements of docs/any-client.md that other tests do not check.

// The transport of a client can be changed to a polite one, also that of http.DefaultClient.
func TestTheDefaultClientCanBePolite(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /2\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
		p, _ := kit.NewRobots(t, web)
		client := http.DefaultClient
		before := client.Transport
		defer func() { client.Transport = before }()
		client.Transport = web.Transport()
		client.Transport = p.Transport(client.Transport)
		for _, path := range []string{"/1", "/2", "/3"} {
			resp, err := http.Get("http://a.test" + path)
			if denied := errors.Is(err, colly.ErrRobotsTxtBlocked); denied != (path == "/2") {
				t.Errorf("%s: got error %v", path, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2s /1, 4s /3")
	})
}

// While a host has a delay, a body that is never read and never closed delays the next request to a
// minute, or to ten delays if that is longer.
func TestTheTimeThatAnOpenBodyCosts(t *testing.T) {
	for delay, want := range map[string]time.Duration{"1": time.Minute, "20": 200 * time.Second} {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: "+delay+"\n")}, func(t *testing.T, web *robotstest.Web) {
			_, client := kit.NewRobots(t, web)
			resp, err := client.Get("http://a.test/1")
			kit.Must(t, err)
			defer resp.Body.Close()
			began := time.Now()
			_, err = kit.Get(client, "http://a.test/2")
			kit.Must(t, err)
			if took := time.Since(began); took != want {
				t.Errorf("Crawl-delay %s: the next request took %v, want %v", delay, took, want)
			}
		})
	}
}

// Acquire requests robots.txt with the client of the option HTTPClient, and Stats counts its
// requests.
func TestStatsCountTheRequestsOfAllClients(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web)
		client := &http.Client{Transport: p.Transport(web.Transport())}
		defer client.CloseIdleConnections()
		var pages int
		stop := p.Listen(func(e collyrobots.Event) {
			if e.Kind == report.EventAnswered && e.RequestKind == report.RequestPage {
				pages++
			}
		})
		_, err := kit.Get(client, "http://a.test/1")
		kit.Must(t, err)
		turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/2"))
		kit.Must(t, err)
		turn.Answered(http.StatusOK, nil)
		turn.End()
		time.Sleep(time.Second)
		stop()
		if s := p.Stats().Totals; s.Pages != 2 || pages != 2 {
			t.Errorf("Stats has %d pages, and the listener got %d events of pages", s.Pages, pages)
		}
	})
}
