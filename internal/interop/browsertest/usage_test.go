package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// TestUsage checks what the page shows of pages whose owners disallow the purpose of the crawl.
func TestUsage(t *testing.T) {
	c := newCrawl(t, robotstest.Sites{"press.example": pages(3, "User-agent: *\nDisallow:\nContent-Usage: train-ai=n\n")},
		collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true))
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start("http://press.example/", "http://press.example/1")
	b.fact("two denials", func() bool { return c.robots.Stats().Decisions[report.ReasonUsage] == 2 },
		`document.querySelector("#denied-why").textContent === "2 × the owner disallows this use"`)
	list := `document.querySelector("#denial-list").innerText.replace(/\s+/g, " ")`
	b.within(soon, has(list, "the owner disallows this use 2 ×"))
	b.within(soon, has(list, "train-ai in robots.txt, line 3"))
	b.within(soon, has(list, "http://press.example/1"))
	b.quiet(c.page)
	if page := c.served(t); !strings.Contains(page, "the owner disallows this use: train-ai in robots.txt, line 3") {
		t.Errorf("not on the page without scripts:\n%s", page)
	}

	b.run(chromedp.Navigate("about:blank"))
	b.run(chromedp.Navigate(c.page))
	b.within(soon, has(list, "the owner disallows this use 2 ×"))
}

// TestDisallowedUses checks what the page shows of pages that were requested although their headers
// disallow a use, and of responses that ask for a license.
func TestDisallowedUses(t *testing.T) {
	c := newCrawl(t, robotstest.Sites{"press.example": {
		"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Usage", "train-ai=n, search=y")
		}),
		"/sold": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "License")
			w.WriteHeader(http.StatusUnauthorized)
		}),
	}}, collyrobots.Purpose(usage.TrainAI))
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start("http://press.example/", "http://press.example/sold")
	b.within(soon, `document.querySelector("#signals").textContent === "1 disallow train-ai · 1 ask for a license"`)
	b.quiet(c.page)
}
