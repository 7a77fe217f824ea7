package politeness

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestCrawlDelayHoldsWhileRobotsTxtIsReadAgain checks that the crawl delay of a file that has
// expired still applies while the file is read again: to the request for the file, and to the pages
// that are allowed by the old copy in the meantime.
func TestCrawlDelayHoldsWhileRobotsTxtIsReadAgain(t *testing.T) {
	kit.ForEachClient(t, testCrawlDelayHoldsWhileRobotsTxtIsReadAgain)
}

func testCrawlDelayHoldsWhileRobotsTxtIsReadAgain(t *testing.T, start kit.Starter) {
	for name, again := range map[string]time.Duration{"at once": 0, "slowly": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(60, "")}, func(t *testing.T, web *robotstest.Web) {
				var asked atomic.Int32
				web.Set("a.test", "/robots.txt", func(out http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) > 1 {
						time.Sleep(again)
					}
					out.Header().Set("Cache-Control", "max-age=300")
					io.WriteString(out, "User-agent: *\nCrawl-delay: 10\n")
				})
				c := start(t, web, kit.Async).Follow()
				kit.Must(t, c.Visit("http://a.test/"))
				c.Wait()
				kit.WantNoSooner(t, web, "a.test", 10*time.Second, len(web.Log("a.test")))
				if len(c.Pages) != 61 || asked.Load() < 2 {
					t.Errorf("got %d pages and %d requests for robots.txt, want 61 pages and more than one request", len(c.Pages), asked.Load())
				}
			})
		})
	}
}

// TestReadingRobotsTxtAgainKeepsItsDelay has a page that comes when the file has just expired and
// no other page waits. The request that reads the file again must keep the delay.
func TestReadingRobotsTxtAgainKeepsItsDelay(t *testing.T) {
	kit.ForEachClient(t, testReadingRobotsTxtAgainKeepsItsDelay)
}

func testReadingRobotsTxtAgainKeepsItsDelay(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"*": robotstest.Page(), "/robots.txt": func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", "max-age=300")
		io.WriteString(out, "User-agent: *\nCrawl-delay: 10\n")
	}}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		kit.Must(t, c.Visit("http://a.test/0"))
		time.Sleep(285 * time.Second)
		kit.Must(t, c.Visit("http://a.test/1"))
		time.Sleep(6 * time.Second)
		kit.Must(t, c.Visit("http://a.test/2"))
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /0, 4m55s /1, 5m5s /robots.txt, 5m15s /2")
	})
}

// TestCrawlDelayHoldsBetweenVisits has a program that pauses between two visits for longer than the
// file is fresh.
func TestCrawlDelayHoldsBetweenVisits(t *testing.T) {
	kit.ForEachClient(t, testCrawlDelayHoldsBetweenVisits)
}

func testCrawlDelayHoldsBetweenVisits(t *testing.T, start kit.Starter) {
	site := robotstest.Site{"/robots.txt": kit.RobotsFor(time.Hour, "User-agent: *\nCrawl-delay: 7200\n"), "*": robotstest.Page()}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		kit.Must(t, c.Visit("http://a.test/0"))
		time.Sleep(90 * time.Minute)
		kit.Must(t, c.Visit("http://a.test/1"))
		time.Sleep(3 * time.Hour)
		kit.Must(t, c.Visit("http://a.test/2"))
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2h0m0s /0, 4h0m0s /robots.txt, 6h0m0s /1, 9h0m0s /robots.txt, 11h0m0s /2")
	})
}

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
