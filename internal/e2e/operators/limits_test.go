package operators

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// These tests use StopRefused and MaxPages together with other features.

// TestLimitsWithSharedPace checks that pages that wait for a Pacer are denied when a limit is
// reached, and that no lease is left over.
func TestLimitsWithSharedPace(t *testing.T) {
	for name, test := range map[string]struct {
		answer any
		option collyrobots.Option
	}{
		"MaxPages":    {robotstest.Page(), collyrobots.MaxPages(3)},
		"StopRefused": {http.StatusForbidden, collyrobots.StopRefused(3)},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "*": test.answer}}, func(t *testing.T, web *robotstest.Web) {
				sharing := kit.Shared(t) // checks the leases at the end
				one := kit.Start(t, web, kit.Async, collyrobots.SharedPace(sharing), test.option)
				two := kit.Start(t, web, kit.Async, collyrobots.SharedPace(sharing), test.option)
				for i := range 20 {
					one.Visit(fmt.Sprint("http://a.test/", i))
					two.Visit(fmt.Sprint("http://a.test/two/", i))
				}
				one.Wait()
				two.Wait()
				if n := countPages(web.Log("a.test")); n != 6 || len(one.Denied) != 17 || len(two.Denied) != 17 {
					t.Errorf("%d pages, %d and %d denied, want 6, 17 and 17", n, len(one.Denied), len(two.Denied))
				}
			})
		})
	}
}

// TestBudgetOfAllClients checks that collectors, clones, http.Clients, Turns and a queue share one
// budget.
func TestBudgetOfAllClients(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.MaxPages(10))
		attached := c.Clone()
		plain := c.Collector.Collector.Clone() // is not attached
		client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
		q, err := queue.New(4, nil)
		kit.Must(t, err)
		var all sync.WaitGroup
		for i := range 8 {
			page := fmt.Sprint("http://a.test/", i)
			c.Visit(page)
			attached.Visit(page + "/attached")
			plain.Visit(page + "/plain")
			kit.Must(t, q.AddURL(page+"/queue"))
			all.Go(func() {
				resp, err := client.Get(page + "/client")
				if err == nil {
					resp.Body.Close()
				}
			})
		}
		kit.Must(t, q.Run(c.Collector.Collector))
		all.Wait()
		c.Wait()
		attached.Wait()
		plain.Wait()
		if n := countPages(web.Log("a.test")); n != 10 {
			t.Errorf("%d pages were sent, want 10", n)
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.Denied != 30 || s.PagesSent != 10 {
			t.Errorf("the host has %+v", s)
		}
	})
}

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
			c := kit.Start(t, web, []colly.CollectorOption{colly.Async(), colly.AllowURLRevisit(), colly.StdlibContext(ctx)}, collyrobots.MaxPages(limit), collyrobots.StopRefused(1+random.IntN(5)))
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

// TestWaitsUnderLimitsEnd checks that the wait of a page under a limit still ends with its context
// and with Close.
func TestWaitsUnderLimitsEnd(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 100\n", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.MaxPages(5), collyrobots.StopRefused(2))
		acquire := func(ctx context.Context) error {
			req, _ := http.NewRequest("GET", "http://a.test/", nil)
			_, err := c.Robots.Acquire(ctx, req)
			return err
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(10*time.Second, func() { c.Robots.Close() })
		if err := acquire(t.Context()); !errors.Is(err, collyrobots.ErrClosed) || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if s := kit.HostStats(t, c.Robots, "a.test"); s.PagesSent != 0 {
			t.Errorf("%d pages are counted", s.PagesSent)
		}
	})
}
