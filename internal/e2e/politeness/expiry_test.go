package politeness

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestCrawlDelayHoldsWhileRobotsTxtCannotBeRead checks that the last known crawl delay applies
// while robots.txt cannot be read: to the requests for the file, and to pages that were allowed
// before.
func TestCrawlDelayHoldsWhileRobotsTxtCannotBeRead(t *testing.T) {
	kit.ForEachClient(t, testCrawlDelayHoldsWhileRobotsTxtCannotBeRead)
}

func testCrawlDelayHoldsWhileRobotsTxtCannotBeRead(t *testing.T, start kit.Starter) {
	for name, failure := range map[string]http.HandlerFunc{
		"502":  func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusBadGateway) },
		"429":  func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusTooManyRequests) },
		"drop": kit.Drop,
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			good := kit.RobotsFor(5*time.Minute, "User-agent: *\nCrawl-delay: 20\n")
			kit.InBubble(t, robotstest.Sites{"a.test": {"*": robotstest.Page(), "/robots.txt": func(out http.ResponseWriter, r *http.Request) {
				if failing.Load() {
					failure(out, r)
				} else {
					good(out, r)
				}
			}}}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, kit.Async)
				for i := range 60 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				time.Sleep(time.Minute)
				failing.Store(true)
				time.Sleep(10 * time.Minute)
				failing.Store(false)
				c.Wait()
				kit.WantNoSooner(t, web, "a.test", 20*time.Second, len(web.Log("a.test")))
				if len(web.Log("a.test")) < 40 {
					t.Errorf("got requests\n%s\nwant at least 40", web.Log("a.test"))
				}
			})
		})
	}
}
