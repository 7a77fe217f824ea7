package collyrobots_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
)

// urlset is a sitemap of locs; "2024-05-01 http://..." has a lastmod.
func urlset(locs ...string) string {
	var b strings.Builder
	b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for _, l := range locs {
		lastmod := ""
		if day, loc, ok := strings.Cut(l, " "); ok {
			l, lastmod = loc, "<lastmod>"+day+"</lastmod>"
		}
		fmt.Fprintf(&b, "<url><loc>%s</loc>%s</url>", l, lastmod)
	}
	return b.String() + "</urlset>"
}

func sitemapIndex(locs ...string) string {
	var b strings.Builder
	b.WriteString(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for _, l := range locs {
		fmt.Fprintf(&b, "<sitemap><loc>%s</loc></sitemap>", l)
	}
	return b.String() + "</sitemapindex>"
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.Bytes()
}

// shop is a site whose pages are found by its sitemaps alone.
func shop() map[string]site {
	return map[string]site{
		"shop.test": {
			"/robots.txt":   "User-agent: *\nDisallow: /cart\nSitemap: http://shop.test/index.xml\nSitemap: http://cdn.test/shop.xml\n",
			"/":             page(),
			"/index.xml":    sitemapIndex("http://shop.test/a.xml", "http://shop.test/b.xml.gz", "http://shop.test/gone.xml"),
			"/a.xml":        urlset("http://shop.test/1", "2020-01-01 http://shop.test/2", "http://shop.test/cart/3", "http://else.test/4"),
			"/b.xml.gz":     gzipped(urlset("2024-05-01 http://shop.test/5", "http://shop.test/1")),
			"/1":            page(),
			"/2":            page(),
			"/5":            page(),
			"/6":            page(),
			"/cart/3":       page(),
			"/other/denied": page(),
		},
		"cdn.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\n",
			"/shop.xml":   redirect("/moved.xml"),
			"/moved.xml":  urlset("http://shop.test/6", "http://cdn.test/7"),
			"/7":          page(),
		},
		"else.test": {"/robots.txt": noDenys, "/4": page()},
	}
}

func TestSitemapsAreCrawled(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, shop())
			var denied []string
			c := w.start(t, options, collyrobots.FollowSitemaps(collyrobots.Feed{
				Denied: func(d collyrobots.Decision) { denied = append(denied, fmt.Sprint(d.URL, " ", d.Rule)) },
			}))
			c.Visit("http://shop.test/")
			c.Wait()
			if got, want := strings.Join(denied, ", "), "http://shop.test/cart/3 Disallow: /cart"; got != want {
				t.Errorf("denied: %s, want %s", got, want)
			}
			if got, want := w.sortedURIs("shop.test"), "/ /1 /2 /5 /6 /a.xml /b.xml.gz /gone.xml /index.xml /robots.txt"; got != want {
				t.Errorf("shop.test was asked for %s, want %s", got, want)
			}
			if got, want := w.sortedURIs("cdn.test"), "/7 /moved.xml /robots.txt /shop.xml"; got != want {
				t.Errorf("cdn.test was asked for %s, want %s", got, want)
			}
			if got := w.uris("else.test"); got != "" {
				t.Errorf("else.test, out of scope, was asked for %s", got)
			}
			want := collyrobots.FeedStats{Files: 4, FilesFailed: 1, Entries: 8, Fed: 5, OutOfScope: 1, Duplicate: 1, Denied: 1, Errors: 1}
			if got := c.robots.Stats().Sitemaps; got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestFeedOptions(t *testing.T) {
	w := newWeb(t, shop())
	var sunk []string
	c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{
		Since:   time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC),
		Keep:    func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "/6") },
		Sink:    func(url string) error { sunk = append(sunk, url); return nil },
		MaxURLs: 3,
	}))
	c.Visit("http://shop.test/")
	if got, want := strings.Join(sunk, " "), "http://shop.test/1 http://shop.test/5 http://cdn.test/7"; got != want {
		t.Errorf("fed %s, want %s", got, want)
	}
	if got := c.robots.Stats().Sitemaps; got.Old != 1 || got.Fed != 3 {
		t.Errorf("%+v", got)
	}
}

func TestFedRequestsKnowTheirSitemap(t *testing.T) {
	w := newWeb(t, shop())
	c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	told := map[string]string{}
	c.OnResponse(func(r *colly.Response) {
		told[r.Request.URL.Path] = r.Ctx.Get(collyrobots.CtxSitemap) + " " + r.Ctx.Get(collyrobots.CtxLastMod)
	})
	c.Visit("http://shop.test/")
	for path, want := range map[string]string{
		"/":  " ",
		"/1": "http://shop.test/a.xml ",
		"/5": "http://shop.test/b.xml.gz 2024-05-01T00:00:00Z",
		"/6": "http://cdn.test/moved.xml ",
	} {
		if told[path] != want {
			t.Errorf("%s knows %q, want %q", path, told[path], want)
		}
	}
}

// bigShop lists n pages in one sitemap.
func bigShop(n int, robots string) map[string]site {
	s := pages(n, robots+"Sitemap: http://a.test/map.xml\n")
	var locs []string
	for i := range n {
		locs = append(locs, fmt.Sprintf("http://a.test/%d", i))
	}
	s["/"], s["/map.xml"] = page(), urlset(locs...)
	return map[string]site{"a.test": s}
}

func TestWindowBoundsWhatIsUnderWay(t *testing.T) {
	w := newWeb(t, bigShop(300, noDenys))
	c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 5}))
	var under, most atomic.Int32
	c.OnRequest(func(r *colly.Request) {
		if n := under.Add(1); n > most.Load() {
			most.Store(n)
		}
	})
	c.OnScraped(func(*colly.Response) { under.Add(-1) })
	c.Visit("http://a.test/")
	c.Wait()
	// The window's place is given back just before this test's own OnScraped counts it, and the first page is under way as well.
	if n := most.Load(); n < 2 || n > 2*5+1 {
		t.Errorf("%d requests were under way at once", n)
	}
	if n := len(w.hits("a.test")); n != 303 {
		t.Errorf("%d requests, want 303", n)
	}
}

// A later callback's abort is told to nobody. The window must not fill with what will never be done.
func TestTheWindowOutlivesLaterAborts(t *testing.T) {
	w := newWeb(t, bigShop(12, noDenys))
	c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 4}))
	c.OnRequest(func(r *colly.Request) {
		if r.URL.Path == "/1" || r.URL.Path == "/2" {
			r.Abort()
		}
	})
	c.Visit("http://a.test/")
	c.Wait()
	if n := len(w.hits("a.test")); n != 13 {
		t.Errorf("%d requests, want 13: %s", n, w.uris("a.test"))
	}
}

func TestWellKnownSitemaps(t *testing.T) {
	w := newWeb(t, map[string]site{
		"a.test": {"/robots.txt": noDenys, "/": page(), "/sitemap.xml": urlset("http://a.test/1"), "/1": page(), "/sitemap_index.xml": page()},
		"b.test": {"/": page(), "/sitemap_index.xml": sitemapIndex("http://b.test/map.xml"), "/map.xml": urlset("http://b.test/1"), "/1": page()},
		"c.test": {"/robots.txt": 503},
		"d.test": {"/robots.txt": "Sitemap: http://d.test/map.xml", "/": page(), "/map.xml": urlset("http://d.test/1"), "/1": page()},
	})
	for _, wellKnown := range []bool{false, true} {
		c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: wellKnown}))
		for _, host := range []string{"a", "b", "c", "d"} {
			c.Visit("http://" + host + ".test/")
		}
		if named := c.robots.Stats().Sitemaps.Fed == 1; named == wellKnown {
			t.Errorf("WellKnown %v: %+v", wellKnown, c.robots.Stats().Sitemaps)
		}
	}
	for host, want := range map[string]string{
		"a.test": "/robots.txt / /robots.txt / /sitemap.xml /1",
		"b.test": "/robots.txt / /robots.txt / /sitemap.xml /sitemap_index.xml /map.xml /1",
		"c.test": "/robots.txt /robots.txt",
		"d.test": "/robots.txt / /map.xml /1 /robots.txt / /map.xml /1",
	} {
		if got := w.uris(host); got != want {
			t.Errorf("%s was asked for %s, want %s", host, got, want)
		}
	}
}

func TestASiteClosedToPagesStillFeeds(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /\nAllow: /map.xml\nAllow: /open\nSitemap: http://a.test/map.xml\n",
		"/map.xml":    urlset("http://a.test/open", "http://a.test/closed"), "/open": page(), "/closed": page(),
	}})
	c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.Visit("http://a.test/")
	c.Wait()
	if got, want := w.uris("a.test"), "/robots.txt /map.xml /open"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
}

func TestSitemapsObeyRobotsTxtAndPace(t *testing.T) {
	sites := map[string]site{"a.test": {
		"/robots.txt":  "User-agent: *\nCrawl-delay: 3600\nDisallow: /closed\nSitemap: http://a.test/closed.xml\nSitemap: /bad\nSitemap: http://a.test/hop.xml\nSitemap: http://a.test/map.xml",
		"/":            page(),
		"/closed.xml":  urlset("http://a.test/1"),
		"/hop.xml":     redirect("/closed.xml"),
		"/map.xml":     urlset("http://a.test/2"),
		"/1":           page(),
		"/2":           page(),
		"/bad":         page(),
		"/robots.txt2": page(),
	}}
	onWire(t, sites, func(t *testing.T, w *wire) {
		c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		c.Wait()
		if got, want := w.uris("a.test"), "/robots.txt / /hop.xml /map.xml /2"; got != want {
			t.Errorf("a.test was asked for %s, want %s", got, want)
		}
		w.keepsGap(t, "a.test", time.Hour, 5) // longer than any time limit: what counts is the waiting for the host's turn
		if !strings.Contains(c.logged.String(), "closed.xml") {
			t.Errorf("the log does not say why: %s", c.logged)
		}
	})
}

// A sitemap of some MiB goes through a file, and a cut one still gives its entries.
func TestALargeSitemapThatIsCut(t *testing.T) {
	shop := bigShop(3, noDenys)
	whole := shop["a.test"]["/map.xml"].(string)
	filler := "<!--" + strings.Repeat("x", 1<<20) + "-->"
	large := strings.Replace(whole, "<url>", filler+"<url>", 1)
	shop["a.test"]["/map.xml"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(large)))
		w.Write([]byte(large[:strings.Index(large, "<loc>http://a.test/2")]))
		panic(http.ErrAbortHandler)
	})
	w := newWeb(t, shop)
	c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.Visit("http://a.test/")
	if got, want := w.uris("a.test"), "/robots.txt / /map.xml /0 /1"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
	if got := c.robots.Stats().Sitemaps; got.Errors != 1 || got.FilesCut != 1 || got.Fed != 2 {
		t.Errorf("%+v, want 2 fed and the cut reported", got)
	}
}

func TestTheEndOfTheContextEndsTheFeed(t *testing.T) {
	w := newWeb(t, bigShop(500, "User-agent: *\nCrawl-delay: 0.1\n"))
	c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Context = ctx
	var done atomic.Int32
	c.OnScraped(func(r *colly.Response) {
		if done.Add(1) == 3 {
			cancel()
		}
	})
	c.Visit("http://a.test/")
	c.Wait()
	if n := len(w.hits("a.test")); n > 2+3+1 { // robots.txt and the sitemap, three pages, one under way
		t.Errorf("%d requests, some after the end: %s", n, w.uris("a.test"))
	}
}

func TestAQueueIsFed(t *testing.T) {
	w := newWeb(t, shop())
	q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{Sink: q.AddURL}))
	q.AddURL("http://shop.test/")
	if err := q.Run(c.Collector.Collector); err != nil {
		t.Fatal(err)
	}
	if got, want := w.sortedURIs("shop.test"), "/ /1 /2 /5 /6 /a.xml /b.xml.gz /gone.xml /index.xml /robots.txt"; got != want {
		t.Errorf("shop.test was asked for %s, want %s", got, want)
	}
}

// A queue that pulls: a large site costs the room of one page, and what callbacks add goes first.
func TestASitemapQueue(t *testing.T) {
	sites := shop()
	sites["shop.test"]["/5"] = page("/found")
	sites["shop.test"]["/found"] = page()
	w := newWeb(t, sites)
	c := w.start(t, nil)
	if _, err := c.robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{Window: -1}, "http://shop.test/"); err == nil {
		t.Error("a bad Feed is taken")
	}
	if _, err := c.robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{}, "shop.test"); err == nil {
		t.Error("a bad URL is taken")
	}
	storage, err := c.robots.SitemapQueue(&queue.InMemoryQueueStorage{MaxSize: 100}, collyrobots.Feed{}, "http://shop.test/any", "http://gone.test/")
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(2, storage)
	if err != nil {
		t.Fatal(err)
	}
	q.AddURL("http://shop.test/")
	told := map[string]string{}
	c.OnResponse(func(r *colly.Response) {
		c.note(func() {
			told[r.Request.URL.Path] = r.Ctx.Get(collyrobots.CtxSitemap) + " " + r.Ctx.Get(collyrobots.CtxLastMod)
		})
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
	if err := q.Run(c.Collector.Collector); err != nil {
		t.Fatal(err)
	}
	if got, want := w.sortedURIs("shop.test"), "/ /1 /2 /5 /6 /a.xml /b.xml.gz /found /gone.xml /index.xml /robots.txt"; got != want {
		t.Errorf("shop.test was asked for %s, want %s", got, want)
	}
	if got, want := told["/5"], "http://shop.test/b.xml.gz 2024-05-01T00:00:00Z"; got != want {
		t.Errorf("/5 knows %q, want %q", got, want)
	}
	if got := storage.Stats(); got.Fed != 5 || got.Denied != 1 || got.OutOfScope != 1 {
		t.Errorf("%+v", got)
	}
	if err := storage.Close(); err != nil {
		t.Error(err)
	}
}

func TestASitemapQueueThatIsClosedEarly(t *testing.T) {
	w := newWeb(t, bigShop(100, noDenys))
	c := w.start(t, nil)
	storage, err := c.robots.SitemapQueue(&queue.InMemoryQueueStorage{MaxSize: 100}, collyrobots.Feed{}, "http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	if err := storage.Init(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := storage.GetRequest(); err != nil {
			t.Fatal(err)
		}
	}
	storage.Close()
	if n, err := storage.QueueSize(); n != 0 || err != nil {
		t.Errorf("size %d, %v", n, err)
	}
	if _, err := storage.GetRequest(); err == nil {
		t.Error("GetRequest succeeds after Close")
	}
	if got := storage.Stats(); got.Entries > 5 {
		t.Errorf("%+v: read ahead of what was asked for", got)
	}
}
