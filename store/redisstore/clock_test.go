package redisstore_test

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// A clock is the clock of a Redis server in memory. The server reads it in the bubble of the test, so
// it runs exactly, and a test can make it jump.
type clock struct {
	server *miniredis.Miniredis
	ahead  atomic.Int64 // nanoseconds
}

// newClock starts a server. It must be called in a bubble.
func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{server: miniredis.NewMiniRedis()}
	connection, err := c.server.Dial() // starts the server
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	c.server.Server().SetPreHook(func(_ *redisserver.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") { // the commands of a script use the time of its start
			c.server.SetTime(time.Now().Add(time.Duration(c.ahead.Load())))
		}
		return false
	})
	t.Cleanup(c.server.Close)
	return c
}

// jump moves the clock by d, in addition to the time that has passed.
func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// open returns a Store with a client of its own.
func (c *clock) open(t *testing.T, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:0", // a name would be looked up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return c.server.Dial() },
	})
	client.AddHook(oneByOne{})
	t.Cleanup(func() { client.Close() })
	return open(t, client, options...)
}

// oneByOne sends the commands of a pipeline one by one. The connections of the server in memory have
// no buffer, so otherwise the client and the server would both wait until the other one reads.
type oneByOne struct{}

func (oneByOne) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (oneByOne) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (oneByOne) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		var failed error
		for _, command := range commands {
			failed = cmp.Or(failed, next(ctx, []redis.Cmder{command}))
		}
		return failed
	}
}

// passes fails the test unless f takes as long as want by the clock of the bubble. A process that
// waits adds up to a twentieth of the delay, at random, each time that it asks.
func passes(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if got := time.Since(began); got < want || got > want+delay/10 {
		t.Errorf("it took %v instead of %v", got, want)
	}
}

// TestClockGoesBack checks that after the clock went back, no waiter waits until the clock has
// caught up, and no request starts too early. This is tested for a host that was just asked, a host
// with a Retry-After, a host that is held, and a host that was never asked.
func TestClockGoesBack(t *testing.T) {
	for _, back := range []time.Duration{5 * time.Second, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
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
		})
	}
}

// TestClockJumpsAhead checks that a jump lets at most one start come within the delay.
func TestClockJumpsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(t)
		stores := []*redisstore.Store{c.open(t), c.open(t)}
		time.Sleep(settled)
		for n := range 8 {
			gap := delay
			if n == 0 || n == 4 {
				gap = 0
			}
			passes(t, gap, func() { mustAcquire(t, stores[n%2], delay).Release(true, delay, time.Time{}) })
			if n == 3 {
				c.jump(5 * time.Second)
			}
		}
	})
}
