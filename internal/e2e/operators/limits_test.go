package operators

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// These tests use StopAfterRefusals and MaxPagesPerHost together with other features.

// TestRandomBudgets crawls hosts whose connections fail at random and whose pages are aborted at
// random, and checks that no host gets too many pages, that the count is that of the access log,
// and that every page has a result.
func TestRandomBudgets(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := 1 + random.IntN(12)
		delay := random.IntN(3)
		kit.InBubble(t, robotstest.Sites{
			"a.test": {"/robots.txt": fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", delay), "*": robotstest.Page()},
			"b.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page(), "/to-a": robotstest.Redirect("http://a.test/from-b")},
		}, func(t *testing.T, web *robotstest.Web) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := kit.Start(t, web, []colly.CollectorOption{colly.Async(), colly.AllowURLRevisit(), colly.StdlibContext(ctx)}, collyrobots.MaxPagesPerHost(limit), collyrobots.StopAfterRefusals(1+random.IntN(5)))
			kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 1 + random.IntN(8)})
			var mu sync.Mutex
			roll := func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n) == 0
			}
			dial := c.Transport.DialContext
			c.Transport.DisableKeepAlives = roll(2)
			c.Transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if roll(4) {
					return nil, errors.New("no route")
				}
				return dial(ctx, network, addr)
			}
			c.OnRequestHeaders(func(r *colly.Request) {
				if roll(5) {
					r.Abort()
				}
			})
			c.OnError(func(r *colly.Response, _ error) {
				if roll(3) {
					r.Request.Retry()
				}
			})
			canceled := roll(4) // the site may not see a request that was just written
			if canceled {
				time.AfterFunc(5*time.Second, cancel)
			}
			for i := range 40 {
				c.Visit(fmt.Sprint("http://a.test/", i))
				c.Visit("http://b.test/to-a")
				if roll(8) {
					time.Sleep(time.Second)
				}
			}
			c.Wait()
			synctest.Wait()
			for _, host := range []string{"a.test", "b.test"} {
				s := kit.HostStats(t, c.Robots, host)
				sent := countPages(web.Log(host))
				if sent > limit || s.PagesSent > limit || s.PagesSent < sent || s.PagesSent > sent && !canceled || s.Waiting != 0 {
					t.Errorf("seed %d, %s: %d pages were sent, %d are counted, the limit is %d", seed, host, sent, s.PagesSent, limit)
				}
			}
		})
	}
}
