package operators

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestPolite checks each part of Polite by the requests that a server sees. Jitter(0) after it makes the
// instants exact, except in the case for Jitter.
func TestPolite(t *testing.T) {
	const s = time.Second
	polite := collyrobots.Polite()
	exact := collyrobots.Jitter(0)
	for _, test := range []struct {
		name    string
		answer  any // to each page
		opts    []collyrobots.Option
		want    string
		refused int // the pages that are denied
	}{
		{"MinDelay", "x", []collyrobots.Option{polite, exact},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5", 0},
		{"MinDelay after it", "x", []collyrobots.Option{polite, exact, collyrobots.MinDelay(5 * s)},
			"0s /robots.txt, 5s /0, 10s /1, 15s /2, 20s /3, 25s /4, 30s /5", 0},
		{"MinDelay before it", "x", []collyrobots.Option{collyrobots.MinDelay(5 * s), polite, exact},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5", 0},
		{"MinDelay is switched off", "x", []collyrobots.Option{polite, exact, collyrobots.MinDelay(0)},
			"0s /robots.txt, 0s /0, 0s /1, 0s /2, 0s /3, 0s /4, 0s /5", 0},
		{"in ForHosts", "x", []collyrobots.Option{collyrobots.ForHosts("a.test", polite, exact)},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5", 0},
		{"switched off in ForHosts", "x", []collyrobots.Option{polite, collyrobots.ForHosts("a.test", exact, collyrobots.MinDelay(0))},
			"0s /robots.txt, 0s /0, 0s /1, 0s /2, 0s /3, 0s /4, 0s /5", 0},
		{"AdaptiveDelay", kit.Takes(5*s/2, "x"), []collyrobots.Option{polite, exact, collyrobots.MaxInFlightPerHost(9)},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 6.125s /4, 8.438s /5", 0},
		{"AdaptiveDelay is switched off", kit.Takes(3*s, "x"), []collyrobots.Option{polite, exact, collyrobots.AdaptiveDelay(0), collyrobots.MaxInFlightPerHost(9)},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5", 0},
		{"StopAfterRefusals", http.StatusForbidden, []collyrobots.Option{polite, exact},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4", 1},
		{"StopAfterRefusals is switched off", http.StatusForbidden, []collyrobots.Option{polite, exact, collyrobots.StopAfterRefusals(0)},
			"0s /robots.txt, 1s /0, 2s /1, 3s /2, 4s /3, 5s /4, 6s /5", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := robotstest.Pages(6, kit.NoDenys)
			for i := range 6 {
				site[fmt.Sprint("/", i)] = test.answer
			}
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, test.opts...)
				for i := range 6 {
					c.Visit(fmt.Sprint("http://a.test/", i))
					synctest.Wait()
				}
				c.Wait()
				kit.WantSchedule(t, web, "a.test", test.want)
				if len(c.Denied) != test.refused {
					t.Errorf("denied: %v, want %d", c.Denied, test.refused)
				}
				for _, err := range c.Denied {
					var denied *collyrobots.DeniedError
					if !errors.As(err, &denied) || denied.Decision.Reason != report.ReasonRefused {
						t.Errorf("denied because of %v", err)
					}
				}
			})
		})
	}
}
