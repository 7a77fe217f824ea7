package browsertest

import (
	"bytes"
	"crypto/ed25519"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// TestTagsAndSignatures checks what the page shows of robots tags, links with nofollow and signed
// requests, in windows of three widths.
func TestTagsAndSignatures(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	signer, err := webbotauth.NewSigner(key, "https://bot.test"+webbotauth.DirectoryPath, webbotauth.Draft)
	if err != nil {
		t.Fatal(err)
	}
	c := newCrawl(t, robotstest.Sites{"tags.example": {
		"/": `<meta name="robots" content="noindex"><a href="/a">a</a><a href="/b" rel="nofollow">b</a>`,
		"/a": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Robots-Tag", "none")
		}),
		"*": robotstest.Page(),
	}}, collyrobots.EnforceNofollow(true), collyrobots.SignRequests(signer))
	b := open(t)
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	b.within(soon, `document.querySelector("#signals").textContent === "0 requests signed"`)
	c.start("http://tags.example/")
	b.within(soon, `document.querySelector("#signals").textContent === "2 noindex · 1 nofollow · 3 requests signed"`)
	b.within(soon, has(`document.querySelector("#denied-why").textContent`, "1 × the page with the link says nofollow"))
	b.within(soon, has(`document.querySelector("#denial-list").textContent`, "the page with the link says nofollow"))
	for _, width := range []int64{375, 800, 1280} {
		b.run(chromedp.EmulateViewport(width, 800))
		b.within(soon, `document.documentElement.scrollWidth <= innerWidth`)
	}
	b.quiet(c.page)
}
