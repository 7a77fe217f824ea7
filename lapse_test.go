package collyrobots_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/robotstest"
)

// What http asked for two days ago, and nobody has asked for since, slows https no more.
func TestACrawlDelayLapsesWithItsRobotsTxt(t *testing.T) {
	robots := func(out http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			io.WriteString(out, "User-agent: *\nCrawl-delay: 60\n")
		}
	}
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()})
		c.impolite = true // to Verify, which knows of no files that are read no more
		for _, u := range []string{"http://a.test/0", "https://a.test/1", "https://a.test/2"} {
			must(t, c.Visit(u))
		}
		wantSchedule(t, web, "a.test", "0s /robots.txt, 1m0s /0, 2m0s /robots.txt, 3m0s /1, 4m0s /2")
		time.Sleep(48 * time.Hour)
		web.Reset()
		for range 3 {
			must(t, c.Visit("https://a.test/3"))
		}
		wantSchedule(t, web, "a.test", "0s /robots.txt, 0s /3, 0s /3, 0s /3")
		if s := c.robots.Stats().Hosts[0]; s.CrawlDelay != 0 || s.Delay != 0 {
			t.Errorf("Stats: %+v, want no delay", s)
		}
		time.Sleep(time.Second)
		must(t, c.Visit("http://a.test/4")) // it is read again, and in force again, for both
		must(t, c.Visit("https://a.test/5"))
		wantSchedule(t, web, "a.test", "0s /robots.txt, 0s /3, 0s /3, 0s /3, 1s /robots.txt, 1m1s /4, 2m1s /5")
	})
}

// While a file is in use its delay holds, on the day when it has to be read again as well: for the
// request that reads it, and for the pages that go on under the old copy meanwhile.
func TestACrawlDelayOutlivesItsRobotsTxtWhileThatIsReadAgain(t *testing.T) {
	for name, again := range map[string]time.Duration{"at once": 0, "slowly": 9 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(60, "")}, func(t *testing.T, web *robotstest.Web) {
				var asked atomic.Int32
				web.Set("a.test", "/robots.txt", func(out http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) > 1 {
						time.Sleep(again)
					}
					out.Header().Set("Cache-Control", "max-age=300")
					io.WriteString(out, "User-agent: *\nCrawl-delay: 10\n")
				})
				c := start(t, web, async).follow()
				must(t, c.Visit("http://a.test/"))
				c.Wait()
				wantNoSooner(t, web, "a.test", 10*time.Second, len(web.Log("a.test")))
				if len(c.pages) != 61 || asked.Load() < 2 {
					t.Errorf("%d pages, robots.txt was asked for %d times; want 61, and more than once", len(c.pages), asked.Load())
				}
			})
		})
	}
}

// A page that comes when the file has just expired finds nobody who waits: reading it again waits.
func TestReadingRobotsTxtAgainKeepsItsDelay(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {"*": robotstest.Page(), "/robots.txt": func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", "max-age=300")
		io.WriteString(out, "User-agent: *\nCrawl-delay: 10\n")
	}}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil)
		must(t, c.Visit("http://a.test/0"))
		time.Sleep(285 * time.Second)
		must(t, c.Visit("http://a.test/1"))
		time.Sleep(6 * time.Second)
		must(t, c.Visit("http://a.test/2"))
		wantSchedule(t, web, "a.test", "0s /robots.txt, 10s /0, 4m55s /1, 5m5s /robots.txt, 5m15s /2")
	})
}
