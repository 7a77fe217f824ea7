package policy

import (
	"context"
	"sync"
	"time"
)

// clock measures the time that a fetch uses, and ends the fetch when its limit is used up.
type clock struct {
	limit  time.Duration
	cancel context.CancelCauseFunc

	// mu protects the fields below it.
	mu    sync.Mutex
	left  time.Duration // of the limit, at since
	since time.Time     // when the clock last began to run
	stops int           // waits under way; the clock runs while there are none
	timer *time.Timer
}

type clockKey struct{}

// withClock returns a context that ends when limit is used up, and its clock. The caller must
// release the clock.
func withClock(ctx context.Context, limit time.Duration) (context.Context, *clock) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{limit: limit, cancel: cancel, left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() { cancel(errTimeLimit(limit)) })
	return &clockContext{Context: ctx, clock: c}, c
}

func (c *clock) release() {
	c.timer.Stop()
	c.cancel(context.Canceled)
}

// used returns how much of the limit is used up.
func (c *clock) used() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.left
	if c.stops == 0 {
		left -= time.Since(c.since)
	}
	return min(c.limit-left, c.limit)
}

// A clockContext is the context of a fetch. Its deadline is the time at which the clock ends the
// fetch unless it is stopped: some transports use nothing but the deadline.
type clockContext struct {
	context.Context
	clock *clock
}

// Deadline implements context.Context.
func (ctx *clockContext) Deadline() (deadline time.Time, ok bool) {
	deadline, ok = ctx.Context.Deadline()
	end := ctx.clock.deadline()
	if !end.IsZero() && (!ok || end.Before(deadline)) {
		return end, true
	}
	return deadline, ok
}

// Value implements context.Context.
func (ctx *clockContext) Value(key any) any {
	if key == (clockKey{}) {
		return ctx.clock
	}
	return ctx.Context.Value(key)
}

// Wait calls f without counting its time against the limit of the fetch. It is for waits that the
// site does not cause, such as the wait for the host's delay. A [Doer] calls it with the context of
// its request.
func Wait(ctx context.Context, f func(context.Context) error) error {
	if c, ok := ctx.Value(clockKey{}).(*clock); ok {
		c.stop()
		defer c.run()
	}
	return f(ctx)
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops++
	if c.stops == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
}

func (c *clock) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops--
	if c.stops == 0 {
		c.since = time.Now()
		c.timer.Reset(max(0, c.left))
	}
}

// deadline returns when the limit will be used up, or the zero time while the clock is stopped.
func (c *clock) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stops > 0 {
		return time.Time{}
	}
	return c.since.Add(c.left)
}
