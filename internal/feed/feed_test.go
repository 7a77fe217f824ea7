package feed

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// shop is a site whose sitemaps cover all cases.
func shop() map[string]any {
	return map[string]any{
		"http://shop.test/index.xml":  index("http://shop.test/a.xml", "http://shop.test/b.xml.gz", "http://shop.test/gone.xml"),
		"http://shop.test/a.xml":      urlset("http://shop.test/1", "2020-01-01 http://shop.test/2", "http://shop.test/cart/3", "http://else.test/4"),
		"http://shop.test/b.xml.gz":   gzipped(urlset("2024-05-01 http://shop.test/5", "http://shop.test/1")),
		"http://cdn.test/shop.xml":    "-> /moved.xml",
		"http://cdn.test/moved.xml":   urlset("http://shop.test/6", "http://cdn.test/7"),
		"http://else.test/closed.xml": 403,
	}
}

func TestRun(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprint("async ", async), func(t *testing.T) {
			w := newWorld(shop())
			w.async = async
			w.allow = func(u *url.URL) (bool, Result) { return !strings.HasPrefix(u.Path, "/cart"), Done }
			w.start(Options{})
			w.crawl(t.Context(), "http://shop.test", "http://shop.test/index.xml", "http://cdn.test/shop.xml")
			w.want(t, "visited", w.visits(), "cdn.test/7 shop.test/1 shop.test/2 shop.test/5 shop.test/6")
			w.want(t, "asked for", w.asks(), "cdn.test/moved.xml cdn.test/shop.xml 302 shop.test/a.xml shop.test/b.xml.gz shop.test/gone.xml 404 shop.test/index.xml")
			w.wantCounts(t, map[Outcome]int{Files: 4, FilesFailed: 1, Entries: 8, Fed: 5, OutOfScope: 1, Duplicate: 1, Denied: 1, Errors: 1})
			w.want(t, "examples", fmt.Sprint(w.feed.Examples(Denied), w.feed.Examples(OutOfScope)), "[http://shop.test/cart/3] [http://else.test/4]")
		})
	}
}

func TestOptions(t *testing.T) {
	day := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		options Options
		want    string
		counts  map[Outcome]int
	}{
		"Since":    {Options{Since: day(2022)}, "shop.test/1 shop.test/5 shop.test/cart/3", map[Outcome]int{Files: 3, FilesFailed: 1, Entries: 6, Fed: 3, Old: 1, OutOfScope: 1, Duplicate: 1, Errors: 1}},
		"Keep":     {Options{Keep: func(e sitemap.Entry) bool { return strings.HasSuffix(e.Loc, "1") }}, "shop.test/1", map[Outcome]int{Files: 3, FilesFailed: 1, Entries: 6, Fed: 1, Dropped: 3, OutOfScope: 1, Duplicate: 1, Errors: 1}},
		"MaxURLs":  {Options{MaxURLs: 2}, "shop.test/1 shop.test/2", map[Outcome]int{Files: 2, Entries: 3, Fed: 2}},
		"ScopeAny": {Options{Scope: ScopeAny, MaxURLs: 4}, "else.test/4 shop.test/1 shop.test/2 shop.test/cart/3", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(shop()).start(test.options)
			w.crawl(t.Context(), "http://shop.test", "http://shop.test/index.xml")
			w.want(t, "visited", w.visits(), test.want)
			if test.counts != nil && test.options.MaxURLs == 0 {
				w.wantCounts(t, test.counts)
			}
		})
	}
}

// TestKeepOfDuplicates checks that Keep is called again for a page that it has dropped, and not for
// a page that it has kept.
func TestKeepOfDuplicates(t *testing.T) {
	for name, options := range map[string]Options{"as listed": {}, "newest first": {NewestFirst: true, MaxURLs: 10}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[string]any{
				"http://a.test/1.xml": urlset("2020-01-01 http://a.test/kept", "2020-01-01 http://a.test/old", "http://a.test/denied"),
				"http://a.test/2.xml": urlset("2024-01-01 http://a.test/kept", "2024-01-01 http://a.test/old", "http://a.test/denied"),
			})
			w.allow = func(u *url.URL) (bool, Result) { return u.Path != "/denied", Skipped }
			var calls []string
			options.Keep = func(e sitemap.Entry) bool {
				calls = append(calls, strings.TrimPrefix(e.Loc, "http://a.test/"))
				return !strings.HasSuffix(e.Loc, "/old") || e.LastMod.Year() == 2024
			}
			w.start(options)
			w.crawl(t.Context(), "http://a.test", "http://a.test/1.xml", "http://a.test/2.xml")
			slices.Sort(calls)
			w.want(t, "kept or dropped", strings.Join(calls, " "), "denied kept old old")
			w.want(t, "visited", w.visits(), "a.test/kept a.test/old")
			w.wantCounts(t, map[Outcome]int{Files: 2, Entries: 6, Fed: 2, Dropped: 1, Denied: 1, Duplicate: 2})
		})
	}
}

func TestEntryNamesItsSitemap(t *testing.T) {
	w := newWorld(shop()).start(Options{})
	var got []string
	w.take = func(e sitemap.Entry) bool {
		got = append(got, fmt.Sprint(e.Loc, " ", e.Sitemap, " ", e.Root))
		return true
	}
	w.crawl(t.Context(), "http://shop.test", "http://cdn.test/shop.xml")
	want := "http://shop.test/6 http://cdn.test/moved.xml http://cdn.test/moved.xml, http://cdn.test/7 http://cdn.test/moved.xml http://cdn.test/moved.xml"
	w.want(t, "entries", strings.Join(got, ", "), want)
}

func TestWellKnown(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]any
		want  string
	}{
		"the first":         {map[string]any{"http://a.test/sitemap.xml": urlset("http://a.test/1")}, "a.test/sitemap.xml"},
		"the second":        {map[string]any{"http://a.test/sitemap_index.xml": index()}, "a.test/sitemap.xml 404 a.test/sitemap_index.xml"},
		"a page for it all": {map[string]any{"http://a.test/sitemap.xml": "<html>", "http://a.test/sitemap_index.xml": "<html>"}, "a.test/sitemap.xml a.test/sitemap_index.xml"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(test.files).start(Options{WellKnown: true})
			w.crawl(t.Context(), "http://a.test")
			w.want(t, "asked for", w.asks(), test.want)
			w.want(t, "logged", w.log.String(), "")
		})
	}
	w := newWorld(nil).start(Options{})
	w.crawl(t.Context(), "http://a.test")
	w.want(t, "asked for", w.asks(), "")
}

// TestRelativeSitemap checks that a relative location is accepted, although the protocol does not
// allow it.
func TestRelativeSitemap(t *testing.T) {
	w := newWorld(map[string]any{"https://a.test/map.xml": urlset("https://a.test/1", "https://a.test/50%")}).start(Options{})
	w.crawl(t.Context(), "https://a.test", "/map.xml")
	w.want(t, "visited", w.visits(), "https://a.test/1 https://a.test/50%")
}

func TestTheEndOfTheContext(t *testing.T) {
	for _, async := range []bool{false, true} {
		w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 500)...)})
		w.async = async
		ctx, cancel := context.WithCancel(t.Context())
		before := 0
		w.visit = func(e sitemap.Entry) Result {
			if e.Loc == "http://a.test/20" {
				w.mu.Lock()
				defer w.mu.Unlock()
				before = len(w.visited)
				cancel()
			}
			return Done
		}
		w.start(Options{Window: 3})
		w.crawl(ctx, "http://a.test", "http://a.test/map.xml")
		if n := len(w.visited); before == 0 || n > before+3 {
			t.Errorf("async %v: %d pages were visited before the end, %d in all", async, before, n)
		}
	}
}

// TestUnfinishedEndsTheWalk checks that a page that the crawl cannot finish ends its walk, like the
// end of a context.
func TestUnfinishedEndsTheWalk(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 50)...)}).start(Options{})
	w.visit = func(e sitemap.Entry) Result {
		if e.Loc == "http://a.test/20" {
			return Unfinished
		}
		return Done
	}
	w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
	if n := len(w.visited); n != 21 {
		t.Errorf("%d pages were visited", n)
	}
}

func TestTheWindow(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 200)...)})
	w.async = true
	w.visit = func(sitemap.Entry) Result { time.Sleep(time.Millisecond); return Done }
	w.start(Options{Window: 5})
	w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
	if w.most != 5 || len(w.visited) != 200 {
		t.Errorf("%d pages were in flight at once, of %d", w.most, len(w.visited))
	}
}

// TestMaxURLsCountsWhatIsTaken checks that refused pages do not count toward MaxURLs.
func TestMaxURLsCountsWhatIsTaken(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 9)...)}).start(Options{MaxURLs: 3})
	w.take = func(e sitemap.Entry) bool { return strings.ContainsAny(e.Loc, "2468") }
	w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
	w.want(t, "visited", w.visits(), "a.test/2 a.test/4 a.test/6")
}

func TestNewestFirst(t *testing.T) {
	w := newWorld(map[string]any{
		"http://a.test/index.xml": index("http://a.test/1.xml", "http://a.test/2.xml"),
		"http://a.test/1.xml":     urlset("http://a.test/undated", "2020-01-01 http://a.test/2020", "2024-01-01 http://a.test/2024", "2025-01-01 http://a.test/refused"),
		"http://a.test/2.xml":     urlset("2022-01-01 http://a.test/2022", "2023-01-01 http://a.test/2023", "1999-01-01 http://a.test/1999"),
	}).start(Options{NewestFirst: true, MaxURLs: 3})
	w.take = func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "refused") }
	w.crawl(t.Context(), "http://a.test", "http://a.test/index.xml")
	w.want(t, "visited", strings.Join(w.visited, " "), "http://a.test/2024 http://a.test/2023 http://a.test/2022")
}

func TestOfferOfAKnownSite(t *testing.T) {
	f := New(Options{})
	site := dialect.Authority{Scheme: "http", Host: "a.test"}
	sitemaps := []string{"http://a.test/map.xml"}
	f.Offer(site, sitemaps)
	if n := testing.AllocsPerRun(100, func() { f.Offer(site, sitemaps) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	f.Offer(dialect.Authority{Scheme: "https", Host: "a.test"}, sitemaps)
	if n := f.waiting.Load(); n != 2 {
		t.Errorf("%d sites are pending, want 2", n)
	}
}

// TestCleanedDuplicates checks that pages whose cleaned URLs are equal are duplicates, and that the
// first of them is fed as it is listed.
func TestCleanedDuplicates(t *testing.T) {
	for name, options := range map[string]Options{"as listed": {}, "newest first": {NewestFirst: true, MaxURLs: 10}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[string]any{
				"http://a.test/1.xml": urlset("http://a.test/x?ref=1&p=1", "http://a.test/x?p=1", "http://a.test/x?p=2"),
				"http://a.test/2.xml": urlset("http://a.test/x?p=2&ref=7", "http://a.test/x?ref=2&p=1", "http://a.test/y"),
			})
			params := dialect.CleanParams{{Names: []string{"ref"}, Path: "/x"}}
			w.clean = params.Clean
			w.start(options)
			w.crawl(t.Context(), "http://a.test", "http://a.test/1.xml", "http://a.test/2.xml")
			w.want(t, "visited", w.visits(), "a.test/x?p=2 a.test/x?ref=1&p=1 a.test/y")
			w.wantCounts(t, map[Outcome]int{Files: 2, Entries: 6, Fed: 3, Duplicate: 3})
		})
	}
}
