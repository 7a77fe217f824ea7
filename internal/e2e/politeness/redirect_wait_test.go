package politeness

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// firstOf returns the number of errors and one of them.
func firstOf(errs map[string]error) string {
	for url, err := range errs {
		return fmt.Sprintf("%d: %s: %v", len(errs), url, err)
	}
	return "0"
}

// TestRedirectGivesUpWhileItWaits checks that redirects that already wait for a host fail when the host
// asks for a long pause, so that they do not hold their slots of a LimitRule.
func TestRedirectGivesUpWhileItWaits(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/1": robotstest.Redirect("http://busy.test/1"), "/2": robotstest.Redirect("http://busy.test/2"), "/3": robotstest.Redirect("http://busy.test/3")},
		"busy.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 10\n", "*": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusTooManyRequests)
		})},
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 3})
		began := time.Now()
		for i := range 3 {
			c.Visit(fmt.Sprintf("http://a.test/%d", i+1))
		}
		c.Wait()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the crawl took %v, errors %v", took, c.Errs)
		}
		if got := len(web.Log("busy.test")); got != 2 {
			t.Errorf("busy.test got %d requests, want robots.txt and one page", got)
		}
	})
}
