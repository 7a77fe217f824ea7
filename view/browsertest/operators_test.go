package browsertest

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// denialList is an expression for the text of the list of denials.
const denialList = `document.querySelector("#denial-list").innerText.replace(/\s+/g, " ")`

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
