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

// after answers once d has passed, unless the request is given up.
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

// TestOneFetch: a thousand first callers make one request, and all have its answer.
func TestOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), after(time.Second, reply(200, closed)))
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if p := c.get(t); allows(p, "/x") {
					t.Error("/x is open")
				}
			})
		}
		wg.Wait()
		if c.site.asked() != 1 {
			t.Errorf("%d requests", c.site.asked())
		}
	})
}

// TestFirstCallerLeaves: the fetch is everybody's; the one who began it may go.
func TestFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), after(2*time.Second, reply(200, closed)))
		mine := errors.New("mine")
		first, leave := context.WithCancelCause(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.ask(first, c.page); !errors.Is(err, mine) {
				t.Errorf("the first caller got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			start := time.Now()
			if p := c.get(t); p.RobotsStatus != policy.Rules || time.Since(start) != 2*time.Second {
				t.Errorf("the second caller got %v after %v", p.RobotsStatus, time.Since(start))
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
			t.Errorf("%d requests", c.site.asked())
		}
	})
}

// TestAllLeave: a fetch that nobody waits for is given up, says nothing about the site, and the
// next caller's is new.
func TestAllLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.CocCoc()), hang)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.ask(ctx, c.page); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		c.site.says(reply(200, closed)) // at once, before the fetch given up has ended
		if p := c.get(t); p.RobotsStatus != policy.Rules {
			t.Errorf("the next caller got %v: %v", p.RobotsStatus, p.Err())
		}
		synctest.Wait()
		if c.site.requests[0].Context().Err() == nil {
			t.Error("the first fetch goes on")
		}
		if p := c.get(t); p.RobotsStatus != policy.Rules || c.site.asked() != 2 {
			t.Errorf("in the end %v after %d requests", p.RobotsStatus, c.site.asked())
		}
		if _, err := c.ask(ctx, c.page); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who had already gone got %v", err)
		}
	})
}

// TestClose: everybody is let go, the fetch has ended when Close returns, and nothing starts
// afterwards.
func TestClose(t *testing.T) {
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
					t.Errorf("a waiter got %v", err)
				}
			})
		}
		synctest.Wait()
		if err := c.Close(); err != nil || !ended {
			t.Errorf("Close: %v, the fetch has ended: %t", err, ended)
		}
		wg.Wait()
		if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
			t.Errorf("Get after Close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestCloseForgets(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed))
	c.get(t)
	_ = c.Close()
	if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
		t.Errorf("a known policy after Close: %v", err)
	}
	c.Answered(c.page)
}

// TestGoexit: a Doer that ends its goroutine, as t.FailNow does, leaves nobody waiting and nobody
// let in.
func TestGoexit(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), func(*http.Request) (*http.Response, error) {
		runtime.Goexit()
		return nil, nil
	})
	if p := c.get(t); p.RobotsStatus != policy.Unreachable || p.Err() == nil {
		t.Errorf("%v, %v", p.RobotsStatus, p.Err())
	}
}

// TestOthersUseWhatIsThere: of many who find a policy expired one waits for the new one; but nobody
// goes by a copy that expired longer ago than a fetch takes, or lets nobody in for want of a fetch.
func TestOthersUseWhatIsThere(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  func(*http.Request) (*http.Response, error)
		idle   time.Duration
		waited int // of three callers
	}{
		{"just expired", reply(200, closed), 24 * time.Hour, 1},
		{"just expired, no file", reply(404, ""), 24 * time.Hour, 1},
		{"at the end of its grace", reply(200, closed), 24*time.Hour + policy.FetchLimit - time.Nanosecond, 1},
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
					t.Errorf("%d waited, want %d; %d requests", waited.Load(), test.waited, c.site.asked())
				}
				if p := c.get(t); allows(p, "/z") || !allows(p, "/x") {
					t.Errorf("afterwards: %+v", p)
				}
			})
		})
	}
}

// TestAuthoritiesApart: one that hangs holds nobody else up.
func TestAuthoritiesApart(t *testing.T) {
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
				t.Errorf("%s: %+v, %v", raw, p, err)
			}
		}
		if c.site.asked() != 5 || time.Since(start) != 0 {
			t.Errorf("%d requests after %v", c.site.asked(), time.Since(start))
		}
		_ = c.Close()
	})
}
