package clients

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests in this file check statements of docs/any-client.md that other tests do not check.

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
