package redisstore_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// A clock is the clock of a Redis server in memory. It runs, and a test can make it jump.
type clock struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	ahead  time.Duration
}

func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{server: miniredis.RunT(t)}
	c.jump(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(time.Millisecond); ; c.jump(0) {
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return c
}

// jump moves the clock by d, in addition to the time that has passed.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	c.server.SetTime(time.Now().Add(c.ahead))
}

// open returns a Store that waits for minutes until the server answers. The server compiles a script
// each time that it runs one, and New runs 256 of them, which takes seconds on a busy machine.
func (c *clock) open(t *testing.T, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	const patience = 5 * time.Minute
	client := redis.NewClient(&redis.Options{Addr: c.server.Addr(), ReadTimeout: patience})
	t.Cleanup(func() { client.Close() })
	return open(t, client, append(options, redisstore.Patience(patience))...)
}

// passes is like takes for a server with a clock. Such a clock is set about once in a
// millisecond, so it may be late.
func passes(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	lasts(t, want*8/10, want, f)
}

// TestClockGoesBack checks that after the clock went back, no waiter waits until the clock has
// caught up, and no request starts too early. This is tested for a host that was just asked, a host
// with a Retry-After, a host that is held, and a host that was never asked.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{5 * time.Second, 24 * time.Hour} {
		var logged log
		c := newClock(t)
		a, b := c.open(t, redisstore.Lease(time.Second)), c.open(t, redisstore.Logger(logged.logger()))
		c.jump(100 * time.Hour)
		mustAcquire(t, a, delay).Release(true, delay, time.Time{})
		c.jump(-back)
		passes(t, delay, func() { mustAcquire(t, b, delay).Release(true, delay, time.Now().Add(3*delay)) })
		c.jump(-back)
		passes(t, 3*delay, func() { mustAcquire(t, b, delay).Release(false, delay, time.Time{}) })
		mustAcquire(t, a, delay) // this lease is not released
		c.jump(-back)
		passes(t, time.Second+delay, func() { mustAcquire(t, b, delay) })
		if text := logged.String(); strings.Count(text, "clock went back") != 1 || !strings.Contains(text, "jump=") {
			t.Errorf("logged %q", text)
		}
		c.jump(-1000 * time.Hour)
		passes(t, time.Second+delay, func() { // this host was never asked, and its epoch is in the future
			if _, err := b.Acquire(ctx, "another", delay); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClockJumpsAhead checks that a jump lets at most one start come within the delay.
func TestClockJumpsAhead(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	stores := []*redisstore.Store{c.open(t), c.open(t)}
	time.Sleep(settled)
	short, last := 0, time.Time{}
	for n := range 8 {
		l := mustAcquire(t, stores[n%2], delay)
		if now := time.Now(); now.Sub(last) < delay {
			short++
		}
		last = time.Now()
		l.Release(true, delay, time.Time{})
		if n == 3 {
			c.jump(5 * time.Second)
		}
	}
	if short > 1 {
		t.Errorf("%d gaps are shorter than the delay", short)
	}
}
