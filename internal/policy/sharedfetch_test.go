package policy_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// after answers when d has passed, unless the request is canceled.
func after(d time.Duration, answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return answer(req)
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

// TestConcurrentCallersShareOneFetch checks that a thousand callers at once cause one request.
func TestConcurrentCallersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), after(time.Second, reply(200, closed)))
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if p := c.get(t); allows(p, "/x") {
					t.Error("/x is allowed")
				}
			})
		}
		wg.Wait()
		if c.site.asked() != 1 {
			t.Errorf("%d requests, want 1", c.site.asked())
		}
	})
}

// TestFetchOutlivesItsFirstCaller checks that a fetch continues for the other callers when the
// caller that started it gives up.
func TestFetchOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), after(2*time.Second, reply(200, closed)))
		mine := errors.New("the first caller has given up")
		first, leave := context.WithCancelCause(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.ask(first, c.page); !errors.Is(err, mine) {
				t.Errorf("the first caller got %v, want its own cause", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			start := time.Now()
			if p := c.get(t); p.RobotsStatus != policy.Rules || time.Since(start) != 2*time.Second {
				t.Errorf("the second caller got %v after %v, want rules after 2s", p.RobotsStatus, time.Since(start))
			}
		})
		synctest.Wait()
		leave(mine)
		synctest.Wait()
		if c.site.last().Context().Err() != nil {
			t.Error("the fetch ended with its first caller")
		}
		wg.Wait()
		if c.site.asked() != 1 {
			t.Errorf("%d requests, want 1", c.site.asked())
		}
	})
}

// TestFetchOutlivesItsCallers checks that a fetch continues when its last caller gives up, so that
// callers with too little time get the file in the end.
func TestFetchOutlivesItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), after(15*time.Second, reply(200, closed)))
		for i, want := range []error{context.DeadlineExceeded, nil, nil} {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			p, err := c.ask(ctx, c.page)
			cancel()
			if !errors.Is(err, want) || err == nil && allows(p, "/x") {
				t.Errorf("caller %d got %v, want %v", i, err, want)
			}
		}
		if c.site.asked() != 1 {
			t.Errorf("%d requests, want 1", c.site.asked())
		}
	})
}

// TestFetchWithoutCallersIsCanceled checks that a fetch for which no caller waits any more ends
// after its time limit, also while its Doer waits for the server, that this says nothing about the
// site, and that the next caller starts a new fetch. A caller that comes before prevents this.
func TestFetchWithoutCallersIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.CocCoc()), func(req *http.Request) (*http.Response, error) {
			return nil, policy.Wait(req.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		})
		ask := func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := c.ask(ctx, c.page); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want a deadline error", err)
			}
		}
		ask()
		time.Sleep(policy.FetchLimit - 1)
		ask()
		time.Sleep(policy.FetchLimit - 1)
		synctest.Wait()
		if c.site.asked() != 1 || c.site.last().Context().Err() != nil {
			t.Fatalf("the fetch has ended, or there are %d requests, want 1", c.site.asked())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if c.site.last().Context().Err() == nil {
			t.Error("the fetch continues")
		}
		c.site.says(reply(200, closed))
		if p := c.get(t); p.RobotsStatus != policy.Rules || c.site.asked() != 2 {
			t.Errorf("the next caller got %v: %v after %d requests, want rules after 2", p.RobotsStatus, p.Err(), c.site.asked())
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.ask(ctx, c.page); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller whose context had ended got %v", err)
		}
	})
}

// TestCloseEndsFetchesAndCallers checks that Close ends the wait of all callers and the fetch
// before it returns, and that no fetch starts afterwards.
func TestCloseEndsFetchesAndCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		c := newCrawler(t, under(dialect.RFC9309()), func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			time.Sleep(time.Second)
			ended = true
			return nil, req.Context().Err()
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
					t.Errorf("a waiting caller got %v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		c.Close()
		if !ended {
			t.Error("Close returned before the fetch had ended")
		}
		wg.Wait()
		if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
			t.Errorf("Get after Close: got %v, want ErrClosed", err)
		}
		c.Close() // a second call does nothing
	})
}

// TestKnownPolicyAfterClose checks that Get returns no policy from the cache after Close.
func TestKnownPolicyAfterClose(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed))
	c.get(t)
	c.Close()
	if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	c.Answered(c.page)
}

// TestDoerCallsGoexit checks that nothing is allowed, and that Get returns, when a Doer ends its
// goroutine as t.FailNow does.
func TestDoerCallsGoexit(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), func(*http.Request) (*http.Response, error) {
		runtime.Goexit()
		return nil, nil
	})
	if p := c.get(t); p.RobotsStatus != policy.Unreachable || p.Err() == nil {
		t.Errorf("got %v, %v, want unreachable with an error", p.RobotsStatus, p.Err())
	}
}

// TestExpiredPolicyIsUsedDuringFetch checks that one caller waits for the fetch after a policy has
// expired, while the others use the expired policy. They wait too if it expired longer ago than a
// fetch may take, or if it allows nothing.
func TestExpiredPolicyIsUsedDuringFetch(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  func(*http.Request) (*http.Response, error)
		idle   time.Duration
		waited int // of three callers
	}{
		{"just expired", reply(200, closed), 24 * time.Hour, 1},
		{"just expired, no file", reply(404, ""), 24 * time.Hour, 1},
		{"expired almost a fetch ago", reply(200, closed), 24*time.Hour + policy.FetchLimit - time.Nanosecond, 1},
		{"long expired", reply(200, closed), 24*time.Hour + policy.FetchLimit, 3},
		{"unreachable", reply(503, ""), time.Minute, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), test.first)
				old := c.get(t)
				time.Sleep(test.idle)
				c.site.says(after(time.Second, reply(200, "User-agent: *\nDisallow: /z\n")))
				var wg sync.WaitGroup
				var waited atomic.Int32
				for range 3 {
					wg.Go(func() {
						if c.get(t) != old {
							waited.Add(1)
						}
					})
					synctest.Wait()
				}
				wg.Wait()
				if int(waited.Load()) != test.waited || c.site.asked() != 2 {
					t.Errorf("%d callers waited, want %d; %d requests, want 2", waited.Load(), test.waited, c.site.asked())
				}
				if p := c.get(t); allows(p, "/z") || !allows(p, "/x") {
					t.Errorf("after the fetch got %+v, want the new rules", p)
				}
			})
		})
	}
}

// TestSlowAuthorityDoesNotDelayOthers checks that a fetch that hangs does not delay those of other
// authorities.
func TestSlowAuthorityDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "slow.example" {
				return hang(req)
			}
			return reply(200, closed)(req)
		})
		go func() { _, _ = c.ask(context.Background(), authority("http://slow.example/")) }()
		synctest.Wait()
		start := time.Now()
		for _, raw := range []string{"http://example.com/", "https://example.com/", "http://example.com:81/", "ftp://example.com/"} {
			p, err := c.ask(context.Background(), authority(raw))
			if err != nil || p.Authority.String()+"/" != raw {
				t.Errorf("%s: got %+v, %v", raw, p, err)
			}
		}
		if c.site.asked() != 5 || time.Since(start) != 0 {
			t.Errorf("%d requests after %v, want 5 at once", c.site.asked(), time.Since(start))
		}
		c.Close()
	})
}
