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

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store"
)

// resumed starts a crawl that goes on where the last one with the same store stopped.
func resumed(t *testing.T, w *web, s store.Store) *crawl {
	return w.start(t, async, collyrobots.Store(s), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 5}))
}

func TestResumeLeavesOutWhatHasNotChanged(t *testing.T) {
	s := bigShop(3, noDenys)["a.test"]
	old, validated := s["/map.xml"].(string), new(atomic.Int32)
	s["/robots.txt"] = noDenys + "Sitemap: http://a.test/index.xml"
	s["/index.xml"] = sitemapIndex("http://a.test/map.xml", "http://a.test/etag.xml")
	s["/etag.xml"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			validated.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, urlset("http://a.test/0"))
	})
	w := newWeb(t, map[string]site{"a.test": s})
	records := store.Memory()
	for run, want := range []collyrobots.FeedStats{
		{Files: 3, Entries: 4, Fed: 3, Duplicate: 1},
		{Files: 1, FilesUnchanged: 2},
		{Files: 2, FilesUnchanged: 1, Entries: 4, Fed: 4},
	} {
		if run == 2 {
			w.set("a.test", "/map.xml", strings.Replace(old, "</urlset>", "<url><loc>http://a.test/</loc></url></urlset>", 1))
		}
		c := resumed(t, w, records)
		c.AllowURLRevisit = true
		c.Visit("http://a.test/")
		c.Wait()
		if got := c.robots.Stats().Sitemaps; got != want {
			t.Errorf("run %d:\ngot  %+v\nwant %+v", run, got, want)
		}
	}
	if n := validated.Load(); n != 2 {
		t.Errorf("%d conditional requests were answered 304, want 2", n)
	}
}

// A run that is interrupted goes on in the next: no page is lost, and few come twice.
func TestResumeGoesOnWhereItStopped(t *testing.T) {
	w := newWeb(t, bigShop(500, noDenys))
	records := store.Memory()
	c := resumed(t, w, records)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Context = ctx
	c.OnScraped(func(r *colly.Response) {
		if r.Request.URL.Path == "/250" {
			cancel()
		}
	})
	c.Visit("http://a.test/")
	c.Wait()
	first := len(w.hits("a.test"))

	c = resumed(t, w, records)
	c.Visit("http://a.test/")
	c.Wait()
	got := c.robots.Stats().Sitemaps
	if got.Resumed < 200 || got.Resumed > 260 || got.Fed != 500-got.Resumed || got.Entries != 500 {
		t.Errorf("second run: %+v", got)
	}
	asked := map[string]int{}
	for _, h := range w.hits("a.test") {
		asked[h.uri]++
	}
	for i := range 500 {
		if n := asked[fmt.Sprint("/", i)]; n != 1 && (n != 2 || i < 240 || i > 260) {
			t.Errorf("/%d was asked for %d times", i, n)
		}
	}
	if first > 270 {
		t.Errorf("the first run went on to %d requests", first)
	}
}

// A file that is cut is never done: what was missing comes when it is whole.
func TestResumeOfACutFile(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	fmt.Fprint(z, urlset("http://a.test/0", "http://a.test/1", "http://a.test/2"))
	z.Close()
	s := bigShop(3, noDenys)["a.test"]
	s["/map.xml"] = whole.Bytes()[:whole.Len()-20]
	w := newWeb(t, map[string]site{"a.test": s})
	records := store.Memory()
	for run := range 3 {
		if run == 2 {
			w.set("a.test", "/map.xml", whole.Bytes())
		}
		c := resumed(t, w, records)
		c.Visit("http://a.test/")
		c.Wait()
		if got := c.robots.Stats().Sitemaps; (got.FilesCut == 1) != (run < 2) || got.FilesUnchanged != 0 {
			t.Errorf("run %d: %+v", run, got)
		}
	}
	if got := w.uris("a.test"); strings.Count(got, " /2") != 1 {
		t.Errorf("a.test was asked for %s, want /2 once", got)
	}
}

func TestNewestFirst(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": {
		"/robots.txt": "Sitemap: http://a.test/index.xml",
		"/":           page(),
		"/index.xml":  sitemapIndex("http://a.test/1.xml", "http://a.test/2.xml"),
		"/1.xml":      urlset("http://a.test/undated", "2020-01-01 http://a.test/2020", "2024-01-01 http://a.test/2024"),
		"/2.xml":      urlset("2022-01-01 http://a.test/2022", "2023-01-01 http://a.test/2023", "1999-01-01 http://a.test/1999"),
	}})
	var fed []string
	c := w.start(t, nil, collyrobots.FollowSitemaps(collyrobots.Feed{
		NewestFirst: true, MaxURLs: 3, Sink: func(url string) error { fed = append(fed, url[len("http://a.test/"):]); return nil },
	}))
	c.Visit("http://a.test/")
	if got, want := strings.Join(fed, " "), "2024 2023 2022"; got != want {
		t.Errorf("fed %s, want %s", got, want)
	}
	for _, bad := range []collyrobots.Feed{
		{NewestFirst: true}, {NewestFirst: true, MaxURLs: 1, Resume: true}, {Resume: true},
	} {
		if _, err := collyrobots.New(collyrobots.FollowSitemaps(bad)); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
