package network

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// byName returns a handler for a server with several sites. It appends the requests to asked.
func byName(asked *[]string, sites map[string]robotstest.Site) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Host+r.RequestURI)
		answer, _ := sites[r.Host][r.RequestURI].(string)
		if to, ok := strings.CutPrefix(answer, "to "); ok {
			http.Redirect(out, r, to, http.StatusFound)
			return
		}
		if answer == "" {
			http.NotFound(out, r)
			return
		}
		fmt.Fprint(out, answer)
	}
}

// TestHostHeaderSelectsSite checks that the robots.txt of the site in the Host header applies to a
// page, as the same server returns it, and that all sites of a server share one delay.
func TestHostHeaderSelectsSite(t *testing.T) {
	var asked []string
	server := byName(&asked, map[string]robotstest.Site{
		"shop.test": {"/robots.txt": "to /real-robots.txt", "/real-robots.txt": "User-agent: *\nDisallow: /cart\nCrawl-delay: 4\nSitemap: http://shop.test/map.xml\n",
			"/1": "a page", "/cart": "closed", "/moved": "to /cart", "/away": "to http://10.0.0.1/cart"},
		"10.0.0.1": {"/robots.txt": "User-agent: *\nDisallow: /1\nCrawl-delay: 2\n", "/cart": "open", "/2": "open"},
	})
	kit.InBubble(t, robotstest.Sites{
		"10.0.0.1":  {"*": server},
		"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
	}, func(t *testing.T, web *robotstest.Web) {
		asked = nil
		kept := store.NewMemory()
		c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()}, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.Store(kept))
		c.Impolite = true // Verify does not know the Host headers
		as := func(path string) error {
			return c.Request(http.MethodGet, "http://10.0.0.1"+path, nil, nil, http.Header{"Host": {"shop.test"}})
		}
		kit.Must(t, as("/1"))
		if err := as("/cart"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("a page that the site denies: got %v", err)
		}
		if err := c.Visit("http://10.0.0.1/1"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("a page that the address itself denies: got %v", err)
		}
		kit.Must(t, c.Visit("http://10.0.0.1/2"))
		if err := as("/moved"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("a redirect within the site to a disallowed page: got %v", err)
		}
		kit.Must(t, as("/away")) // net/http drops the header with an absolute URL
		want := []string{"shop.test/robots.txt", "shop.test/real-robots.txt", "shop.test/1", "10.0.0.1/robots.txt", "10.0.0.1/2", "shop.test/moved", "shop.test/away", "10.0.0.1/cart"}
		if got := fmt.Sprint(asked); got != fmt.Sprint(want) {
			t.Errorf("got requests\n%s\nwant\n%s", got, fmt.Sprint(want))
		}
		kit.WantSchedule(t, web, "10.0.0.1", "0s /robots.txt, 0s /real-robots.txt, 4s /1, 8s /robots.txt, 12s /2, 16s /moved, 20s /away, 24s /cart")
		kit.WantURIs(t, web, "shop.test", "")
		kit.WantDenied(t, c, "http://10.0.0.1/cart", report.ReasonRule, 2)
		kit.WantDenied(t, c, "http://10.0.0.1/1", report.ReasonRule, 2)
		denied := (*collyrobots.DeniedError)(nil)
		if err := c.Denied["http://10.0.0.1/cart"]; !errors.As(err, &denied) || denied.Decision.Authority != "http://shop.test@10.0.0.1" {
			t.Errorf("/cart: got %v, want a denial by http://shop.test@10.0.0.1", err)
		}

		// The server of that name has another robots.txt.
		c.Visit("http://shop.test/1")
		kit.WantURIs(t, web, "shop.test", "/robots.txt")
	})
}
