package collectors

import (
	"context"
	"errors"
	"fmt"
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

func TestEndOfContextEndsWaitOfRetry(t *testing.T) {
	kit.ForEachClient(t, testEndOfContextEndsWaitOfRetry)
}

func testEndOfContextEndsWaitOfRetry(t *testing.T, start kit.Starter) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 60", "/0": robotstest.Page(), "/1": kit.DropFirst(robotstest.Page()),
	}}, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 130*time.Second)
		defer cancel()
		c := start(t, web, []colly.CollectorOption{colly.StdlibContext(ctx)})
		c.Visit("http://a.test/0")
		if err := c.Visit("http://a.test/1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 130*time.Second {
			t.Errorf("Visit returned %v after %v", err, time.Since(began))
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1m0s /0, 2m0s /1")
	})
}

// TestContextMayBeReplaced checks that the crawl continues with a new context after the old one has
// ended, and keeps the delay of the host.
func TestContextMayBeReplaced(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		for i := range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			c.Context = ctx
			c.Visit(fmt.Sprint("http://a.test/", i)) // the time is too short for every second page
			cancel()
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1, 20s /3")
		if len(c.Denied) != 2 || !errors.Is(c.Denied["http://a.test/2"], context.DeadlineExceeded) {
			t.Errorf("OnDenied got %v", c.Denied)
		}
	})
}
