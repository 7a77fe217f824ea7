package politeness

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A meter is a handler that accepts a number of requests per second, two at once, and answers 429
// to the others.
type meter struct {
	perSecond  float64
	retryAfter string // empty if there is none

	mu       sync.Mutex
	tokens   float64
	last     time.Time
	began    time.Time
	settled  time.Duration // requests before this time are not counted
	accepted int
	refused  int
}

func (m *meter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	now := time.Now()
	m.tokens = min(2, m.tokens+now.Sub(m.last).Seconds()*m.perSecond)
	m.last = now
	ok := m.tokens >= 1-1e-9
	if ok {
		m.tokens--
	}
	if now.Sub(m.began) >= m.settled {
		if ok {
			m.accepted++
		} else {
			m.refused++
		}
	}
	m.mu.Unlock()
	time.Sleep(20 * time.Millisecond) // the time of a response
	if ok {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, robotstest.Page())
		return
	}
	if m.retryAfter != "" {
		w.Header().Set("Retry-After", m.retryAfter)
	}
	w.WriteHeader(http.StatusTooManyRequests)
}

// TestBackOffFindsAcceptedRate checks that the crawl uses most of the rate that a host accepts,
// that few requests are refused, that no page is lost, and that the log is short.
func TestBackOffFindsAcceptedRate(t *testing.T) { kit.ForEachClient(t, testBackOffFindsAcceptedRate) }

func testBackOffFindsAcceptedRate(t *testing.T, start kit.Starter) {
	for _, tc := range []struct {
		perSecond float64
		pages     int
		settled   time.Duration
		refused   float64 // the largest share of refused requests
	}{
		{0.5, 150, 30 * time.Second, 0.05},
		{5, 1200, 10 * time.Second, 0.02},
	} {
		if kit.UnderRace && tc.pages > 1000 {
			continue // the same with more pages
		}
		for _, retryAfter := range []string{"", "1"} {
			t.Run(fmt.Sprintf("%v a second, Retry-After %q", tc.perSecond, retryAfter), func(t *testing.T) {
				m := &meter{perSecond: tc.perSecond, retryAfter: retryAfter, settled: tc.settled, tokens: 2}
				kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": m}}, func(t *testing.T, web *robotstest.Web) {
					m.began, m.last = time.Now(), time.Now()
					c := start(t, web, kit.Async, collyrobots.RetryThrottled(5))
					kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 20})
					for i := range tc.pages {
						c.Visit(fmt.Sprint("http://a.test/", i))
					}
					c.Wait()
					took := time.Since(m.began) - tc.settled
					used := float64(m.accepted) / (tc.perSecond * took.Seconds())
					refused := float64(m.refused) / float64(m.accepted+m.refused)
					lines := strings.Count(c.Logged.String(), "\n")
					t.Logf("%.1f %% used, %.2f %% refused, %d of %d pages, %d log lines, %v", 100*used, 100*refused, len(c.Pages), tc.pages, lines, took)
					if used < 0.85 || refused > tc.refused || len(c.Pages) != tc.pages || lines >= 60 {
						t.Errorf("want 85 %% used, %.0f %% refused, all pages and less than 60 lines", 100*tc.refused)
					}
				})
			})
		}
	}
}
