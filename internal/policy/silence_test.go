package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// by asks for the policy of the crawler's page in a way of its own, which answers so.
func (c *crawler) by(t *testing.T, way any, answer func(*http.Request) (*http.Response, error)) *policy.Policy {
	t.Helper()
	do := func(req *http.Request) (*http.Response, error) {
		c.site.mu.Lock()
		c.site.requests = append(c.site.requests, req)
		c.site.mu.Unlock()
		return answer(req)
	}
	p, err := c.Get(t.Context(), c.page, policy.Fetch{Do: do, UserAgent: agent, Way: policy.Way{Client: way}})
	if err != nil {
		t.Errorf("Get by %v: %v", way, err)
	}
	return p
}

// TestWaysApart: a fetch that was not answered is known to those who ask in the same way alone, and
// an answer to all.
func TestWaysApart(t *testing.T) {
	for _, d := range dialect.All() {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(d), nil)
				first := c.by(t, 1, refuse)
				if again := c.by(t, 1, refuse); (again == first) != (d != dialect.Temoto()) {
					t.Errorf("the same way: %v", again)
				}
				other := errors.New("another fault")
				second := c.by(t, 2, func(*http.Request) (*http.Response, error) { return nil, other })
				if !errors.Is(second.Err(), other) || !errors.Is(c.by(t, 1, refuse).Err(), errReset) {
					t.Errorf("errors %v and %v", first.Err(), second.Err())
				}
				third := c.by(t, 3, reply(200, closed))
				for way := range 4 {
					if p := c.by(t, way, refuse); p != third || p.RobotsStatus != policy.Rules {
						t.Errorf("by %d after the answer: %v", way, p.RobotsStatus)
					}
				}
			})
		})
	}
}

// TestAnswersOfFailureAreShared: a status is an answer.
func TestAnswersOfFailureAreShared(t *testing.T) {
	for _, status := range []int{404, 429, 503, 302} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), nil)
			first := c.by(t, 1, reply(status, ""))
			if p := c.by(t, 2, refuse); p != first || c.site.asked() != 1 {
				t.Errorf("%d: %d requests", status, c.site.asked())
			}
		})
	}
}

// TestOneFetchPerWay: callers of three ways wait for one fetch. The ways that are not answered make
// one more fetch each, whatever the number of callers.
func TestOneFetchPerWay(t *testing.T) {
	for name, tc := range map[string]struct { // the order of the second and the third way is left to chance
		answers [3]func(*http.Request) (*http.Response, error)
		asked   int
		took    time.Duration
	}{
		"the first is answered": {[3]func(*http.Request) (*http.Response, error){reply(200, closed), refuse, refuse}, 1, time.Second},
		"the last is answered":  {[3]func(*http.Request) (*http.Response, error){hang, hang, reply(200, closed)}, 3, 7 * time.Second},
		"none is answered":      {[3]func(*http.Request) (*http.Response, error){hang, hang, hang}, 3, 36 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), nil)
				began := time.Now()
				var wg sync.WaitGroup
				for way := range 3 {
					for range 100 {
						wg.Go(func() { c.by(t, way, after(time.Second, tc.answers[way])) })
					}
					synctest.Wait()
				}
				wg.Wait()
				if took := time.Since(began); c.site.asked() > tc.asked || took > tc.took {
					t.Errorf("%d requests in %v, want %d in %v at most", c.site.asked(), took, tc.asked, tc.took)
				}
			})
		})
	}
}

// TestALateFailureDoesNotHideAnAnswer: another way was answered while one was not.
func TestALateFailureDoesNotHideAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), nil)
		late := func(*http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second) // whatever becomes of its context
			return nil, errReset
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if p := c.by(t, 1, late); p.RobotsStatus != policy.Rules {
				t.Errorf("the late way has %v", p.RobotsStatus)
			}
		})
		synctest.Wait()
		c.by(t, 2, reply(200, closed))
		wg.Wait()
		if p := c.by(t, 1, refuse); p.RobotsStatus != policy.Rules || c.site.asked() != 2 {
			t.Errorf("in the end %v, %d requests", p.RobotsStatus, c.site.asked())
		}
	})
}

// TestSilenceInTheStore: another process, or a later run, may have another way. It asks for itself,
// and knows since when the file cannot be read.
func TestSilenceInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := store.Memory()
		before := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		before.by(t, 1, refuse)
		time.Sleep(30*day - time.Second)
		now := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		if p := now.by(t, 1, refuse); p.RobotsStatus != policy.Unreachable || time.Until(p.Expires()) != time.Second/10 {
			t.Errorf("a second before thirty days: %v, for %v", p.RobotsStatus, time.Until(p.Expires()))
		}
		time.Sleep(time.Second)
		if p := now.by(t, 1, refuse); p.RobotsStatus != policy.NoRobots {
			t.Errorf("after thirty days: %v", p.RobotsStatus)
		}
		third := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		if p := third.by(t, 1, reply(200, closed)); p.RobotsStatus != policy.Rules {
			t.Errorf("a third process: %v", p.RobotsStatus)
		}
	})
}

// TestManyWays: only the last few are remembered, and after ten fetches without an answer the
// others are a tenth of a second apart.
func TestManyWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.CocCoc()), nil) // which remembers for ten minutes
		began := time.Now()
		const ways = 30
		for way := range ways {
			c.by(t, way, refuse)
		}
		if took := time.Since(began); took != (ways-10)*time.Second/10 {
			t.Errorf("%d ways took %v", ways, took)
		}
		remembered, asked := 0, c.site.asked()
		for way := range ways {
			way = ways - 1 - way
			c.by(t, way, refuse)
			if c.site.asked() > asked {
				break
			}
			remembered++
		}
		if remembered != 9 {
			t.Errorf("%d ways are remembered, want the last one and 8 others", remembered)
		}
	})
}

// TestProxiesInTurn: where the requests take turns with proxies, the next one may reach the site.
func TestProxiesInTurn(t *testing.T) {
	for _, tc := range []struct {
		proxies []string // of the requests, one after the other
		hangs   bool
		asked   int           // by one Get
		took    time.Duration // by that
		pause   time.Duration
	}{
		{[]string{"", "", ""}, false, 3, 0, time.Second / 10},
		{[]string{"", "", ""}, true, 1, 10 * time.Second, 10 * time.Second},
		{[]string{"a", "a", "a"}, false, 3, 0, time.Second / 10},
		{[]string{"a", "a", "a"}, true, 2, 20 * time.Second, 20 * time.Second},
		{[]string{"a", "b", "a"}, false, 3, 0, 0},
		{[]string{"a", "b", "c"}, true, 3, 30 * time.Second, 0},
	} {
		t.Run(fmt.Sprint(tc.proxies, tc.hangs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), refuse)
				if tc.hangs {
					c.site.says(hang)
				}
				how := policy.Fetch{
					Do: c.site.do, UserAgent: agent, Limit: 10 * time.Second,
					Proxy: func() string { return tc.proxies[c.site.asked()-1] },
				}
				began := time.Now()
				p, err := c.Get(context.Background(), c.page, how)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); c.site.asked() != tc.asked || took != tc.took || time.Until(p.Expires()) != tc.pause {
					t.Errorf("%d requests in %v, expires after %v, want %+v", c.site.asked(), took, time.Until(p.Expires()), tc)
				}
			})
		})
	}
}

// TestCallersOfOneClient: they share a fetch however long it takes, and ask again one after the
// other where there is no answer.
func TestCallersOfOneClient(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		asked  int
		took   time.Duration
	}{
		"answered":     {after(9*time.Second, reply(200, closed)), 1, 9 * time.Second},
		"not answered": {hang, 3, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), tc.answer)
				began := time.Now()
				var wg sync.WaitGroup
				for caller := range 3 {
					wg.Go(func() {
						how := policy.Fetch{Do: c.site.do, UserAgent: agent, Limit: 10 * time.Second, Way: policy.Way{Caller: caller}}
						if _, err := c.Get(t.Context(), c.page, how); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); c.site.asked() != tc.asked || took != tc.took {
					t.Errorf("%d requests in %v, want %d in %v", c.site.asked(), took, tc.asked, tc.took)
				}
			})
		})
	}
}
