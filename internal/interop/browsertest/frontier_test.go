package browsertest

import (
	"log/slog"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestFrontier checks what the page shows of the pages that wait on disk, in windows of three
// widths.
func TestFrontier(t *testing.T) {
	f, err := frontier.Open(t.TempDir(), frontier.MaxRecordedPerHost(30), frontier.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := newCrawl(t, robotstest.Sites{"slow.example": pages(40, "User-agent: *\nCrawl-delay: 20\n")}, collyrobots.Frontier(f))
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	c.start("http://slow.example/")
	c.start(locs("http://slow.example", 40)...)

	b.fact("pages over the budget", func() bool { return f.Stats().OverBudget == 11 }, has(`document.querySelector("#frontier-why").textContent`, "11 over the budget"))
	b.fact("waiting pages", func() bool { return f.Stats().Waiting == 29 }, `document.querySelector("#on-disk").textContent === "29"`)
	b.within(soon, has(`document.querySelector("#frontier-why").textContent`, "on 1 host, "))
	b.within(soon, has(row("slow.example"), " 30 ")) // with the page that waits in the process
	b.within(soon, has(`document.querySelector("#left-why").textContent`, "slow.example takes longest: 30 pages, one every 20 s"))
	for _, width := range []int64{375, 800, 1280} {
		b.run(chromedp.EmulateViewport(width, 800))
		b.within(soon, `document.documentElement.scrollWidth <= innerWidth && document.querySelector("#frontier").offsetWidth > 100`)
	}
	b.quiet(c.page)
}
