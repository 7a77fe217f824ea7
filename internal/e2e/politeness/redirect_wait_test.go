package politeness

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestRedirectsThatWait checks that no page is lost because its redirect waits for something other than
// the host itself: the rate of all hosts, the other hosts of a group, another process, or the hours.
func TestRedirectsThatWait(t *testing.T) {
	const hosts = 150
	sites := robotstest.Sites{}
	for i := range hosts {
		sites[fmt.Sprintf("h%d.test", i)] = robotstest.Site{"/robots.txt": kit.NoDenys, "/": robotstest.Redirect("/home"), "/home": "home"}
		sites[fmt.Sprintf("h%d.shops.test", i)] = robotstest.Site{"/robots.txt": kit.NoDenys, "/home": "home"}
		sites[fmt.Sprintf("r%d.test", i)] = robotstest.Site{"/robots.txt": kit.NoDenys, "/": robotstest.Redirect(fmt.Sprintf("http://h%d.shops.test/home", i))}
		sites[fmt.Sprintf("s%d.test", i)] = robotstest.Site{"/robots.txt": kit.NoDenys, "/": robotstest.Redirect(fmt.Sprintf("https://s%d.test/home", i)), "/home": "home"}
	}
	sites["night.test"] = robotstest.Site{"/robots.txt": kit.NoDenys, "/home": "home", "/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(2 * time.Minute)
		http.Redirect(w, r, "/home", http.StatusFound)
	})}
	for _, test := range []struct {
		name  string
		pages string // with a number
		n     int
		opts  []collyrobots.Option
	}{
		{"MaxRate", "http://h%d.test/", hosts, []collyrobots.Option{collyrobots.MaxRate(1, 1)}},
		{"MaxRate, to https", "http://s%d.test/", hosts, []collyrobots.Option{collyrobots.MaxRate(1, 1)}},
		{"PaceBy", "http://r%d.test/", hosts, []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.MinDelay(2 * time.Second)}},
		{"CrawlHours", "http://night.test/#%d", 1, []collyrobots.Option{collyrobots.CrawlHours("00:00", "00:01", time.UTC)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, kit.Async, test.opts...)
				c.SetRequestTimeout(5 * time.Minute)
				for i := range test.n {
					c.Visit(fmt.Sprintf(test.pages, i))
				}
				c.Wait()
				if len(c.Pages) != test.n || len(c.Errs) > 0 {
					t.Errorf("%d of %d pages, errors %v", len(c.Pages), test.n, firstOf(c.Errs))
				}
			})
		})
	}
}

// firstOf returns the number of errors and one of them.
func firstOf(errs map[string]error) string {
	for url, err := range errs {
		return fmt.Sprintf("%d: %s: %v", len(errs), url, err)
	}
	return "0"
}

// TestRedirectBehindLeases checks that a redirect waits as long as another process has the host.
func TestRedirectBehindLeases(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/": robotstest.Redirect("http://b.test/home")},
		"b.test": {"/robots.txt": kit.NoDenys, "/home": "home"},
	}, func(t *testing.T, web *robotstest.Web) {
		shared := kit.Shared(t)
		shared.TTL = time.Hour
		lease, err := shared.Acquire(t.Context(), "b.test", time.Second)
		kit.Must(t, err)
		time.AfterFunc(10*time.Minute, func() { lease.Release(true, time.Second, time.Time{}) })
		c := kit.Start(t, web, kit.Async, collyrobots.SharedPace(shared))
		c.Visit("http://a.test/")
		c.Wait()
		if len(c.Pages) != 1 || len(c.Errs) > 0 {
			t.Errorf("pages %v, errors %v", c.Pages, c.Errs)
		}
	})
}

// TestRedirectGivesUpWhileItWaits checks that redirects that already wait for a host fail when the host
// asks for a long pause, so that they do not hold their slots of a LimitRule.
func TestRedirectGivesUpWhileItWaits(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/1": robotstest.Redirect("http://busy.test/1"), "/2": robotstest.Redirect("http://busy.test/2"), "/3": robotstest.Redirect("http://busy.test/3")},
		"busy.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 10\n", "*": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusTooManyRequests)
		})},
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 3})
		began := time.Now()
		for i := range 3 {
			c.Visit(fmt.Sprintf("http://a.test/%d", i+1))
		}
		c.Wait()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the crawl took %v, errors %v", took, c.Errs)
		}
		if got := len(web.Log("busy.test")); got != 2 {
			t.Errorf("busy.test got %d requests, want robots.txt and one page", got)
		}
	})
}
