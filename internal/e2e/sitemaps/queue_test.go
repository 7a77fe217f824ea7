package sitemaps

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestSitemapQueue checks that a SitemapQueue gets pages from sitemaps as they are needed, so a
// large site needs little memory, and that pages that callbacks add come first.
func TestSitemapQueue(t *testing.T) {
	sites := kit.Shop()
	sites["shop.test"]["/5"] = robotstest.Page("/found")
	sites["shop.test"]["/found"] = robotstest.Page()
	sites["gone.test"] = nil
	web := robotstest.New(t, sites)
	c := kit.Start(t, web, nil)
	if _, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{Window: -1}, "http://shop.test/"); err == nil {
		t.Error("SitemapQueue accepted an invalid Feed")
	}
	if _, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{}, "shop.test"); err == nil {
		t.Error("SitemapQueue accepted an invalid URL")
	}
	storage, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{MaxSize: 100}, collyrobots.Feed{}, "http://shop.test/any", "http://gone.test/")
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(2, storage)
	if err != nil {
		t.Fatal(err)
	}
	q.AddURL("http://shop.test/")
	contexts := map[string]string{}
	c.OnResponse(func(r *colly.Response) {
		c.Note(func() {
			contexts[r.Request.URL.Path] = r.Ctx.Get(collyrobots.CtxSitemap) + " " + r.Ctx.Get(collyrobots.CtxLastMod)
		})
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
	if err := q.Run(c.Collector.Collector); err != nil {
		t.Fatal(err)
	}
	kit.WantSortedURIs(t, web, "shop.test", "/ /1 /2 /5 /6 /a.xml /b.xml.gz /found /gone.xml /index.xml /robots.txt")
	if got, want := contexts["/5"], "http://shop.test/b.xml.gz 2024-05-01T00:00:00Z"; got != want {
		t.Errorf("the context of /5 has %q, want %q", got, want)
	}
	if got := storage.Stats(); got.Fed != 5 || got.Denied != 1 || got.OutOfScope != 1 {
		t.Errorf("got stats %+v", got)
	}
	if err := storage.Close(); err != nil {
		t.Error(err)
	}
}

// TestSitemapQueueClosedEarly checks that a SitemapQueue that is closed early returns no more
// pages, and has not read ahead.
func TestSitemapQueueClosedEarly(t *testing.T) {
	web := robotstest.New(t, bigShop(100, kit.NoDenys))
	c := kit.Start(t, web, nil)
	storage, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{MaxSize: 100}, collyrobots.Feed{}, "http://a.test/")
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
		t.Errorf("got size %d, %v, want 0", n, err)
	}
	if _, err := storage.GetRequest(); err == nil {
		t.Error("GetRequest succeeded after Close")
	}
	if got := storage.Stats(); got.Entries > 5 {
		t.Errorf("got stats %+v, want at most 5 entries read for 3 requests", got)
	}
}

// TestResumeOfSitemapQueue checks that a SitemapQueue that was canceled and closed while its
// threads had pages continues with these pages and all that follow. Each run also returns the page
// that the collector refuses.
func TestResumeOfSitemapQueue(t *testing.T) {
	sites := bigShop(60, kit.NoDenys)
	web := robotstest.New(t, sites)
	records := store.NewMemory()
	var fed []int
	for run := range 5 {
		c := kit.Start(t, web, nil, collyrobots.Store(records))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Context = ctx
		c.DisallowedURLFilters = append(c.DisallowedURLFilters, regexp.MustCompile("/7$"))
		storage, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{Resume: true, Window: 8}, "http://a.test/")
		kit.Must(t, err)
		q, err := queue.New(3, storage)
		kit.Must(t, err)
		c.OnScraped(func(r *colly.Response) {
			if run == 0 && r.Request.URL.Path == "/20" {
				cancel()
			}
		})
		kit.Must(t, q.Run(c.Collector.Collector))
		kit.Must(t, storage.Close())
		fed = append(fed, storage.Stats().Fed)
	}
	asked := map[string]int{}
	again := 0
	for _, r := range web.Log("a.test") {
		asked[r.URI]++
		if asked[r.URI] > 1 && !strings.Contains(r.URI, ".") {
			again++
		}
	}
	for i := range 60 {
		if n := asked[fmt.Sprint("/", i)]; (n == 0) != (i == 7) {
			t.Errorf("/%d was requested %d times", i, n)
		}
	}
	if again > 8 {
		t.Errorf("%d pages were fetched twice, want at most 8", again)
	}
	if fed[2] != 1 || fed[3] != 1 || fed[4] != 1 {
		t.Errorf("got %v pages in each run, want 1 in the last three", fed)
	}
}

// TestSitemapQueueCloseDoesNotWait checks that Close does not wait for a GetRequest that waits for
// the host of a sitemap.
func TestSitemapQueueCloseDoesNotWait(t *testing.T) {
	kit.InBubble(t, bigShop(1, "User-agent: *\nCrawl-delay: 3600\n"), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		storage, err := c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{}, "http://a.test/")
		kit.Must(t, err)
		q, err := queue.New(2, storage)
		kit.Must(t, err)
		time.AfterFunc(time.Minute, func() { storage.Close() })
		began := time.Now()
		kit.Must(t, q.Run(c.Collector.Collector))
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the queue ran for %v, want 1m", took)
		}
		kit.Must(t, storage.Close())
		kit.WantURIs(t, web, "a.test", "/robots.txt")
	})
}
