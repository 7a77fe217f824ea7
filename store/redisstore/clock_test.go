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

// A clock is that of a Redis in memory. It goes, and can be made to jump.
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

// jump moves the clock on by as much as has passed, and d.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	c.server.SetTime(time.Now().Add(c.ahead))
}

func (c *clock) open(t *testing.T, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: c.server.Addr()})
	t.Cleanup(func() { client.Close() })
	return open(t, client, options...)
}

// passes is takes by a clock that is set once in a millisecond, if the machine is not late.
func passes(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	lasts(t, want*8/10, want, f)
}

// TestClockGoesBack: whether the host is held, has just been asked, or has asked for patience,
// nobody waits for the clock to catch up, or starts too early.
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
		mustAcquire(t, a, delay) // and is not given back
		c.jump(-back)
		passes(t, time.Second+delay, func() { mustAcquire(t, b, delay) })
		if text := logged.String(); strings.Count(text, "clock went back") != 1 || !strings.Contains(text, "jump=") {
			t.Errorf("logged %q", text)
		}
		c.jump(-1000 * time.Hour)
		passes(t, time.Second+delay, func() { // a host that was never asked, whose epoch lies in the future
			if _, err := b.Acquire(ctx, "another", delay); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClockJumpsAhead: two processes may start within one delay, once.
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
		t.Errorf("%d gaps under the delay", short)
	}
}
