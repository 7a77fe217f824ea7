package policy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// TestStress lets many callers use few hosts for two days. The hosts fail, hang and change, and the
// callers may give up. Each caller whose context has not ended must get a policy, rules must be
// obeyed, and no host may get two fetches at once.
func TestStress(t *testing.T) {
	for _, d := range dialect.All() {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stress(t, with(d, store.NewMemory())) })
		})
	}
}

func stress(t *testing.T, o policy.Options) {
	const callers, rounds, hosts = 30, 60, 5
	c := policy.New(o)
	var asked [hosts]atomic.Pointer[http.Request] // the request under way
	do := func(host int) policy.Doer {
		return func(req *http.Request) (*http.Response, error) {
			if other := asked[host].Swap(req); other != nil && other.Context().Err() == nil {
				t.Errorf("host %d has two fetches at once", host)
			}
			defer asked[host].CompareAndSwap(req, nil)
			return after(rand.N(3*time.Second), []func(*http.Request) (*http.Response, error){
				reply(200, "User-agent: *\nDisallow: /\n"), reply(404, ""), reply(503, ""), refuse, hang, cut(200, closed),
			}[rand.IntN(6)])(req)
		}
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range rounds {
				host := rand.IntN(hosts)
				a := authority(fmt.Sprintf("http://host%d.example/x", host))
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(10*time.Minute))
				p, err := c.Get(ctx, a, policy.Fetch{Do: do(host), UserAgent: agent})
				cancel()
				switch {
				case err != nil && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("Get: %v", err)
				case err == nil && p.RobotsStatus == policy.Rules && allows(p, "/x"):
					t.Errorf("the rules allow /x: %+v", p)
				}
				c.Answered(a)
				time.Sleep(rand.N(90 * time.Minute))
			}
		})
	}
	wg.Wait()
	c.Close()
}
