package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// soon is how long a test waits until the page shows a new fact. The page is updated twice a
// second, but a browser on a busy machine may need much longer.
const soon = 30 * time.Second

// fact waits until a condition holds for the crawl, and then until the page shows it.
func (b *tab) fact(what string, holds func() bool, shown string) {
	b.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("the crawl did not reach: %s", what)
		}
	}
	b.within(soon, shown)
}

// row returns an expression for the text of a host's row.
func row(host string) string {
	return fmt.Sprintf(`([...document.querySelectorAll("#rows tr")].find(r => r.querySelector(".name").textContent === %q)?.innerText ?? "").replace(/\s+/g, " ")`, host)
}

func has(expression, text string) string { return fmt.Sprintf("(%s).includes(%q)", expression, text) }

// TestThePageShowsTheCrawl checks what the page shows while a demo crawl runs.
func TestThePageShowsTheCrawl(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	b.within(soon, `document.querySelector("#left-why").textContent === "No page is waiting."`)
	c.startAll()

	stats := func(host string) (found report.HostStats) {
		for _, s := range c.robots.Stats().Hosts {
			if s.Host == host {
				found = s
			}
		}
		return found
	}
	for host, delay := range map[string]string{"slow.example": "20 s Crawl-delay, robots.txt line 4", "shop.example": "2 s Crawl-delay, robots.txt line 2",
		"wiki.example": "1.5 s Crawl-delay, robots.txt line 10", "news.example": "0.25 s MinDelay", "blog.example": "0.25 s", "broken.example": "closed: robots.txt 500, next try in"} {
		b.fact(host, func() bool { return len(c.web.Log(host)) > 0 }, row(host)+` !== ""`)
		b.fact(host+"'s delay", func() bool { return stats(host).Source != "" }, has(row(host), delay))
	}
	b.fact("waiting pages", func() bool { return stats("slow.example").Waiting == 12 }, has(row("slow.example"), " 12 "))
	b.fact("a pause", func() bool { return stats("pause.example").Source == report.SourceRetryAfter }, has(row("pause.example"), "paused Retry-After"))
	b.within(soon, has(`document.querySelector("#left-why").textContent`, "slow.example takes longest: 12 pages, one every 20 s (Crawl-delay, robots.txt line 4)"))
	b.fact("a denial", func() bool { return stats("shop.example").Denied > 0 }, has(`document.querySelector("#denial-list").innerText.replace(/\s+/g, " ")`,
		"Disallow: /cart"))
	b.within(soon, has(`document.querySelector("#denial-list").innerText.replace(/\s+/g, " ")`, "line 3 of http://shop.example/robots.txt, group *"))
	b.within(soon, has(`document.querySelector("#denial-list").innerText`, "http://shop.example/cart"))
	b.fact("an unreadable robots.txt", func() bool { return stats("broken.example").Denied > 0 }, has(`document.querySelector("#denial-list").innerText`, "cannot be read"))
	b.within(soon, has(`document.querySelector("#sitemap-list").innerText`, "http://shop.example/sitemap.xml"))
	b.within(soon, `document.querySelectorAll("#rows .dots.page[d^=M]").length >= 4`)
	b.within(soon, `/^[1-9]\d*\.\d/.test(document.querySelector("#gap").textContent)`)
	b.within(soon, `[...document.querySelectorAll(".card .figure")].every(e => e.offsetHeight < 50)`) // one line each
	b.quiet(c.page)
}

// TestTheViewer checks the decisions of every dialect about one URL.
func TestTheViewer(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start("http://wiki.example/")
	b.within(soon, has(`document.querySelector("#file").innerText`, "Thank you for reading")) // the page shows the file of the first denial by itself
	b.run(chromedp.SetValue("#try-url", "/user/anna"), chromedp.SetValue("#try-name", "coccoc"), chromedp.Focus("#try button"), chromedp.KeyEvent(kb.Enter))
	readings := `document.querySelector("#readings").innerText.replace(/\s+/g, " ")`
	b.within(soon, has(readings, "coccoc ✕ denied line 17: Disallow: /"))
	b.within(soon, has(`document.querySelector("#file li.no .n").textContent`, "17"))
	b.within(soon, has(`document.querySelector("#verdict").textContent`, "Denied for this crawl (rfc9309, group ExampleBot): line 11"))
	b.run(chromedp.SetValue("#try-url", "http://elsewhere.example/"), chromedp.Focus("#try button"), chromedp.KeyEvent(kb.Enter))
	b.within(soon, has(`document.querySelector("#no-file").textContent`, "has not read this file"))
	if n := len(c.web.Log("elsewhere.example")); n != 0 {
		t.Errorf("%d requests", n)
	}
	b.quiet(c.page)
}

// TestFileOfTwoHosts opens the file of a host, and that of another one before the first response has
// arrived. The viewer then does not ask for the file of the first host again.
func TestFileOfTwoHosts(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.Navigate(c.page))
	b.within(soon, `document.querySelector("#app") !== null`)
	b.run(chromedp.Evaluate[chromedp.Void](`(async () => {
		const viewer = await import(new URL("robots.js", document.querySelector("script[type=module]").src));
		const answers = {};
		window.asked = [];
		window.fetch = at => new Promise(resolve => {
			const file = new URLSearchParams(at.split("?")[1]).get("robots");
			asked.push(file);
			answers[file] = () => resolve(new Response(JSON.stringify({ robots: file })));
		});
		const none = viewer.open("http://none.example/robots.txt", "/");
		answers["http://none.example/robots.txt"]();
		await none;
		const one = viewer.openHost("one.example");
		const two = viewer.open("http://two.example/robots.txt", "/");
		answers["https://one.example/robots.txt"]();
		await Promise.race([one, new Promise(resolve => setTimeout(resolve, 500))]);
		answers["http://two.example/robots.txt"]();
		await two;
		window.ready = true;
	})()`))
	b.within(soon, `window.ready === true`)
	if got, want := eval[string](b, `asked.join(" ")`), "http://none.example/robots.txt https://one.example/robots.txt http://two.example/robots.txt"; got != want {
		t.Errorf("the page has asked for %s, want %s", got, want)
	}
}

// TestHostileNames checks that texts with markup and scripts appear as plain text.
func TestHostileNames(t *testing.T) {
	long := strings.Repeat("x", 2000)
	hostile := []string{`/<script>document.title="owned"</script>`, `/"onmouseover="document.title='owned'`, "/'><img/src=x onerror=document.title='owned'>",
		"/\u202egnp.exe\u202c", "/\u2066rtl\u05d0\u05d1\u2069", "/" + long, "/</code></li><b>bold</b>", "/{{.}}${1}`", "/\x00\x07bell"}
	robots := "User-agent: <b>*</b>\nUser-agent: *\n# <script>document.title='owned'</script>\n"
	for _, name := range hostile {
		robots += "Disallow: " + name + "\n"
	}
	site := robotstest.Site{"/robots.txt": robots + "Sitemap: http://a.test/<svg onload=document.title='owned'>.xml\n", "*": "fine"}
	c := newCrawl(t, robotstest.Sites{"a.test": site}, collyrobots.MinDelay(time.Millisecond))
	b := open(t)
	b.run(chromedp.EmulateViewport(360, 740), chromedp.Navigate(c.page))
	for _, name := range hostile {
		c.start("http://a.test" + strings.NewReplacer("\x00", "%00", "\x07", "%07").Replace(name))
	}
	b.within(soon, fmt.Sprintf(`document.querySelectorAll("#denial-list > li").length >= %d`, len(hostile)-2))
	b.within(soon, has(`document.querySelector("#file").textContent`, "<script>document.title='owned'</script>"))
	b.within(soon, has(`document.querySelector("#file").textContent`, `\u202egnp.exe`))
	for expression, want := range map[string]int{
		`document.querySelectorAll("script").length`: 1,
		`document.querySelectorAll("img:not(h1 img), svg[onload], b:not(:empty) b, iframe, object, [onerror]").length`: 0,
		`(document.body.textContent.match(/[\u202a-\u202e\u2066-\u2069\u0000-\u0008]/g) ?? []).length`:                 0,
		`document.documentElement.scrollWidth - innerWidth`:                                                            0,
		`[...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length`: 0,
		`[...document.querySelectorAll("b")].filter(e => e.textContent === "bold").length`:                             0,
		`document.title === "Crawl" ? 1 : 0`:                                                                           1,
	} {
		if got := eval[int](b, expression); got != want {
			t.Errorf("%s: %d, want %d", expression, got, want)
		}
	}
	b.quiet(c.page)
}

// TestWithoutScripts checks the tables that browsers without scripts show, and that the page
// reloads.
func TestWithoutScripts(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	c.startSlow()
	c.start("http://shop.example/")
	for end := time.Now().Add(20 * time.Second); !strings.Contains(c.served(t), "http://shop.example/sitemap.xml"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the sitemap is not on the page")
		}
	}
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.EmulateViewport(1000, 800), chromedp.Navigate(c.page))
	text := result(b, chromedp.Text("body"))
	for _, want := range []string{"slow.example takes longest", "Crawl-delay, robots.txt line 4", "Disallow: /cart, line 3", "http://shop.example/sitemap.xml"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page:\n%s", want, text)
		}
	}
	documents := func() (n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, u := range b.requests {
			if u == c.page {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(8 * time.Second); documents() < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the page does not reload")
		}
	}
	b.quiet(c.page)
}

// TestKeyboard checks that the page can be used without a mouse.
func TestKeyboard(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start("http://slow.example/", "http://shop.example/", "http://wiki.example/")
	b.within(soon, `document.querySelectorAll("#rows tr").length === 3`)
	b.run(chromedp.KeyEvent(kb.Tab))
	b.within(soon, `document.activeElement.className === "skip"`)
	b.run(call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Text: "/"}),
		call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "/"}))
	b.within(soon, `document.activeElement.id === "q"`)
	b.run(chromedp.KeyEvent("wiki"))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 1`)
	b.run(chromedp.KeyEvent(strings.Repeat(kb.Backspace, 4)))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 3`)
	unseen := ""
	for range 40 { // every control can be reached, and shows that it has the focus
		b.run(chromedp.KeyEvent(kb.Tab))
		if !eval[bool](b, `document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			unseen += eval[string](b, `document.activeElement.outerHTML.slice(0, 80)`) + "\n"
		}
		if eval[bool](b, `document.activeElement.textContent === "slow.example"`) {
			break
		}
	}
	if unseen != "" {
		t.Errorf("the focus is not visible on\n%s", unseen)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelector("#drawer").open && document.querySelector("#drawer").contains(document.activeElement)`)
	b.within(soon, has(`document.querySelector("#drawer-file").innerText`, "Our server is old"))
	b.run(chromedp.KeyEvent(kb.Escape))
	b.within(soon, `!document.querySelector("#drawer").open && document.activeElement.textContent === "slow.example"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelector("#drawer").open`)
	b.run(chromedp.Focus("#drawer-try"), chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.activeElement.id === "robots"`)
	b.within(soon, has(`document.querySelector("#file").innerText`, "Our server is old"))
	b.run(chromedp.Focus(`[data-sort="host"]`), chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelector("#rows .name").textContent === "shop.example" && document.querySelector("[aria-sort]").ariaSort === "ascending"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelector("#rows .name").textContent === "wiki.example"`)
	b.quiet(c.page)
}

// contrast is an expression for the lowest contrast between a text of the page and its background,
// and for its place. See WCAG 2, 1.4.3.
const contrast = `(() => {
	const parts = c => (c.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
	const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	let least = [99, ""];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement, s = getComputedStyle(e);
		if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest("noscript, script, :disabled")) continue;
		const a = light(parts(e.closest("svg") ? s.fill : s.color)), b = light(behind(e));
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < least[0]) least = [ratio, e.className + ": " + walk.currentNode.data];
	}
	return least;
})()`

// TestLightAndDark checks that every text is legible in light and dark mode at every width, and
// that the page does not scroll sideways.
func TestLightAndDark(t *testing.T) {
	c := newCrawl(t, demoSites())
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.startAll()
	b.within(soon, `document.querySelectorAll("#rows tr").length === 8 && document.querySelectorAll("#denial-list > li").length > 3 && !document.querySelector("#file").hidden`)
	colours := make(map[string]bool)
	for _, scheme := range []string{"light", "dark"} {
		b.run(media(scheme))
		colours[eval[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
		for _, width := range []int64{360, 640, 900, 1180, 1440, 2560} {
			b.run(chromedp.EmulateViewport(width, 800), chromedp.Sleep(100*time.Millisecond))
			if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s, %d px wide: %d px too wide", scheme, width, over)
			}
			least := eval[[]any](b, contrast)
			if ratio, _ := least[0].(float64); ratio < 4.5 || ratio > 21 {
				t.Errorf("%s, %d px wide: contrast %.2f of %q", scheme, width, ratio, least[1])
			}
		}
	}
	if len(colours) != 2 {
		t.Errorf("the backgrounds are %v", colours)
	}
	b.quiet(c.page)
}

// TestAThousandHosts checks that the search finds one host among a thousand.
func TestAThousandHosts(t *testing.T) {
	c := newCrawl(t, robotstest.Sites{"a.test": {"/": http.StatusOK}}, collyrobots.IgnoreRobots(collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}))
	for i := range 1000 {
		if _, err := c.robots.Check(t.Context(), fmt.Sprintf("http://h%d.test/", i)); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 50 && document.querySelector("#count").textContent === "50 of 1,000 hosts"`)
	b.run(chromedp.Focus("#more"), chromedp.KeyEvent(kb.Enter))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 200`)
	b.run(chromedp.SendKeys("#q", "h777"))
	b.within(soon, `document.querySelectorAll("#rows tr").length === 1 && document.querySelector("#rows .name").textContent === "h777.test"`)
	b.quiet(c.page)
}
