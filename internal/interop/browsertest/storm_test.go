package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/view"
)

// fits checks in both color schemes and at three widths that the page does not scroll sideways and
// that every text is legible.
func (b *tab) fits(name string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.run(media(scheme))
		for _, width := range []int64{375, 800, 1280} {
			b.run(chromedp.EmulateViewport(width, 900), chromedp.Sleep(200*time.Millisecond))
			if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				b.Errorf("%s, %s, %d px wide: %v px too wide", name, scheme, width, over)
			}
			least := eval[[]any](b, contrast)
			if ratio, _ := least[0].(float64); ratio < 4.5 || ratio > 21 {
				b.Errorf("%s, %s, %d px wide: contrast %.2f of %q", name, scheme, width, ratio, least[1])
			}
			b.picture(fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
		}
	}
}

// stormMessage returns a message of a crawl of n hosts in a storm of responses with status 429.
func stormMessage(n int) fields {
	var hosts []fields
	for i := range min(n, 50) {
		host := fields{"stats": fields{"host": fmt.Sprintf("shop%d.example", i), "source": "back_off", "delay": 4, "last_status": 429, "pages": 10, "failed": 10, "waiting": 40,
			"requests": 60, "next_start": "2026-11-22T13:20:04Z"}, "time_left": 160, "fresh": true, "starts": []any{},
			"statuses": fields{"2xx": 10, "throttled": 7, "5xx": 2, "none": 1}}
		if i == 0 {
			host["robots_fault"] = fields{"status": 503, "next_try": "2026-11-22T13:20:40Z"}
		}
		hosts = append(hosts, host)
	}
	return fields{
		"name": "books", "time": "2026-11-22T13:20:00Z", "started": "2026-11-22T12:00:00Z", "rate": 2.5,
		"totals": fields{"pages": 10 * n, "waiting": 40 * n, "denied": 3 * n, "failed": 10 * n},
		"known":  n, "matching": n, "busy": n, "hosts": hosts,
		"statuses": fields{"2xx": 10 * n, "throttled": 7 * n, "5xx": 2 * n, "none": n}, "throttled_rate": 3.2,
		"series":    fields{"from": 1763812800, "width": 60, "starts": []int{1, 5, 20, 40, 38}, "failures": []int{0, 0, 4, 30, 31}},
		"time_left": fields{"duration": 3600, "half": 60, "most": 600, "host": "shop0.example", "waiting": 40, "delay": 4, "source": "back_off"},
		"denials": []fields{{"host": "shop1.example", "robots_url": "https://shop1.example/robots.txt", "reason": "rule", "pattern": "/cart", "line": 2, "group": "*", "count": 2,
			"first": "2026-11-22T13:00:00Z", "last": "2026-11-22T13:00:00Z", "urls": []string{"https://shop1.example/cart/1"}}},
		"denied_rules": []fields{{"reason": "rule", "pattern": "/cart", "count": 2 * n, "hosts": min(n, 256), "more_hosts": n > 256}},
		"denied_by":    fields{"rule": 3 * n},
		"failed_reasons": []fields{{"status": 429, "reason": "Too Many Requests", "count": 7 * n, "hosts": min(n, 256), "more_hosts": n > 256, "urls": []string{"https://shop1.example/tea"}},
			{"reason": "connection refused", "count": n, "hosts": 1, "urls": []string{"https://shop1.example/cups"}}},
		"sitemaps": fields{"stats": fields{"files": 1, "entries": 100, "fed": 60, "refused": 40},
			"files": []any{fields{"url": "https://shop1.example/sitemap.xml", "host": "shop1.example", "entries": 100}}},
	}
}

// TestStorm checks the tiles and columns for failures, with 1, 50 and 2,000 hosts.
func TestStorm(t *testing.T) {
	for _, n := range []int{1, 50, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			page := showing(t, stormMessage(n), view.Options{Name: "books"})
			b := open(t)
			b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page))
			b.within(soon, fmt.Sprintf(`document.querySelectorAll("#rows tr").length === %d`, min(n, 50)))
			for element, want := range map[string]string{
				"#failed":         map[int]string{1: "10", 50: "500", 2000: "20,000"}[n],
				"#failed-why":     "× 429 or 503 per second now",
				"#rows .c-delay":  "closed: robots.txt 503, next try in ",
				"#rows .c-failed": "10",
				"#left-parts":     "50 % of the waiting pages in ",
				"h1":              "books",
				"#denial-list":    "Disallow: /cart",
				"#failure-list":   "429 Too Many Requests",
				"#failures-count": map[int]string{1: "10 pages", 50: "500 pages", 2000: "20,000 pages"}[n],
				"#feed-key":       "found through links before",
				"#denials-count":  map[int]string{1: "3 requests, 1 of them by other rules", 50: "150 requests, 50 of them by", 2000: "6,000 requests, 2,000 of them by"}[n],
			} {
				b.within(soon, has(fmt.Sprintf(`document.querySelector(%q).textContent`, element), want))
			}
			b.within(soon, `document.querySelector("#rows .c-failed").title === "10 × 2xx, 7 × 429 or 503, 2 × other 5xx, 1 × without a response"`)
			b.within(soon, `document.querySelector("#pages-bar").getAttribute("aria-label").includes("waiting")`)
			b.within(soon, `document.querySelector(".spark-failures").getAttribute("d").startsWith("M0.0 ")`)
			if alarm := eval[bool](b, `getComputedStyle(document.querySelector("#feed .refused")).backgroundColor === getComputedStyle(document.querySelector("#statuses-bar .throttled")).backgroundColor`); alarm {
				t.Error("pages that were found through links are shown as failures")
			}
			b.fits(fmt.Sprintf("storm-%d", n))
			b.quiet(page)
		})
	}
}

// TestEnd checks that the page shows how a crawl ended and then stands still.
func TestEnd(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.startSlow()
	b.within(soon, has(row("slow.example"), " 12 "))
	c.robots.Close()
	b.within(soon, `document.querySelector("#live").textContent === "ended"`)
	b.within(soon, has(`document.querySelector("#left-title").textContent`, "The crawl has ended"))
	b.within(soon, has(`document.querySelector("#left-why").textContent`, "It was closed while 1 host had pages."))
	b.within(soon, `/Left: 1[12] pages waiting when it was closed/.test(document.querySelector("#left-why").textContent)`)
	b.within(soon, has(`document.querySelector("#left-parts").textContent`, "It took "))
	age := eval[string](b, `document.querySelector("#age").textContent`)
	b.run(chromedp.Sleep(6 * time.Second))
	if now := eval[string](b, `document.querySelector("#age").textContent`); now != age {
		t.Errorf("the page goes on: %s, then %s", age, now)
	}
	b.fits("end")
	b.run(chromedp.SendKeys("#q", "nothing"))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 0`)
	b.quiet(c.page)
	if text := c.served(t); !strings.Contains(text, "It was closed while 1 host had pages. Left: 1") {
		t.Errorf("not on the page without scripts: %s", text)
	}
}

// TestClosedByRobots checks what the page says about a host whose robots.txt cannot be read.
func TestClosedByRobots(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.start("http://broken.example/", "http://blog.example/")
	b.fact("a denial", func() bool { return c.robots.Stats().Decisions[report.ReasonUnreachable] > 0 }, has(row("broken.example"), "closed: robots.txt 500, next try in "))
	b.within(soon, has(row("blog.example"), "0.25 s"))
	b.quiet(c.page)
}

// TestDrawer checks the details of one host.
func TestDrawer(t *testing.T) {
	site := pages(6, "User-agent: *\nDisallow: /private\n")
	site["/3"] = http.StatusBadGateway
	site["/4"] = http.StatusNotFound
	c := newCrawl(t, robotstest.Sites{"shop.example": site})
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.start("http://shop.example/")
	b.fact("all pages", func() bool { return len(c.web.Log("shop.example")) >= 8 }, has(row("shop.example"), "shop.example"))
	b.run(chromedp.Click("#rows .name"))
	for element, want := range map[string]string{
		"#drawer-host":     "shop.example",
		"#drawer-counts":   "0 waiting, 0 denied",
		"#drawer-statuses": "other 5xx1",
		"#drawer-gaps":     "1 to 1.1 × delay",
		"#drawer-requests": "502http://shop.example/3",
		"#drawer-file":     "Disallow: /private",
		"#drawer-robots":   "http://shop.example/robots.txt · status 200",
	} {
		b.within(soon, has(fmt.Sprintf(`document.querySelector(%q).textContent`, element), want))
	}
	b.within(soon, `location.search === "?host=shop.example"`)
	b.fits("drawer")
	b.run(chromedp.Reload())
	b.within(soon, `document.querySelector("#drawer").open && document.querySelector("#drawer-host").textContent === "shop.example"`)
	b.run(chromedp.Click("#drawer-close"))
	b.within(soon, `!document.querySelector("#drawer").open && location.search === ""`)
	b.quiet(c.page)
}

// TestQuestionInTheURL checks that the search and the order are in the URL of the page.
func TestQuestionInTheURL(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page))
	c.start("http://shop.example/", "http://wiki.example/", "http://blog.example/")
	b.within(soon, `document.querySelectorAll("#rows tr").length === 3`)
	for range 2 { // with the keyboard, because rows that arrive move the button away from the mouse
		b.run(chromedp.SendKeys(`[data-sort="host"]`, kb.Enter))
	}
	b.within(soon, `location.search === "?sort=-host"`)
	b.run(chromedp.SendKeys("#q", "i"))
	b.within(soon, `location.search === "?q=i&sort=-host" && document.querySelectorAll("#rows tr").length === 1`)
	b.run(chromedp.Navigate(c.page + "?q=.example&sort=-host"))
	b.within(soon, `[...document.querySelectorAll("#rows .name")].map(e => e.textContent).join(" ") === "wiki.example shop.example blog.example"`)
	b.within(soon, `document.querySelector("#q").value === ".example"`)
	b.quiet(c.page)
}

// TestReport checks that the report needs no other files, and that it fits.
func TestReport(t *testing.T) {
	c := newCrawl(t, demoSites())
	c.start("http://shop.example/", "http://news.example/", "http://broken.example/")
	going := func() bool {
		return c.robots.Stats().Totals.Pages >= 8 && strings.Contains(c.served(t), "http://shop.example/sitemap.xml")
	}
	for end := time.Now().Add(time.Minute); !going(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the crawl does not go on")
		}
	}
	c.robots.Close()
	b := open(t)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(c.page+"report.html"))
	text := `document.body.innerText.replace(/\s+/g, " ")`
	for _, want := range []string{"It was closed while", "Disallow: /cart", "shop.example", "http://shop.example/sitemap.xml", "2xx"} {
		b.within(soon, has(text, want))
	}
	b.fits("report")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.console) > 0 {
		t.Errorf("messages in the console: %q", b.console)
	}
	for _, u := range b.requests {
		if u != c.page+"report.html" && !strings.HasSuffix(u, "/favicon.ico") {
			t.Errorf("the report has requested %s", u)
		}
	}
}
