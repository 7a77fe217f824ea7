package frontier

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// A snapshot is a Store that can be copied at any moment, as a kill leaves it.
type snapshot struct {
	store.Store
	written map[string][]byte
}

func newSnapshot() *snapshot {
	return &snapshot{Store: store.NewMemory(), written: make(map[string][]byte)}
}

func (s *snapshot) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	return s.Store.Update(ctx, key, ttl, func(old []byte) ([]byte, error) {
		value, err := f(old)
		if err == nil {
			s.written[key] = value
		}
		return value, err
	})
}

// pages returns the number of records of pages.
func (s *snapshot) pages() (n int) {
	for key, value := range s.written {
		if strings.HasPrefix(key, "page:") && value != nil {
			n++
		}
	}
	return n
}

// TestRecordedWhenDone checks that a page is recorded after the last callback of the user, and not
// at all if none of its callbacks have run to their end.
func TestRecordedWhenDone(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
	records := newSnapshot()
	v := revalidating(t, web, records, nil)
	v.AllowURLRevisit = true
	check := func(*colly.Response) {
		if n := records.pages(); n != 0 {
			t.Errorf("%d pages are recorded before the last callback has returned", n)
		}
	}
	v.OnResponse(check)
	v.OnScraped(check)
	kit.Must(t, v.visit())
	if n := records.pages(); n != 1 {
		t.Errorf("%d pages are recorded, want 1", n)
	}
	clear(records.written)
	v.OnScraped(check) // registered between two visits
	site.set("/", `ETag: "2"`)
	kit.Must(t, v.visit())
	if n := records.pages(); n != 1 {
		t.Errorf("%d pages are recorded, want 1", n)
	}

	for name, spoil := range map[string]func(v *visitor){
		"OnResponseHeaders aborts": func(v *visitor) { v.OnResponseHeaders(func(r *colly.Response) { r.Request.Abort() }) },
		"the body is cut":          func(v *visitor) { v.MaxBodySize = 10 },
		"the context ends":         func(v *visitor) { v.OnRequest(func(*colly.Request) { v.Context = ended() }) },
		"a callback panics":        func(v *visitor) { v.OnScraped(func(*colly.Response) { panic("mine") }) },
		"the plugin is closed":     func(v *visitor) { v.OnResponse(func(*colly.Response) { v.Robots.Close() }) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { recover() }()
			records := newSnapshot()
			v := revalidating(t, web, records, nil)
			defer func() {
				if n := records.pages(); n != 0 {
					t.Errorf("%d pages are recorded, want none", n)
				}
			}()
			spoil(v)
			v.visit()
		})
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestKilledInCallback checks that a page whose callbacks were running when the process was killed
// is requested in full by the next run. The process has the Store as it was at that moment.
func TestKilledInCallback(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}}, func(t *testing.T, web *robotstest.Web) {
		records := store.NewMemory()
		v := revalidating(t, web, records, kit.Async)
		v.OnScraped(func(*colly.Response) { time.Sleep(time.Hour) })
		kit.Must(t, v.visit())
		time.Sleep(time.Minute) // the callback runs, and now the process is killed
		site.since()
		next := revalidating(t, web, records, nil)
		kit.Must(t, next.visit())
		if got := site.since(); got != "GET / = 200" {
			t.Errorf("requests %s", got)
		}
		v.Wait()
	})
}

// TestRevalidateWithResume checks that a page that a sitemap lists is done when it is unchanged, so
// that a run after an interruption requests only the rest.
func TestRevalidateWithResume(t *testing.T) {
	for name, skipFresh := range map[string]bool{"304": false, "fresh": true} {
		for _, collector := range [][]colly.CollectorOption{nil, kit.Async} {
			t.Run(fmt.Sprint(name, len(collector)), func(t *testing.T) {
				site := &versions{pages: map[string]http.Header{}}
				var urls []string
				for i := range 10 {
					site.set(fmt.Sprint("/", i), fmt.Sprintf(`ETag: "%d"; Cache-Control: max-age=864000; Date: Sat, 01 Jan 2000 00:00:00 GMT`, i))
					urls = append(urls, fmt.Sprint("http://a.test/", i))
				}
				kit.InBubble(t, robotstest.Sites{"a.test": {
					"/robots.txt": "User-agent: *\nCrawl-delay: 1\nSitemap: http://a.test/map.xml\n",
					"/map.xml":    robotstest.Sitemap(urls...), "/start": robotstest.Page(), "*": site,
				}}, func(t *testing.T, web *robotstest.Web) {
					pages := store.NewMemory()
					run := func(stopAfter int) collyrobots.Stats {
						site.since()
						progress := store.NewMemory() // of a crawl that starts anew, with the records of the pages
						both := &twoStores{Store: progress, pages: pages}
						var stats collyrobots.Stats
						for part := range 2 {
							ctx, cancel := context.WithCancel(t.Context())
							var n atomic.Int32
							stop := func() {
								if int(n.Add(1)) == stopAfter && part == 0 {
									cancel()
								}
							}
							v := revalidatingAs(t, web, both, collector,
								collyrobots.Revalidation{SkipFresh: skipFresh, OnUnchanged: func(*colly.Request) { stop() }},
								collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 2}))
							v.Impolite = true // the parts follow each other at once
							v.Context = ctx
							v.OnScraped(func(*colly.Response) { stop() })
							v.Visit("http://a.test/start")
							v.Wait()
							cancel()
							v.Robots.Close()
							s := v.Robots.Stats()
							stats.Totals.Unchanged += s.Totals.Unchanged
							stats.Totals.Pages += s.Totals.Pages
							stats.Sitemaps = s.Sitemaps
						}
						return stats
					}
					first := run(5)
					if first.Totals.Unchanged > 2 || first.Sitemaps.Resumed == 0 {
						t.Errorf("first crawl: %d unchanged, %+v", first.Totals.Unchanged, first.Sitemaps)
					}
					second := run(5)
					if second.Totals.Unchanged < 10 || second.Totals.Unchanged > 12 || second.Sitemaps.Resumed == 0 || strings.Contains(site.since(), "= 200") {
						t.Errorf("second crawl: %d unchanged, %+v", second.Totals.Unchanged, second.Sitemaps)
					}
					third := run(0) // nothing interrupts it, and its second part has nothing to do
					if third.Totals.Unchanged != 10 || third.Sitemaps.Fed != 0 || third.Sitemaps.FilesUnchanged != 1 {
						t.Errorf("third crawl: %d unchanged, %+v", third.Totals.Unchanged, third.Sitemaps)
					}
				})
			})
		}
	}
}

// twoStores keeps the records of pages in another store.
type twoStores struct {
	store.Store
	pages store.Store
}

func (s *twoStores) of(key string) store.Store {
	if strings.HasPrefix(key, "page:") {
		return s.pages
	}
	return s.Store
}

func (s *twoStores) Get(ctx context.Context, key string) ([]byte, error) {
	return s.of(key).Get(ctx, key)
}

func (s *twoStores) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	return s.of(key).Update(ctx, key, ttl, f)
}

// TestRecordedAfterLinks checks that a page in a urlstore.Store is recorded only when the pages that it
// has visited are recorded there. Otherwise the links would be lost if the process was killed in
// between: the next run would find the page unchanged.
func TestRecordedAfterLinks(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`), "/linked": version("X: y")}}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}}, func(t *testing.T, web *robotstest.Web) {
		records := newSnapshot()
		unblock := make(chan struct{})
		v := revalidating(t, web, store.NewMemory(), nil)
		v.Robots.Close()
		v.Async = true
		v.OnRequest(func(r *colly.Request) {
			if r.URL.Path == "/linked" {
				<-unblock
			}
		})
		p, err := collyrobots.WithRobots(v.Collector.Collector, collyrobots.Frontier(kit.NewMemoryStore()), collyrobots.Revalidate(collyrobots.Revalidation{}), collyrobots.Store(records))
		kit.Must(t, err)
		defer p.Close()
		v.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		kit.Must(t, v.visit())
		synctest.Wait()
		if got := site.since(); got != "GET / = 200" || records.pages() != 0 {
			t.Errorf("requests %s, %d pages are recorded before the link is", got, records.pages())
		}
		close(unblock)
		v.Wait()
		synctest.Wait()
		if n := records.pages(); n != 1 {
			t.Errorf("%d pages are recorded, want 1", n)
		}
	})
}

// TestUnchangedWithOtherOptions checks an unchanged page with options that count requests, or that
// read responses.
func TestUnchangedWithOtherOptions(t *testing.T) {
	for name, test := range map[string]struct {
		header    string
		later     string // the header of /1 in the second run, if it is another one
		options   []collyrobots.Option
		visits    string // the paths of the second run
		unchanged int
		requests  string
	}{
		"MaxPagesPerHost counts a 304": {
			header: `ETag: "1"`, options: []collyrobots.Option{collyrobots.MaxPagesPerHost(1)}, visits: "/1 /2",
			unchanged: 1, requests: `GET /1 "1" = 304`,
		},
		"MaxPagesPerHost does not count a fresh page": {
			header: `ETag: "1"; Cache-Control: max-age=3600; Date: Sat, 01 Jan 2000 00:00:00 GMT`, visits: "/1 /2 /new",
			options: []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true}), collyrobots.MaxPagesPerHost(1)}, unchanged: 2, requests: "GET /new = 200",
		},
		"Retry of a fresh page": {
			header: `ETag: "1"; Cache-Control: max-age=3600; Date: Sat, 01 Jan 2000 00:00:00 GMT`, visits: "/1",
			options:   []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true, OnUnchanged: func(r *colly.Request) { r.Retry() }})},
			unchanged: 1, requests: "GET /1 = 200",
		},
		"the tags of the page": {
			header: `ETag: "1"; X-Robots-Tag: noindex, nofollow`, options: []collyrobots.Option{collyrobots.EnforceNofollow(true)}, visits: "/1 /2",
			unchanged: 2, requests: `GET /1 "1" = 304, GET /2 "1" = 304`,
		},
		"a compressed page": {
			header: `ETag: "1"`, later: `ETag: "1"; Content-Encoding: gzip`, visits: "/1",
			unchanged: 1, requests: `GET /1 "1" = 304`,
		},
		"an XML file": {
			header: `ETag: "1"; Content-Type: text/xml`, visits: "/1.xml",
			unchanged: 1, requests: `GET /1.xml "1" = 304`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := &versions{pages: map[string]http.Header{}}
			for _, path := range []string{"/1", "/2", "/1.xml"} {
				site.set(path, test.header)
			}
			site.set("/new", "X: y")
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}}, func(t *testing.T, web *robotstest.Web) {
				records := store.NewMemory()
				v := skippingFresh(t, web, records)
				for _, path := range strings.Fields(test.visits) {
					if path != "/new" {
						v.Visit("http://a.test" + path)
					}
				}
				if test.later != "" {
					site.set("/1", test.later)
				}
				site.since()
				v = revalidating(t, web, records, nil, test.options...)
				for _, path := range strings.Fields(test.visits) {
					v.Visit("http://a.test" + path)
				}
				if got := site.since(); got != test.requests {
					t.Errorf("requests %s, want %s", got, test.requests)
				}
				s := v.Robots.Stats()
				if s.Totals.Unchanged != test.unchanged || s.Totals.Refusals != 0 || s.RobotsTags != (report.RobotsTagStats{}) {
					t.Errorf("stats %+v", s)
				}
				if calls := v.since(); strings.Contains(calls, "error") && !strings.Contains(name, "MaxPagesPerHost") {
					t.Errorf("calls %s", calls)
				}
			})
		})
	}
}
