package frontier

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// visitInTurn visits paths of a host one after the other, so that they wait in this order.
func visitInTurn(t *testing.T, c interface{ Visit(string) error }, paths ...string) {
	t.Helper()
	for _, path := range paths {
		kit.Must(t, c.Visit("http://a.test"+path))
		synctest.Wait()
	}
}

// TestFrontierPrograms runs programs on a.test with the pages 0 to 5 and a crawl delay of 2 s, and
// checks the schedule, the results of the pages, and the log.
func TestFrontierPrograms(t *testing.T) {
	unanswered := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	attempts := 0
	once := func(w http.ResponseWriter, r *http.Request) {
		attempts++
		if attempts == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	for name, test := range map[string]struct {
		opts                       []collyrobots.Option
		site                       robotstest.Site // further pages
		run                        func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore)
		schedule, states, warnings string
	}{
		"Wait twice, and a later Visit": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				visitInTurn(t, c, "/0", "/1")
				c.Wait()
				c.Wait()
				visitInTurn(t, c, "/2", "/3")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3", states: "done: /0 /1 /2 /3",
		},
		"a page that fails is tried three times": {
			site: robotstest.Site{"/bad": unanswered},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				visitInTurn(t, c, "/bad", "/1")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /bad, 4s /1, 1m2s /bad, 2m2s /bad", states: "done: /1, failed: /bad",
		},
		"a page that fails and could not be recorded": {
			site: robotstest.Site{"/bad": unanswered},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.BadStore = true
				store.FailWith(errors.New("disk full"))
				visitInTurn(t, c, "/bad")
				store.FailWith(nil)
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /bad, 4s /bad, 1m4s /bad, 2m4s /bad", states: "failed: /bad", warnings: "pages go on without it",
		},
		"Retry in OnError of a page that has waited": {
			site: robotstest.Site{"/once": once},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				attempts = 0
				c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
				visitInTurn(t, c, "/0", "/once", "/1")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /once, 6s /once, 8s /1", states: "done: /0 /1 /once",
		},
		"Retry in OnResponse, which returns after the retry, and Close": {
			site: robotstest.Site{"/captcha": once},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				attempts = 1
				c.OnResponse(func(r *colly.Response) {
					if r.Request.URL.Path == "/captcha" {
						attempts = 0 // the retry fails
						r.Request.Retry()
						time.Sleep(5 * time.Second)
					}
				})
				visitInTurn(t, c, "/0", "/captcha")
				time.Sleep(15 * time.Second)
				kit.Must(t, c.Robots.Close())
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /captcha, 6s /captcha", states: "done: /0, waits: /captcha",
		},
		"Retry in OnResponse of a page that has waited, and Close": {
			site: robotstest.Site{"/captcha": robotstest.Page()},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.OnResponse(func(r *colly.Response) {
					if r.Request.URL.Path == "/captcha" {
						r.Request.Retry()
					}
				})
				visitInTurn(t, c, "/0", "/captcha", "/1")
				time.Sleep(5 * time.Second)
				kit.Must(t, c.Robots.Close())
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /captcha", states: "done: /0, waits: /1 /captcha",
		},
		"bodies": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				for i, body := range []io.Reader{http.NoBody, strings.NewReader(""), new(bytes.Buffer), bytes.NewBufferString("body"), strings.NewReader("body")} {
					kit.Must(t, c.Request("GET", fmt.Sprint("http://a.test/", i), body, nil, nil))
					synctest.Wait()
				}
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /3, 6s /4, 8s /1, 10s /2", states: "done: /0 /1 /2",
		},
		"redirects": {
			site: robotstest.Site{"/a": robotstest.Redirect("/5"), "/b": robotstest.Redirect("/0"), "/c": robotstest.Redirect("/closed")},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				visitInTurn(t, c, "/0", "/a", "/b", "/c")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /a, 6s /5, 8s /b, 10s /c", states: "done: /0 /a /b, denied: /c",
		},
		"other requests are not recorded": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				visitInTurn(t, c, "/0")
				kit.Must(t, c.Post("http://a.test/1", map[string]string{"a": "b"}))
				synctest.Wait()
				kit.Must(t, c.Head("http://a.test/2"))
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /1, 6s /2", states: "done: /0",
		},
		"a sync collector": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.Async = false
				visitInTurn(t, c, "/0", "/1")
			},
			schedule: "0s /robots.txt, 2s /0, 4s /1", warnings: "without Async are not recorded",
		},
		"AllowURLRevisit": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.AllowURLRevisit = true
				visitInTurn(t, c, "/0", "/1", "/1")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /1", states: "done: /0 /1", warnings: "AllowURLRevisit is set",
		},
		"AllowURLRevisit and Retry in OnResponse": {
			site: robotstest.Site{"/captcha": robotstest.Page("/captcha")},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.AllowURLRevisit = true
				retries := make(map[string]int) // by path
				c.OnResponse(func(r *colly.Response) {
					n := 0
					c.Note(func() {
						retries[r.Request.URL.Path]++
						n = retries[r.Request.URL.Path]
					})
					if n <= 2 && r.Request.URL.Path != "/1" {
						kit.Must(t, r.Request.Retry())
						time.Sleep(time.Duration(2-n) * time.Second) // the first retry arrives while its page is under way
					}
				})
				visitInTurn(t, c, "/0") // goes on at once
				c.Wait()
				visitInTurn(t, c, "/1", "/captcha") // /captcha waits
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /0, 6s /0, 8s /1, 10s /captcha, 12s /captcha, 14s /captcha",
			states:   "done: /0 /1 /captcha", warnings: "AllowURLRevisit is set",
		},
		"AllowURLRevisit and links to pages that are under way": {
			site: robotstest.Site{"/self": robotstest.Page("/self"), "/other": robotstest.Page("/self")},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.AllowURLRevisit = true
				c.OnHTML("a[href]", func(e *colly.HTMLElement) {
					kit.Must(t, e.Request.Visit(e.Attr("href")))
					time.Sleep(3 * time.Second)
				})
				visitInTurn(t, c, "/other", "/self")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /other, 4s /self", states: "done: /other /self", warnings: "AllowURLRevisit is set",
		},
		"AllowURLRevisit and two links to a page": {
			site: robotstest.Site{"/twice": robotstest.Page("http://b.test/0", "http://b.test/0")},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.AllowURLRevisit = true
				c.OnHTML("a[href]", func(e *colly.HTMLElement) { kit.Must(t, e.Request.Visit(e.Attr("href"))) })
				var fetched atomic.Int32
				c.OnResponse(func(r *colly.Response) {
					if r.Request.URL.Host == "b.test" {
						fetched.Add(1)
					}
				})
				visitInTurn(t, c, "/twice")
				c.Wait()
				if n := fetched.Load(); n != 1 {
					t.Errorf("the page was fetched %d times, want once", n)
				}
			},
			schedule: "0s /robots.txt, 2s /twice", states: "done: /twice /0", warnings: "AllowURLRevisit is set",
		},
		"MaxRequests": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.MaxRequests = 3
				visitInTurn(t, c, "/0", "/1", "/2")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0", states: "done: /0, postponed: /1 /2", warnings: "MaxRequests counts",
		},
		"SetStorage after Attach": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				kit.Must(t, c.SetStorage(new(storage.InMemoryStorage)))
				visitInTurn(t, c, "/0", "/1")
				c.Wait()
			},
			schedule: "0s /robots.txt, 2s /0, 4s /1", states: "done: /0 /1", warnings: "SetStorage was called after Attach",
		},
		"the values of a Context": {
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.OnResponse(func(r *colly.Response) {
					if r.Request.URL.Path == "/1" && (r.Ctx.Get("text") != "kept" || r.Ctx.GetAny("number") != 1.5 || r.Ctx.GetAny("struct") != nil) {
						t.Errorf("the Context is %v", r.Ctx)
					}
				})
				visitInTurn(t, c, "/0")
				ctx := colly.NewContext()
				ctx.Put("text", "kept")
				ctx.Put("number", 1.5)
				ctx.Put("struct", struct{ A int }{1})
				kit.Must(t, c.Request("GET", "http://a.test/1", nil, ctx, nil))
				c.Wait()
			},
			states: "done: /0 /1", warnings: "key=struct",
		},
		"another shard": {
			opts: []collyrobots.Option{collyrobots.ShardByHost(100, (func() int { i, _ := collyrobots.ShardOf("http://a.test/", 100); return i })())},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				visitInTurn(t, c, "/0")
				kit.Must(t, c.Visit("http://b.test/"))
				c.Wait()
				foreign := (*report.ShardError)(nil)
				if !errors.As(c.Denied["http://b.test/"], &foreign) {
					t.Errorf("got %v", c.Denied)
				}
			},
			schedule: "0s /robots.txt, 2s /0", states: "done: /0",
		},
		"DryRun": {
			opts: []collyrobots.Option{collyrobots.DryRun(true)},
			run: func(t *testing.T, c *kit.Crawl, store *kit.MemoryStore) {
				c.Impolite = true
				visitInTurn(t, c, "/0", "/closed", "/1")
				c.Wait()
			},
			schedule: "0s /robots.txt, 0s /0, 0s /closed, 0s /1", states: "done: /0 /1 /closed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2\nDisallow: /closed")
			site["/closed"] = robotstest.Page()
			for path, answer := range test.site {
				site[path] = answer
			}
			kit.InBubble(t, robotstest.Sites{"a.test": site, "b.test": robotstest.Pages(1, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
				store := kit.NewMemoryStore()
				c := kit.Start(t, web, kit.Async, append(test.opts, collyrobots.Frontier(store))...)
				test.run(t, c, store)
				if test.schedule != "" {
					kit.WantSchedule(t, web, "a.test", test.schedule)
				}
				kit.WantStates(t, store, test.states)
				if logged := c.Logged.String(); !strings.Contains(logged, test.warnings) || test.warnings == "" && strings.Contains(logged, "Frontier") {
					t.Errorf("logged %q, want %q", logged, test.warnings)
				}
			})
		})
	}
}

// The collectors of a plugin have pages of their own. If one of them is missing in a run, its pages
// wait for the next one.
func TestFrontierCollectors(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		run := func(store *kit.MemoryStore, collectors int) (*kit.Crawl, *[]string) {
			c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store))
			detail := colly.NewCollector(kit.Async...)
			detail.WithTransport(web.Transport())
			pages := new([]string)
			detail.OnResponse(func(r *colly.Response) { c.Note(func() { *pages = append(*pages, r.Request.URL.Path) }) })
			if collectors == 2 {
				kit.Must(t, c.Robots.Attach(detail))
				visitInTurn(t, c, "/0", "/1")
				detail.Visit("http://a.test/1") // an error if the page of the run before is under way already
				detail.Visit("http://a.test/2")
				synctest.Wait()
			} else {
				visitInTurn(t, c, "/0", "/1")
			}
			return c, pages
		}
		c, _ := run(store, 2)
		time.Sleep(5 * time.Second) // /0 and the first /1 are done
		store.Close()
		c.BadStore = true // the dispatcher may ask the closed store for a page
		if err := c.Robots.Close(); err != nil && !strings.HasSuffix(err.Error(), "memoryStore: closed") {
			t.Errorf("Close returned %v", err)
		}
		c.Wait()
		time.Sleep(2 * time.Second)
		second := store.Reopen()
		c, _ = run(second, 1)
		c.Wait()
		kit.Must(t, c.Robots.Close())
		kit.WantStates(t, second, "done: /0 /1, postponed: /1 /2")
		time.Sleep(2 * time.Second)
		third := second.Reopen()
		c, pages := run(third, 2)
		c.Wait() // also for the pages of the other collector
		kit.WantStates(t, third, "done: /0 /1 /1 /2")
		slices.Sort(*pages)
		if !slices.Equal(*pages, []string{"/1", "/2"}) {
			t.Errorf("the second collector got %v", *pages)
		}
	})
}

// The pages of a sitemap count as done for the feed when they are recorded.
func TestFrontierFeed(t *testing.T) {
	site := robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2\nSitemap: http://a.test/map.xml")
	site["/map.xml"] = robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.FollowSitemaps(collyrobots.Feed{Window: 2}))
		visitInTurn(t, c, "/0")
		time.Sleep(6 * time.Second) // the sitemap is read
		if states := store.States(); len(states[kit.Waits])+len(states[kit.IsOut]) != 4 {
			t.Errorf("the window of the feed was not freed: %v", states)
		}
		c.Wait()
		kit.WantStates(t, store, "done: /0 /1 /2 /3 /4")
	})
}

// If many pages are under way, the first page of a host goes back to the store when its robots.txt
// was read, and still starts on time.
func TestFrontierFirstContact(t *testing.T) {
	const hosts = 200
	sites := make(robotstest.Sites)
	for i := range hosts {
		sites[fmt.Sprintf("h%d.test", i)] = robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1")
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store))
		for host := range sites {
			for i := range 3 {
				kit.Must(t, c.Visit(fmt.Sprintf("http://%s/%d", host, i)))
			}
		}
		time.Sleep(500 * time.Millisecond)
		if s := store.Stats(); s.Out > 128 || s.Out+s.Waiting != 3*hosts {
			t.Errorf("%d pages are under way and %d wait, want at most 128 and the others", s.Out, s.Waiting)
		}
		c.Wait()
		for host := range sites {
			log := web.Log(host)
			if took := log[len(log)-1].Time.Sub(log[0].Time); len(log) != 4 || took != 3*time.Second {
				t.Errorf("%s: %d requests in %v, want 4 in 3s", host, len(log), took)
			}
		}
	})
}

// A page that comes when no page was left makes only its own collector wait. A WaitGroup panics if it
// is used again before its Wait has returned.
func TestFrontierHoldsOneCollector(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 2")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(kit.NewMemoryStore()))
		other := colly.NewCollector(kit.Async...)
		other.WithTransport(web.Transport())
		kit.Must(t, c.Robots.Attach(other))
		visitInTurn(t, c, "/0")
		c.Wait()
		other.Wait()
		visitInTurn(t, other, "/1", "/2")
		began := time.Now()
		c.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("Wait of a collector without pages took %v", took)
		}
		other.Wait()
	})
}

// A page is done although one of its OnRequest callbacks takes so long that the page was given up in
// the meantime, whether a sitemap lists the page or not.
func TestFrontierSlowOnRequest(t *testing.T) {
	site := robotstest.Pages(2, "User-agent: *\nSitemap: http://a.test/map.xml")
	site["/map.xml"] = robotstest.Sitemap("http://a.test/1")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.OnRequest(func(r *colly.Request) {
			if !r.IsAbort() {
				time.Sleep(15 * time.Second)
			}
		})
		visitInTurn(t, c, "/0")
		c.Wait()
		kit.WantStates(t, store, "done: /0 /1")
	})
}
