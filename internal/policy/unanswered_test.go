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

// by gets the policy of the crawler's page in a way whose requests have this answer.
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

// TestUnansweredCountsForItsWay checks that an unanswered fetch counts only for callers with the
// same Way, and that an answer counts for all.
func TestUnansweredCountsForItsWay(t *testing.T) {
	for _, d := range dialect.All() {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(d), nil)
				first := c.by(t, 1, refuse)
				if again := c.by(t, 1, refuse); (again == first) != (d != dialect.Temoto()) {
					t.Errorf("the same way again: got %v", again)
				}
				other := errors.New("another fault")
				second := c.by(t, 2, func(*http.Request) (*http.Response, error) { return nil, other })
				if !errors.Is(second.Err(), other) || !errors.Is(c.by(t, 1, refuse).Err(), errReset) {
					t.Errorf("got errors %v and %v, want those of each way", first.Err(), second.Err())
				}
				third := c.by(t, 3, reply(200, closed))
				for way := range 4 {
					if p := c.by(t, way, refuse); p != third || p.RobotsStatus != policy.Rules {
						t.Errorf("way %d after the answer: got %v, want rules", way, p.RobotsStatus)
					}
				}
			})
		})
	}
}

// TestFailureStatusCountsForAllWays checks that a response with a failure status is an answer.
func TestFailureStatusCountsForAllWays(t *testing.T) {
	for _, status := range []int{404, 429, 503, 302} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), nil)
			first := c.by(t, 1, reply(status, ""))
			if p := c.by(t, 2, refuse); p != first || c.site.asked() != 1 {
				t.Errorf("status %d: %d requests, want 1", status, c.site.asked())
			}
		})
	}
}

// TestOneFetchPerWay checks that callers with three ways wait for one fetch. Each way without an
// answer makes one more fetch, whatever the number of callers.
func TestOneFetchPerWay(t *testing.T) {
	for name, tc := range map[string]struct { // the order of the second and the third way is random
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
					t.Errorf("%d requests in %v, want at most %d in %v", c.site.asked(), took, tc.asked, tc.took)
				}
			})
		})
	}
}

// TestLateFailureKeepsAnswer checks that an unanswered fetch does not replace the answer that
// another way got during that fetch.
func TestLateFailureKeepsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), nil)
		late := func(*http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second) // even if its context ends
			return nil, errReset
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if p := c.by(t, 1, late); p.RobotsStatus != policy.Rules {
				t.Errorf("the late way got %v, want rules", p.RobotsStatus)
			}
		})
		synctest.Wait()
		c.by(t, 2, reply(200, closed))
		wg.Wait()
		if p := c.by(t, 1, refuse); p.RobotsStatus != policy.Rules || c.site.asked() != 2 {
			t.Errorf("at the end got %v after %d requests, want rules after 2", p.RobotsStatus, c.site.asked())
		}
	})
}

// TestUnansweredInStore checks that a process makes its own fetch although the store has an
// unanswered one, because its way may be another, and that it continues the outage in the store.
func TestUnansweredInStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := store.NewMemory()
		before := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		before.by(t, 1, refuse)
		time.Sleep(30*day - time.Second)
		now := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		if p := now.by(t, 1, refuse); p.RobotsStatus != policy.Unreachable || time.Until(p.Expires()) != time.Second/10 {
			t.Errorf("a second before thirty days: got %v for %v, want unreachable for 100ms", p.RobotsStatus, time.Until(p.Expires()))
		}
		time.Sleep(time.Second)
		if p := now.by(t, 1, refuse); p.RobotsStatus != policy.NoRobots {
			t.Errorf("after thirty days: got %v, want no_robots", p.RobotsStatus)
		}
		third := newCrawler(t, with(dialect.RFC9309(), kept), nil)
		if p := third.by(t, 1, reply(200, closed)); p.RobotsStatus != policy.Rules {
			t.Errorf("a third process: got %v, want rules", p.RobotsStatus)
		}
	})
}

// TestManyWays checks that only the last few ways are remembered, and that there is a tenth of a
// second between fetches after ten unanswered ones.
func TestManyWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.CocCoc()), nil) // remembers unanswered fetches for ten minutes
		began := time.Now()
		const ways = 30
		for way := range ways {
			c.by(t, way, refuse)
		}
		if took := time.Since(began); took != (ways-10)*time.Second/10 {
			t.Errorf("%d ways took %v, want 2s", ways, took)
		}
		remembered := 0
		asked := c.site.asked()
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

// TestProxiesInTurn checks that there is no pause after an unanswered fetch if the proxies take
// turns, because the next one may reach the site.
func TestProxiesInTurn(t *testing.T) {
	for _, tc := range []struct {
		proxies []string // of the requests, in order
		hangs   bool
		asked   int           // requests of one Get
		took    time.Duration // by this Get
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
					t.Errorf("got %d requests in %v, expires after %v, want %+v", c.site.asked(), took, time.Until(p.Expires()), tc)
				}
			})
		})
	}
}

// TestCallersOfOneClient checks that callers with one client share a fetch however long it takes,
// and that they fetch one after the other if it is unanswered.
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

// through gets the policy in a way whose requests use these proxies in turn, with an answer for
// each. A proxy without an answer answers with status 502.
func (c *crawler) through(t *testing.T, way any, proxies []string, answers map[string]func(*http.Request) (*http.Response, error)) *policy.Policy {
	t.Helper()
	last := -1
	how := policy.Fetch{
		UserAgent: agent,
		Way:       policy.Way{Client: way},
		Do: func(req *http.Request) (*http.Response, error) {
			c.site.mu.Lock()
			c.site.requests = append(c.site.requests, req)
			c.site.mu.Unlock()
			last++
			if answer := answers[proxies[last%len(proxies)]]; answer != nil {
				return answer(req)
			}
			return reply(502, "")(req)
		},
		Proxy: func() string { return proxies[last%len(proxies)] },
	}
	p, err := c.Get(t.Context(), c.page, how)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProxyAnswersForItself checks that a status 5xx that came through a proxy counts only for its
// way, and that the next proxy is asked if proxies take turns. Any other answer counts for all.
func TestProxyAnswersForItself(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.CocCoc(), dialect.Temoto()} {
		for _, status := range []int{500, 502, 503, 504} {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(d), nil)
				dead := map[string]func(*http.Request) (*http.Response, error){"dead": reply(status, "")}
				first := c.through(t, 1, []string{"dead"}, dead)
				if first.Status() != status || first.RobotsStatus == policy.Rules || c.site.asked() != 2 {
					t.Errorf("%v, %d: got %v, status %d after %d requests", d, status, first.RobotsStatus, first.Status(), c.site.asked())
				}
				if again := c.through(t, 1, []string{"dead"}, dead); again != first || c.site.asked() != 2 {
					t.Errorf("%v, %d: the same proxy was asked again", d, status)
				}
				alive := map[string]func(*http.Request) (*http.Response, error){"alive": reply(200, closed)}
				if p := c.through(t, 2, []string{"alive"}, alive); allows(p, "/x") || c.site.asked() != 3 {
					t.Errorf("%v, %d: another proxy: got %v after %d requests", d, status, p.RobotsStatus, c.site.asked())
				}
				if p := c.through(t, 1, []string{"dead"}, dead); allows(p, "/x") || c.site.asked() != 3 {
					t.Errorf("%v, %d: the answer through the other proxy does not count for the first", d, status)
				}
			})
		}
	}
}

// TestProxiesThatFailInTurn checks how often robots.txt is requested if proxies take turns.
func TestProxiesThatFailInTurn(t *testing.T) {
	alive := map[string]func(*http.Request) (*http.Response, error){
		"alive": reply(200, closed), "busy": reply(503, "", "Retry-After", "60"), "gone": reply(404, ""), "": reply(503, ""),
	}
	for _, tc := range []struct {
		proxies []string
		asked   int // requests of one Get
		status  policy.RobotsStatus
		life    time.Duration // for this way
	}{
		{[]string{"dead", "alive"}, 2, policy.Rules, 24 * time.Hour},
		{[]string{"dead", "dead2", "alive"}, 3, policy.Rules, 24 * time.Hour},
		{[]string{"dead", "gone"}, 2, policy.NoRobots, 24 * time.Hour},
		{[]string{"dead", "dead2", "dead3"}, 3, policy.Unreachable, 0},
		{[]string{"dead"}, 2, policy.Unreachable, time.Second},
		{[]string{"busy"}, 1, policy.Unreachable, 0},
		{[]string{""}, 1, policy.Unreachable, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), nil)
			p := c.through(t, 1, tc.proxies, alive)
			if p.RobotsStatus != tc.status || c.site.asked() != tc.asked || time.Until(p.Expires()) != tc.life {
				t.Errorf("%q: got %v for %v after %d requests, want %+v", tc.proxies, p.RobotsStatus, time.Until(p.Expires()), c.site.asked(), tc)
			}
		})
	}
}

// TestProxyAnswerInStore checks that the answer of a proxy in a store does not count for another
// process.
func TestProxyAnswerInStore(t *testing.T) {
	kept := store.NewMemory()
	before := newCrawler(t, with(dialect.RFC9309(), kept), nil)
	before.through(t, 1, []string{"dead"}, nil)
	now := newCrawler(t, with(dialect.RFC9309(), kept), nil)
	if p := now.by(t, 1, reply(200, closed)); p.RobotsStatus != policy.Rules || now.site.asked() != 1 {
		t.Errorf("got %v after %d requests, want rules after one", p.RobotsStatus, now.site.asked())
	}
}

// askThrough gets the policy through a fixed proxy, which answers with status 503.
func (c *crawler) askThrough(t *testing.T, client int, proxy string) *policy.Policy {
	t.Helper()
	how := policy.Fetch{
		UserAgent: agent,
		Way:       policy.Way{Client: client, Proxy: proxy},
		Do: func(req *http.Request) (*http.Response, error) {
			c.site.mu.Lock()
			c.site.requests = append(c.site.requests, req)
			c.site.mu.Unlock()
			return reply(503, "")(req)
		},
		Proxy: func() string { return "gateway.test:3128" },
	}
	p, err := c.Get(t.Context(), c.page, how)
	if err != nil {
		t.Error(err)
		return nil
	}
	return p
}

// TestFixedProxyAnswersOnce checks that one answer of a proxy counts, until the time of the next
// attempt, for all clients whose requests always use this proxy, in all caches that share a store or
// their files. The clients of another proxy ask once for themselves.
func TestFixedProxyAnswersOnce(t *testing.T) {
	files := policy.NewFiles()
	files.Share()
	for name, o := range map[string]policy.Options{
		"store": {Dialect: dialect.RFC9309(), Store: store.NewMemory()},
		"files": {Dialect: dialect.RFC9309(), Files: files},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caches := []*crawler{newCrawler(t, o, nil), newCrawler(t, o, nil), newCrawler(t, o, nil)}
				asked := 0
				for attempt, life := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
					for page := range 200 {
						c := caches[page%3]
						p := c.askThrough(t, page%20, "one")
						if p.RobotsStatus != policy.Unreachable || p.Status() != 503 || time.Until(p.Expires()) != life {
							t.Fatalf("attempt %d: got %v, %d for %v, want %v", attempt, p.RobotsStatus, p.Status(), time.Until(p.Expires()), life)
						}
					}
					asked = caches[0].site.asked() + caches[1].site.asked() + caches[2].site.asked()
					if asked != attempt+1 {
						t.Fatalf("attempt %d: %d requests", attempt, asked)
					}
					time.Sleep(life)
				}
				other := caches[0]
				asked = other.site.asked()
				for page := range 200 {
					other.askThrough(t, 20+page%20, "two")
				}
				if n := other.site.asked() - asked; n != 1 {
					t.Errorf("%d requests through another proxy, want 1", n)
				}
			})
		})
	}
}

// TestFixedProxyAtTheSameTime checks that clients that wait at the same time share one answer of
// their proxy.
func TestFixedProxyAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), nil)
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { c.askThrough(t, i%20, "one") })
		}
		began := time.Now()
		all.Wait()
		if c.site.asked() != 1 || time.Since(began) != 0 {
			t.Errorf("%d requests in %v, want 1 at once", c.site.asked(), time.Since(began))
		}
	})
}

// TestProxyOfEachPage checks that each page with a proxy of its own, such as other credentials for
// one gateway, requests the file once, and that a long run of failures slows the requests down.
func TestProxyOfEachPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), nil)
		began := time.Now()
		for i := range 1000 {
			c.askThrough(t, i, fmt.Sprint("user", i))
		}
		if c.site.asked() != 1000 || time.Since(began) < 98*time.Second {
			t.Errorf("%d requests in %v, want 1000, ten in a second", c.site.asked(), time.Since(began))
		}
	})
}

// TestUpdatedWaitsForAnotherAuthority checks that Options.Updated may wait for the policy of another
// authority when both are without an answer. The log of the plugin is written there, and the handler of
// the program may call Plugin.Check.
func TestUpdatedWaitsForAnotherAuthority(t *testing.T) {
	other := authority("https://other.test/")
	var c *crawler
	o := under(dialect.RFC9309())
	o.Updated = func(u policy.Update) {
		if u.Policy.Authority == other {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p, err := c.ask(ctx, other)
		if err != nil || !errors.Is(p.Err(), errReset) {
			t.Errorf("got %v, %v for the other authority, want a policy without an answer", p, err)
		}
	}
	c = newCrawler(t, o, refuse)
	c.get(t)
}
