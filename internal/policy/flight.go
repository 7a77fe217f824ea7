package policy

import (
	"context"
	"net/url"
	"time"
)

// flight is one fetch under way and those who wait for it.
type flight struct {
	done    chan struct{} // closed when it has ended
	policy  *Policy       // set before done is closed; nil when the flight was given up
	waiters int           // guarded by Cache.mu
	cancel  context.CancelFunc
}

// join waits for the flight that renews k, and starts it if there is none.
func (c *Cache) join(ctx context.Context, k key, known *Policy, userAgent string, do Doer) (*Policy, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	// One that has landed since the caller looked.
	if p, ok := c.policies.GetIfPresent(k); ok && p != known && p.holds(time.Now()) {
		c.mu.Unlock()
		return p, nil
	}
	f := c.flights[k]
	if f != nil && known.mayServe(time.Now()) {
		c.mu.Unlock()
		return known, nil
	}
	if f == nil {
		f = c.start(k, &fetcher{do: do, userAgent: userAgent})
	}
	f.waiters++
	c.mu.Unlock()
	return c.wait(ctx, k, f)
}

// mayServe reports whether an expired policy may still be used while another caller renews it: for no longer than a
// fetch takes, so that nobody crawls by a copy from last week. One that lets nobody in is of no use: better to wait.
func (p *Policy) mayServe(now time.Time) bool {
	return p != nil && p.Meaning >= NoRestriction && now.Before(p.Expires.Add(FetchLimit))
}

func (c *Cache) wait(ctx context.Context, k key, f *flight) (*Policy, error) {
	select {
	case <-f.done:
		if f.policy == nil {
			return nil, ErrClosed
		}
		return f.policy, nil
	case <-ctx.Done():
		c.leave(k, f)
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
}

// leave takes one waiter from f, and gives f up when there is none left. The next caller starts anew.
func (c *Cache) leave(k key, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		c.remove(k, f)
	}
}

// remove takes f out of the flights. c.mu is held.
func (c *Cache) remove(k key, f *flight) {
	if c.flights[k] == f {
		delete(c.flights, k)
	}
}

// start begins a flight on a context of its own. c.mu is held.
func (c *Cache) start(k key, how *fetcher) *flight {
	ctx, cancel := context.WithCancel(c.ctx)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[k] = f
	c.running.Go(func() {
		old, _ := c.policies.GetIfPresent(k)
		robots := robotsURL(k, old)
		defer func() { c.tell(old, f.policy) }()
		defer c.land(ctx, k, robots, f)
		f.policy = c.renew(ctx, robots, old, how)
	})
	return f
}

// land ends f: whoever waits goes on, also when a store or a Doer ended the flight by a panic or runtime.Goexit.
func (c *Cache) land(ctx context.Context, k key, robots string, f *flight) {
	if v := recover(); f.policy == nil && ctx.Err() == nil {
		f.policy = c.policyOf(robots, facts{}.after(failed(silent, &PanicError{v})))
		c.report(f.policy)
	}
	f.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(k, f)
	close(f.done)
}

// tell reports a change of what is allowed.
func (c *Cache) tell(old, new *Policy) {
	if c.options.Changed == nil || old == nil || new == nil || !new.differs(old) {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("panic in the callback for a changed robots.txt", "robots", new.RobotsURL, "panic", v)
		}
	}()
	c.options.Changed(old, new)
}

// differs reports whether p means something else than old: another meaning, or another text of the rules.
func (p *Policy) differs(old *Policy) bool {
	return p.Meaning != old.Meaning || p.Meaning == Rules && p.Group != old.Group
}

// renew returns what is in force for the file at robots after a fetch, or after a look into the store that spares it.
// It returns nil when ctx was cancelled, which says nothing about the site.
func (c *Cache) renew(ctx context.Context, robots string, old *Policy, how *fetcher) *Policy {
	known := c.recall(ctx, robots, old)
	p := c.policyOf(robots, known)
	if !p.holds(time.Now()) {
		o := c.fetch(ctx, robots, known, how)
		if ctx.Err() != nil {
			return nil
		}
		p = c.policyOf(robots, c.remember(ctx, robots, known, o))
		c.report(p)
	}
	put(c.policies, keyIn(robots), p)
	return p
}

func (c *Cache) fetch(ctx context.Context, robots string, known facts, how *fetcher) outcome {
	how.hops = c.row.hops
	if c.row.conditional && known.copy != nil {
		how.old, how.tag = known.copy, known.copy.tag
	}
	u, err := url.Parse(robots)
	if err != nil {
		return failed(silent, err)
	}
	timed, release := withClock(ctx)
	defer release()
	return how.fetch(timed, u)
}

func (c *Cache) report(p *Policy) {
	if p.Err == nil {
		return
	}
	c.log.Warn("robots.txt could not be read", "robots", p.RobotsURL, "err", p.Err, "status", p.Status,
		"meaning", p.Meaning.String(), "stale", p.Stale(), "again", p.Expires)
}
