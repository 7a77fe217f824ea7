package policy

import (
	"context"
	"net/http/httptrace"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// fetching is one fetch under way and those who wait for it.
type fetching struct {
	way     Way
	began   time.Time
	done    chan struct{} // closed when it has ended
	policy  *Policy       // set before done is closed; nil when the fetch was given up, or
	err     error         // why nothing was asked
	waiters int           // guarded by Cache.mu
	cancel  context.CancelFunc
}

// join returns a's policy once it was fetched. Callers that ask in one way share a fetch. One that
// asks in another way waits for it as well, since an answer is for all, and makes its own fetch if
// there is no answer, or none soon.
func (c *Cache) join(ctx context.Context, a dialect.Authority, how Fetch) (*Policy, error) {
	for {
		f, known, err := c.enter(ctx, a, how)
		if f == nil {
			return known, err
		}
		p, err := c.wait(ctx, a, f, how.Way)
		if p != nil || err != nil {
			return p, err
		}
	}
}

// enter returns the fetch that the caller has to wait for, started if there is none. If f is nil,
// known is what the caller may use at once.
func (c *Cache) enter(ctx context.Context, a dialect.Authority, how Fetch) (f *fetching, known *Policy, err error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, nil, ErrClosed
	}
	known = c.policies.get(a).by(how.Way)
	if known.Fresh(now) || known.MayServe(now) && len(c.fetching[a]) > 0 {
		return nil, known, nil
	}
	f = c.underWay(now, a, how.Way)
	if f == nil {
		f = c.start(ctx, a, how)
	}
	f.waiters++
	return f, nil, nil
}

// patience is how long a caller waits for a fetch that is made with another client than its own.
const patience = 3 * time.Second

// underWay returns the fetch that a caller has to wait for: one with the client of its way, or else
// the last one, if that has not taken long. c.mu is held.
func (c *Cache) underWay(now time.Time, a dialect.Authority, way Way) *fetching {
	all := c.fetching[a]
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

// MayServe reports whether an expired policy may still be used while another caller renews it: for
// no longer than a fetch takes, so that nobody crawls by a copy from last week. One that lets
// nobody in is of no use: better to wait.
func (p *Policy) MayServe(now time.Time) bool {
	return p != nil && p.RobotsStatus >= NoRobots && instantOf(now) < p.expires.add(FetchLimit)
}

// wait waits for f. It returns neither a policy nor an error if the caller, who asks in a way, has
// to ask once more.
func (c *Cache) wait(ctx context.Context, a dialect.Authority, f *fetching, way Way) (*Policy, error) {
	var late <-chan time.Time
	if f.way.Client != way.Client {
		timer := time.NewTimer(time.Until(f.began.Add(patience)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-f.done:
		if f.way != way && f.policy != nil && f.policy.unanswered() {
			return nil, nil
		}
		return f.policy, f.err // neither if another fetch was answered first, or on Close
	case <-late:
		return nil, nil // f goes on: its answer would be for the caller, too
	case <-ctx.Done():
		c.leave(a, f)
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
}

// leave takes one waiter from f, and gives f up when there is none left. The next caller starts
// anew.
func (c *Cache) leave(a dialect.Authority, f *fetching) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		c.remove(a, f)
	}
}

// remove takes f out of the fetches under way. c.mu is held.
func (c *Cache) remove(a dialect.Authority, f *fetching) {
	rest := slices.DeleteFunc(c.fetching[a], func(other *fetching) bool { return other == f })
	if len(rest) > 0 {
		c.fetching[a] = rest
		return
	}
	delete(c.fetching, a)
}

// A detached context ends when the cache is closed, and has the values of a caller's context. The
// caller's traces are not among them: they are about its own request.
type detached struct {
	context.Context // the cache's
	caller          context.Context
}

func (d detached) Value(key any) any {
	if v := d.Context.Value(key); v != nil {
		return v
	}
	v := d.caller.Value(key)
	if _, ok := v.(*httptrace.ClientTrace); ok {
		return nil
	}
	return v
}

// start begins a fetch that does not end with its caller. c.mu is held.
func (c *Cache) start(caller context.Context, a dialect.Authority, how Fetch) *fetching {
	ctx, cancel := context.WithCancel(detached{c.ctx, caller})
	f := &fetching{way: how.Way, began: time.Now(), done: make(chan struct{}), cancel: cancel}
	c.fetching[a] = append(c.fetching[a], f)
	c.running.Add(1)
	go c.run(ctx, a, f, how)
	return f
}

// run makes the fetch f.
func (c *Cache) run(ctx context.Context, a dialect.Authority, f *fetching, how Fetch) {
	old := c.policies.get(a)
	if old != nil {
		a = old.Authority // the same in other memory, which so need not be kept as well
	}
	defer c.running.Done()
	defer c.end(ctx, a, f)
	n, err := c.renew(ctx, a, old, how)
	f.policy, f.err = n.Policy, err
	if f.policy != nil {
		c.learnt(n)
	}
}

// end lets all callers go that wait for f, also when a store or a Doer ended it by a panic or
// runtime.Goexit.
func (c *Cache) end(ctx context.Context, a dialect.Authority, f *fetching) {
	if v := recover(); f.policy == nil && f.err == nil && ctx.Err() == nil {
		f.policy = c.policyOf(a, facts{failure: failed(noResponse, &PanicError{v}).failure})
		c.report(f.policy)
		c.learnt(News{Policy: f.policy})
	}
	f.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(a, f)
	close(f.done)
	if f.policy == nil || f.policy.unanswered() || f.policy.Forbidden() {
		return
	}
	for _, other := range c.fetching[a] {
		other.cancel() // the answer is for those who wait there, too
	}
}

// renew returns what is in force for a after a fetch, or after a look into the store that spares
// it. There is no policy when ctx was cancelled, which says nothing about the site, and an error
// when nothing was asked, which does not either.
func (c *Cache) renew(ctx context.Context, a dialect.Authority, old *Policy, how Fetch) (News, error) {
	f := c.recall(ctx, a, old)
	if old == nil && (f.copy != nil || f.failure != nil) && c.options.Found != nil {
		c.options.Found(a, f.copy != nil && f.copy.private)
	}
	stale := c.stale(f)
	if stale && old == nil && f.copy != nil && c.options.Read != nil {
		c.options.Read(c.policyOf(a, f)) // the delay that the record asks for holds until it is read again
	}
	first := true // there was an answer before, or nothing
	if stale {
		look := func() error {
			if f = c.recall(ctx, a, old); c.stale(f) {
				return nil
			}
			stale = false
			return ErrUnsent
		}
		holdUp(ctx, f.failure)
		before := old.silenceBy(how.Way)
		first = before == nil
		o, done := c.fetch(ctx, a, f, before, how, look)
		defer done()
		switch {
		case ctx.Err() != nil:
			return News{}, nil
		case o.unsent != nil && stale:
			return News{}, o.unsent
		case o.failure.forbidden():
			p := c.policyOf(a, f.after(o))
			c.report(p)
			return News{Policy: p, Old: old}, nil
		case stale:
			f = c.remember(ctx, a, f, o)
		}
	}
	n := News{Policy: c.policyOf(a, f), Old: old, Stored: !stale}
	if stale && first {
		c.report(n.Policy)
	}
	n.Policy = c.keep(n.Policy)
	if c.options.Read != nil {
		c.options.Read(n.Policy)
	}
	if n.Policy.rules() != nil {
		n.Body = f.body
	}
	return n, nil
}

// stale reports whether the file has to be fetched by a caller whose own way is not silent.
func (c *Cache) stale(f facts) bool {
	if f.failure != nil && f.failure.silence != nil {
		return true
	}
	_, expires := c.access.status(f)
	return expires <= now()
}

// learnt tells whoever wants to know what was learnt.
func (c *Cache) learnt(n News) {
	if c.options.Learnt != nil {
		c.options.Learnt(n)
	}
}

func (c *Cache) report(p *Policy) {
	err := p.Err()
	if err == nil {
		return
	}
	c.log.Warn("robots.txt could not be read", "robots", p.RobotsURL(), "error", err, "status", p.Status(),
		"robots_status", p.RobotsStatus.String(), "stale", p.Stale(), "until", p.Expires())
}
