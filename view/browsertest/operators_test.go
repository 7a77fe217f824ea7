package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// denialList is an expression for the text of the list of denials.
const denialList = `document.querySelector("#denial-list").innerText.replace(/\s+/g, " ")`

// TestHoursAndAdaptiveDelay checks what the page says about a host that is closed, in the time zone
// of the browser, and about one with an adaptive delay.
func TestHoursAndAdaptiveDelay(t *testing.T) {
	slow := func(out http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		out.Write([]byte(robotstest.Page()))
	}
	sites := robotstest.Sites{
		"night.example":    pages(3, "User-agent: *\nDisallow: /x\n"),
		"adaptive.example": {"/robots.txt": http.StatusNotFound, "*": http.HandlerFunc(slow)},
	}
	opens := time.Now().Add(5 * time.Hour).UTC().Truncate(time.Minute)
	c := newCrawl(t, sites,
		collyrobots.ForHosts("night.example", collyrobots.CrawlHours(opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), time.UTC)),
		collyrobots.ForHosts("adaptive.example", collyrobots.AdaptiveDelay(4)))
	b := open(t)
	b.run(emulation.SetTimezoneOverride("Asia/Kathmandu"), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.start("http://night.example/1")
	for i := range 9 {
		c.start(fmt.Sprint("http://adaptive.example/", i))
	}
	kathmandu := time.FixedZone("", 20700)
	shown := opens.In(kathmandu).Format("15:04")
	if opens.In(kathmandu).Day() != time.Now().In(kathmandu).Day() {
		shown = opens.In(kathmandu).Format("Mon 15:04")
	}
	b.within(soon, has(row("night.example"), "closed until "+shown+" (CrawlHours of this crawl)"))
	b.within(soon, has(row("adaptive.example"), "AdaptiveDelay, the host responds in 0."))
	if text := c.served(t); !strings.Contains(text, "closed until "+opens.Local().Format("2 Jan 15:04 MST")) {
		t.Errorf("the page without scripts does not say when the host opens:\n%s", text)
	}
	b.quiet(c.page)
}

// TestReplacedRobotsTxt checks that the page says which option has decided in place of a robots.txt
// or of the dialect.
func TestReplacedRobotsTxt(t *testing.T) {
	sites := robotstest.Sites{
		"own.example":       pages(3, "User-agent: *\nDisallow: /\n"),
		"forbidden.example": {"/robots.txt": http.StatusForbidden, "*": robotstest.Page()},
	}
	c := newCrawl(t, sites, collyrobots.WhenForbidden(collyrobots.DenyAll),
		collyrobots.ForHosts("own.example", collyrobots.RobotsTxt([]byte("# by letter of 3 May\nUser-agent: *\nDisallow: /2\n"))))
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.start("http://own.example/2", "http://forbidden.example/")
	b.within(soon, has(denialList, "line 3 of the option RobotsTxt for own.example, group *"))
	b.within(soon, has(denialList, "http://forbidden.example/robots.txt, status 403, by the option WhenForbidden"))
	b.run(chromedp.SetValue("#try-url", "http://own.example/2"), chromedp.Click("#try button"))
	b.within(soon, has(`document.querySelector("#robots-where").textContent`, "the option RobotsTxt, in place of http://own.example/robots.txt"))
	b.within(soon, has(`document.querySelector("#file").innerText`, "by letter of 3 May"))
	b.within(soon, has(`document.querySelector("#verdict").textContent`, "line 3, by the option RobotsTxt"))
	b.quiet(c.page)
}
