package browsertest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	screenshots = flag.String("screenshots", "", "write the screenshots of the documentation to this `folder`")
	age         = flag.Duration("age", 45*time.Second, "the age of the demo crawl on the screenshots")
)

// TestScreenshots makes the screenshots of the documentation:
//
//	go test -run Screenshots -screenshots ../../../docs/img
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("runs only with -screenshots FOLDER")
	}
	c := newCrawl(t, demoSites())
	b := open(t)
	c.startAll()
	b.run(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(c.page))
	time.Sleep(*age)
	b.run(chromedp.SetValue("#try-url", "http://wiki.example/user/guide"), chromedp.SetValue("#try-name", "ExampleBot"), chromedp.Focus("#try button"), chromedp.KeyEvent(kb.Enter),
		chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); scrollTo(0, 0)`))
	for _, picture := range []struct {
		name, scheme string
		width        int64
	}{
		{"view-light.png", "light", 1440},
		{"view-dark.png", "dark", 1440},
		{"view-narrow.png", "light", 390},
	} {
		b.run(media(picture.scheme), chromedp.EmulateViewport(picture.width, 844), chromedp.Sleep(time.Second))
		height := eval[float64](b, `document.documentElement.scrollHeight`)
		beyond := true
		shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond,
			Clip:                  &page.Viewport{Width: float64(picture.width), Height: min(height, 2000), Scale: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, picture.name), shot.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// media makes the browser prefer a color scheme.
func media(scheme string) chromedp.Action[chromedp.Void] {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}
