package frontier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/urlstore"
	"github.com/collyrobots/collyrobots/store/urlstore/urlstoretest"
)

// TestMemoryStore checks the store of the tests.
func TestMemoryStore(t *testing.T) {
	urlstoretest.Run(t, func(t *testing.T) func() urlstore.Store {
		s := kit.NewMemoryStore()
		return func() urlstore.Store {
			s.Close()
			s = s.Reopen()
			return s
		}
	})
}

// surviving is a storage of visited URLs that an earlier run has initialized.
type surviving struct{ storage.Storage }

func (surviving) Init() error { return nil }

// TestFrontierStorageSurvives checks that a run continues although its first Visit returns an error, because
// the storage of the collector knows the page from an earlier run, which was killed.
func TestFrontierStorageSurvives(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 2\n", "/": robotstest.Page("/1", "/2", "/3"), "*": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		visited := new(storage.InMemoryStorage)
		kit.Must(t, visited.Init())
		pages := kit.NewMemoryStore()
		for range 3 {
			r := &kit.Run{T: t, Web: web}
			r.Plug(collyrobots.Frontier(pages))
			c := r.Collector(colly.Async())
			kit.Must(t, c.SetStorage(surviving{visited}))
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
			r.Attach(c)
			unplug := func() {
				if err := r.Plugin.Close(); err != nil && !strings.HasSuffix(err.Error(), "memoryStore: closed") {
					t.Error(err)
				}
			}
			kill := time.AfterFunc(5*time.Second, func() {
				pages.Close()
				unplug()
			})
			c.Visit("http://a.test/")
			c.Wait()
			kill.Stop()
			unplug()
			pages = pages.Reopen()
		}
		kit.WantStates(t, pages, "done: / /1 /2 /3")
	})
}

// TestFrontierKeepsPace checks that a run with Frontier alone keeps the delay after the run before, and
// does not request its robots.txt again. With the option Store, nothing is kept in the urlstore.Store.
func TestFrontierKeepsPace(t *testing.T) {
	for name, withStore := range map[string]bool{"alone": false, "with Store": true} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 20\n")}, func(t *testing.T, web *robotstest.Web) {
				pages := kit.NewMemoryStore()
				given := store.NewMemory()
				for i := range 2 {
					pages = pages.Reopen()
					opts := []collyrobots.Option{collyrobots.Frontier(pages)}
					if withStore {
						opts = append(opts, collyrobots.Store(given))
					}
					c := kit.Start(t, web, kit.Async, opts...)
					kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
					c.Wait()
					kit.Must(t, c.Robots.Close())
				}
				kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 20s /0, 40s /1")
				for _, key := range []string{"robots:http://a.test", "pace:a.test"} {
					record, err := pages.Records().Get(t.Context(), key)
					if err != nil || (record == nil) != withStore {
						t.Errorf("%s: %q, %v", key, record, err)
					}
				}
			})
		})
	}
}

// TestFrontierResumesSitemaps checks that Resume needs no Store with Frontier: the pages of a sitemap
// are requested once in three runs, the first of which is killed.
func TestFrontierResumesSitemaps(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt":  "User-agent: *\nCrawl-delay: 2\nSitemap: http://a.test/sitemap.xml\n",
		"/sitemap.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"),
		"*":            robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		pages := kit.NewMemoryStore()
		for i, runs := range []time.Duration{7 * time.Second, time.Hour, time.Hour} {
			c := kit.Start(t, web, kit.Async, collyrobots.Frontier(pages), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/start", i)))
			time.AfterFunc(runs, pages.Close)
			time.AfterFunc(runs, func() { c.Robots.Close() })
			c.Wait()
			c.BadStore = i == 0 // the first run is killed, which ends before its stores know
			pages = pages.Reopen()
		}
		times := make(map[string]int)
		for _, r := range web.Log("a.test") {
			times[r.URI]++
		}
		for _, page := range []string{"/robots.txt", "/1", "/2", "/3", "/4"} {
			if times[page] != 1 {
				t.Errorf("%s was requested %d times", page, times[page])
			}
		}
	})
}
