package policy

import (
	"context"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A sharedFetch is a fetch under way, for all callers that wait for it.
type sharedFetch struct {
	way    Way
	began  time.Time
	limit  time.Duration // of the fetch, and of its time without waiters
	cancel context.CancelFunc
	done   chan struct{} // closed when the fetch has ended

	// The following fields are guarded by Cache.mu.
	waiters int
	alone   *time.Timer // cancels the fetch; nil if it has waiters
	ended   bool        // done is closed

	// policy and err are set before done is closed. Both are nil if the fetch was canceled. If
	// nothing was sent, err is the reason.
	policy *Policy
	err    error
}

// join returns a's policy after a fetch. Callers with the same Way share a fetch. A caller with
// another Way waits for this fetch too, because a response serves all callers. If the fetch gets no
// response, or takes longer than patience, this caller starts a fetch of its own.
func (c *Cache) join(ctx context.Context, a dialect.Authority, how Fetch) (*Policy, error) {
	for {
		f, known, err := c.findOrStart(ctx, a, how)
		if f == nil {
			return known, err
		}
		p, err := c.wait(ctx, a, f, how.Way)
		if p != nil || err != nil {
			return p, err
		}
	}
}

// findOrStart returns the fetch that the caller has to wait for, and starts it if there is none. If
// f is nil, known is the policy that the caller may use at once.
func (c *Cache) findOrStart(ctx context.Context, a dialect.Authority, how Fetch) (f *sharedFetch, known *Policy, err error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, nil, ErrClosed
	}
	known = c.memory.get(c, a).by(how.Way)
	if !how.Text && (known.Fresh(now) || known.MayServe(now) && len(c.fetches[a]) > 0) {
		return nil, known, nil
	}
	f = c.find(now, a, how.Way)
	if f == nil {
		f = c.start(ctx, a, how)
	}
	f.waiters++
	f.stopAlone()
	return f, nil, nil
}

// patience is how long a caller waits for a fetch with another client before it makes its own.
const patience = 3 * time.Second

// find returns the fetch that a caller with this way has to wait for: the one with its client, or
// otherwise the last one if that has not lasted longer than patience. It returns nil if there is
// none. c.mu is held.
func (c *Cache) find(now time.Time, a dialect.Authority, way Way) *sharedFetch {
	all := c.fetches[a]
	for _, f := range all {
		if f.way.Client == way.Client {
			return f
		}
	}
	if len(all) > 0 && now.Sub(all[len(all)-1].began) < patience {
		return all[len(all)-1]
	}
	return nil
}

// start starts a fetch that does not end with its caller. c.mu is held.
func (c *Cache) start(caller context.Context, a dialect.Authority, how Fetch) *sharedFetch {
	ctx, cancel := context.WithCancel(WithValues(c.ctx, caller))
	f := &sharedFetch{way: how.Way, began: time.Now(), limit: how.limit(), done: make(chan struct{}), cancel: cancel}
	c.fetches[a] = append(c.fetches[a], f)
	c.running.Add(1)
	go c.run(ctx, a, f, how)
	return f
}

// run performs the fetch f.
func (c *Cache) run(ctx context.Context, a dialect.Authority, f *sharedFetch, how Fetch) {
	old := c.memory.get(c, a)
	if old != nil {
		a = old.Authority // an equal value, whose memory the cache keeps already
	}
	defer c.running.Done()
	defer c.end(ctx, a, f)
	u, err := c.renew(ctx, a, old, how)
	f.policy = u.Policy
	f.err = err
}

// end ends the wait of all callers of f, also if a store or a Doer has ended the fetch by a panic
// or runtime.Goexit.
func (c *Cache) end(ctx context.Context, a dialect.Authority, f *sharedFetch) {
	v := recover()
	if f.policy == nil && f.err == nil && ctx.Err() == nil {
		f.policy = c.policyOf(a, facts{failure: failed(noResponse, &PanicError{v}).failure})
		c.report(f.policy)
		c.updated(Update{Policy: f.policy})
	}
	f.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	f.stopAlone()
	f.ended = true
	c.remove(a, f)
	close(f.done)
	if f.policy == nil || f.policy.unanswered() || f.policy.Forbidden() {
		return
	}
	for _, other := range c.fetches[a] {
		other.cancel() // the answer also serves the callers that wait there
	}
}

// wait waits for f on behalf of a caller with this way. It returns neither a policy nor an error if
// the caller has to look for another fetch.
func (c *Cache) wait(ctx context.Context, a dialect.Authority, f *sharedFetch, way Way) (*Policy, error) {
	var late <-chan time.Time
	if f.way.Client != way.Client {
		timer := time.NewTimer(time.Until(f.began.Add(patience)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-f.done:
		if f.policy != nil && f.policy.unanswered() && !f.policy.failure.holdsFor(way) {
			return nil, nil
		}
		return f.policy, f.err // both are nil if the answer to another fetch, or Close, has canceled f
	case <-late:
		c.leave(a, f)
		return nil, nil // f continues: its answer would also serve this caller
	case <-ctx.Done():
		c.leave(a, f)
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
}

// leave removes one waiter from f. If it was the last, f continues, because the next caller needs
// the file as well: the pages of a site that answers slowly may all have too little time to wait
// for it. f is canceled if no caller comes within its time limit, for example because it still
// waits for its turn.
func (c *Cache) leave(a dialect.Authority, f *sharedFetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	if f.waiters == 0 && !f.ended {
		f.alone = time.AfterFunc(f.limit, func() { c.abandon(a, f) })
	}
}

// abandon cancels f unless a caller waits for it again. The next caller starts a new fetch.
func (c *Cache) abandon(a dialect.Authority, f *sharedFetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters == 0 {
		f.cancel()
		c.remove(a, f)
	}
}

// stopAlone is called when a caller waits for f, or f has ended. Cache.mu is held.
func (f *sharedFetch) stopAlone() {
	if f.alone != nil {
		f.alone.Stop()
		f.alone = nil
	}
}

// remove removes f from the fetches under way. c.mu is held.
func (c *Cache) remove(a dialect.Authority, f *sharedFetch) {
	rest := slices.DeleteFunc(c.fetches[a], func(other *sharedFetch) bool { return other == f })
	if len(rest) > 0 {
		c.fetches[a] = rest
		return
	}
	delete(c.fetches, a)
}
