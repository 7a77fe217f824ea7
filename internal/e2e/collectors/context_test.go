package collectors

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestEndOfContextEndsWaitOfRedirect checks the same for a redirect that waits.
func TestEndOfContextEndsWaitOfRedirect(t *testing.T) {
	kit.ForEachClient(t, testEndOfContextEndsWaitOfRedirect)
}

func testEndOfContextEndsWaitOfRedirect(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 30", "/": robotstest.Redirect("/1"), "/1": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		c := start(t, web, []colly.CollectorOption{colly.StdlibContext(ctx)})
		if err := c.Visit("http://a.test/"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 40*time.Second {
			t.Errorf("Visit returned %v after %v", err, time.Since(began))
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 30s /")
	})
}
