package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
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
	b.run(timezone("Asia/Kathmandu"), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
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
	b.run(chromedp.SetValue("#try-url", "http://own.example/2"), chromedp.Focus("#try button"), chromedp.KeyEvent(kb.Enter))
	b.within(soon, has(`document.querySelector("#robots-where").textContent`, "the option RobotsTxt, in place of http://own.example/robots.txt"))
	b.within(soon, has(`document.querySelector("#file").innerText`, "by letter of 3 May"))
	b.within(soon, has(`document.querySelector("#verdict").textContent`, "line 3, by the option RobotsTxt"))
	b.quiet(c.page)
}

// TestGroups checks what the page says about hosts that share one pace.
func TestGroups(t *testing.T) {
	sites := robotstest.Sites{
		"one.shop.example": pages(9, "User-agent: *\nCrawl-delay: 4\n"),
		"two.shop.example": pages(9, "User-agent: *\nDisallow: /x\n"),
		"alone.example":    pages(9, "User-agent: *\nDisallow: /x\n"),
	}
	c := newCrawl(t, sites, collyrobots.PaceBy(collyrobots.ByDomain))
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	for i := range 6 {
		c.start(fmt.Sprint("http://one.shop.example/", i), fmt.Sprint("http://two.shop.example/", i))
	}
	c.start("http://alone.example/1")
	for _, host := range []string{"one.shop.example", "two.shop.example"} {
		b.within(soon, has(row(host), "4 s Crawl-delay, robots.txt line 2 shares its pace with 1 other host (shop.example)"))
	}
	b.within(soon, row("alone.example")+`.includes("0.25 s")`)
	b.within(soon, has(`document.querySelector("#left-why").textContent`, ".shop.example takes longest: "))
	if text := c.served(t); !strings.Contains(text, "shares its pace with 1 other host (shop.example)") {
		t.Error("the page without scripts does not name the group")
	}
	b.quiet(c.page)
}

// TestUnchangedPages checks that the page counts pages that have not changed.
func TestUnchangedPages(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(robotstest.Page()))
	}
	sites := robotstest.Sites{"again.example": {"/robots.txt": http.StatusNotFound, "*": http.HandlerFunc(page)}}
	c := newCrawl(t, sites, collyrobots.MinDelay(20*time.Millisecond), collyrobots.Store(store.NewMemory()), collyrobots.Revalidate(collyrobots.Revalidation{}))
	c.collector.AllowURLRevisit = true
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	for range 2 {
		for i := range 3 {
			c.start(fmt.Sprint("http://again.example/", i))
		}
		c.visits.Wait()
		c.collector.Wait()
	}
	b.within(soon, has(row("again.example"), "3 pages unchanged"))
	b.within(soon, has(`document.querySelector("#pages-why").textContent`, " · 3 unchanged · "))
	if text := c.served(t); !strings.Contains(text, "3 pages unchanged") {
		t.Error("the page without scripts does not count unchanged pages")
	}
	b.quiet(c.page)
}

// TestRefusalsAndBudgets checks what the page says about a host that refuses requests, and about one
// whose budget is used up.
func TestRefusalsAndBudgets(t *testing.T) {
	sites := robotstest.Sites{
		"refusing.example": {"/robots.txt": http.StatusNotFound, "*": http.StatusForbidden},
		"rude.example":     {"/robots.txt": http.StatusNotFound, "*": http.StatusForbidden},
		"budget.example":   pages(9, "User-agent: *\nDisallow: /x\n"),
	}
	c := newCrawl(t, sites, collyrobots.MinDelay(20*time.Millisecond),
		collyrobots.ForHosts("refusing.example", collyrobots.StopAfterRefusals(3)), collyrobots.ForHosts("budget.example", collyrobots.MaxPagesPerHost(2)))
	b := open(t)
	b.run(timezone("Europe/Berlin"), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	for i := range 6 {
		c.start(fmt.Sprint("http://refusing.example/", i), fmt.Sprint("http://budget.example/", i))
		if i < 2 {
			c.start(fmt.Sprint("http://rude.example/", i))
		}
	}
	b.within(soon, `/refusing since \d\d:\d\d, next try (\w+ )?\d\d:\d\d/.test(`+row("refusing.example")+`)`)
	b.within(soon, has(row("rude.example"), "refused 2 requests in a row"))
	b.within(soon, has(row("budget.example"), "budget used up: 2 pages"))
	b.within(soon, has(denialList, "the host refuses requests 3 ×"))
	b.within(soon, has(denialList, "the budget of pages is used up 4 ×"))
	b.within(soon, has(`document.querySelector("#denied-why").textContent`, "3 × the host refuses requests, 4 × the budget of pages is used up"))
	b.within(soon, has(`document.querySelector("#left-why").textContent`, "No page is waiting. Hosts: 1 done, 1 over the budget, 1 refusing."))
	for _, want := range []string{"refusing since ", "budget used up: 2 pages", "refused 2 requests in a row", "the host refuses requests"} {
		if text := c.served(t); !strings.Contains(text, want) {
			t.Errorf("the page without scripts does not have %q", want)
		}
	}
	b.quiet(c.page)
}
