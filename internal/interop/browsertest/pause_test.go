package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestPause pauses one host and then all hosts with the buttons of the page, by the keyboard, and
// compares the page with the access log.
func TestPause(t *testing.T) {
	sites := robotstest.Sites{"a.example": robotstest.Pages(500, ""), "b.example": robotstest.Pages(500, "")}
	c := newCrawl(t, sites)
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start(locs("http://a.example", 500)...)
	c.start(locs("http://b.example", 500)...)
	paused := func(host string) func() bool {
		return func() bool {
			is := false
			c.robots.StatsFunc(func(h report.HostStats) { is = is || h.Host == host && h.Source == report.SourcePaused })
			return is
		}
	}
	press := func(selector string) { b.run(chromedp.Focus(selector), chromedp.KeyEvent(kb.Enter)) }
	b.within(soon, `document.querySelectorAll("#rows button.pause").length === 2`)
	press(`[aria-label="Pause a.example"]`)
	b.fact("the pause of a.example", paused("a.example"), has(row("a.example"), "paused by the operator"))
	b.within(soon, has(`document.querySelector("#pause-status").textContent`, "a.example: paused"))
	before, other := len(c.web.Log("a.example")), len(c.web.Log("b.example"))
	time.Sleep(time.Second)
	if n := len(c.web.Log("a.example")); n != before {
		t.Errorf("%d requests during the pause", n-before)
	}
	if n := len(c.web.Log("b.example")); n == other {
		t.Error("b.example is also paused")
	}
	press("#pause-all")
	b.fact("the pause of b.example", paused("b.example"), has(row("b.example"), "paused by the operator"))
	press(`[aria-label="Resume a.example"]`)
	b.fact("a.example goes on", func() bool { return len(c.web.Log("a.example")) > before+1 }, "!"+has(row("a.example"), "paused"))
	press("#resume-all")
	b.fact("b.example goes on", func() bool { return !paused("b.example")() }, "!"+has(row("b.example"), "paused"))
	b.within(soon, has(`document.querySelector("#pause-status").textContent`, "all hosts: resumed"))
	b.quiet(c.page)
}
