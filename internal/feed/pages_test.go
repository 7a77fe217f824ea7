package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/store"
)

func TestPages(t *testing.T) {
	w := newWorld(shop()).start(Options{Window: 1})
	w.async = true
	sites := slices.Values([]Site{
		{authority("http://shop.test"), []string{"http://shop.test/index.xml"}},
		{authority("http://cdn.test"), []string{"http://cdn.test/shop.xml"}},
		{authority("http://none.test"), nil},
	})
	var got, errs []string
	for p, err := range w.feed.Pages(t.Context(), w, sites) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		got = append(got, p.Loc)
	}
	w.want(t, "pages", strings.Join(got, " "), "http://shop.test/1 http://shop.test/2 http://shop.test/cart/3 http://shop.test/5 http://cdn.test/7")
	w.want(t, "errors", strings.Join(errs, " "), "http://shop.test/gone.xml: sitemap answered with status 404")
}

// TestPagesEndWithTheLoop checks that only the file that the loop needs is read ahead, and that
// everything ends with the loop.
func TestPagesEndWithTheLoop(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 100)...)}).start(Options{})
	sites := func(yield func(Site) bool) {
		if yield(Site{authority("http://a.test"), []string{"http://a.test/map.xml"}}) {
			t.Error("another site is asked for")
		}
	}
	n := 0
	for range w.feed.Pages(t.Context(), w, sites) {
		n++
		if n == 3 {
			break
		}
	}
	if got := w.feed.Count(Entries); got != 3 {
		t.Errorf("%d entries were read", got)
	}
}

func TestPagesEndWithTheContext(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 100)...)}).start(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range w.feed.Pages(ctx, w, slices.Values([]Site{{authority("http://a.test"), []string{"http://a.test/map.xml"}}})) {
		last = err
		if err == nil {
			n++
		}
		cancel()
	}
	if n != 1 || !errors.Is(last, context.Canceled) {
		t.Error(fmt.Sprint(n, " pages, the last error is ", last))
	}
}

// TestPagesEndWithAPageThatIsDone checks that a page may be done before it ends the loop.
func TestPagesEndWithAPageThatIsDone(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 3)...)}).start(Options{Resume: true, Store: store.NewMemory()})
	n := 0
	for p := range w.feed.Pages(t.Context(), w, slices.Values([]Site{{authority("http://a.test"), []string{"http://a.test/map.xml"}}})) {
		p.Done(Done)
		n++
		break
	}
	if n != 1 || w.feed.Count(Fed) != 1 {
		t.Errorf("%d pages, %d fed", n, w.feed.Count(Fed))
	}
}
