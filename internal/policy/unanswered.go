package policy

import (
	"context"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// unanswered describes fetches in a row, in one way, without a complete response: the look-up of
// the name, the connection or the exchange failed. This says something about the way of the
// request, such as its proxy or time limit, and little about the site. Therefore it counts only for
// callers with the same Way, and a caller with another Way makes its own fetch. An answer counts
// for all.
//
// A status 5xx through a proxy is as little an answer of the site, because a proxy that fails sends
// it as well. The dialect interprets it, and it is kept as long as one of the site, but only for its
// Way, and for all Ways that always use the same proxy. If proxies take turns, it is not kept at all.
type unanswered struct {
	way   Way
	route route         // of its requests
	began instant       // when the first of these fetches began
	pause time.Duration // before the next one in the same way
	next  *Policy       // after the last fetch in another way; nil if there is none
}

// An unansweredLock is held while the policy of an unanswered fetch of one authority is announced and
// put into the memory, so that several such fetches do not lose the result of another. Each authority
// has its own, because a function of Options may wait for the policy of another authority.
type unansweredLock struct {
	mu    sync.Mutex
	users int // the callers of lockUnanswered that have not called unlock; protected by Cache.mu
}

// lockUnanswered locks the unansweredLock of an authority.
func (c *Cache) lockUnanswered(a dialect.Authority) (unlock func()) {
	c.mu.Lock()
	l := c.unanswered[a]
	if l == nil {
		l = new(unansweredLock)
		c.unanswered[a] = l
	}
	l.users++
	c.mu.Unlock()
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		l.users--
		if l.users == 0 {
			delete(c.unanswered, a)
		}
	}
}

// holdsFor reports whether x is known for callers with this way.
func (x *failure) holdsFor(way Way) bool {
	u := x.unanswered
	return u.way == way || x.class != noResponse && u.way.Proxy != "" && u.way.Proxy == way.Proxy
}

// unanswered returns the description of a fetch that has just taken used. before describes the
// fetches before it in the same way; it may be nil.
//
// The pause is as long as the fetch took, and at least a fifth of the time since the first one. So
// a service that is starting is found soon, and a host that hangs does not cost every page its time
// limit. There is no pause if proxies take turns, because the next one may reach the site.
func (t *accessTable) unanswered(way Way, r route, before *unanswered, used time.Duration) *unanswered {
	at := now()
	u := &unanswered{way: way, route: r, began: at.add(-used)}
	if before != nil {
		u.began = before.began
	}
	if r.fixed() {
		age := time.Duration(at - u.began)
		u.pause = min(max(t.retryUnanswered.first, used, age/5), t.retryUnanswered.most)
	}
	return u
}

// nextProxy reports whether x is the answer of a proxy, and the next request may use another one.
func (x *failure) nextProxy() bool {
	return x.unanswered != nil && x.class != noResponse && !x.unanswered.route.fixed()
}

// A route records the proxies that requests have used.
type route struct {
	proxy   string // of the last request; "" if it used none
	repeats bool   // the request before used the same
	turns   bool   // there were several
	only    bool   // it is known that all requests use the same
}

// add records a request that used a proxy.
func (r *route) add(proxy string) {
	r.repeats = proxy == r.proxy
	r.turns = r.turns || !r.repeats && r.proxy != ""
	r.proxy = proxy
}

// fixed reports whether the next request will probably take the same route as the last one.
func (r *route) fixed() bool { return r.proxy == "" || r.only || r.repeats && !r.turns }

// unanswered reports whether p holds for one way only.
func (p *Policy) unanswered() bool { return p.failure != nil && p.failure.unanswered != nil }

// by returns the policy for fetches in a way: p if the site has answered, otherwise the policy
// after the last fetch in that way, or nil. p may be nil.
func (p *Policy) by(way Way) *Policy {
	for p != nil && p.unanswered() && !p.failure.holdsFor(way) {
		p = p.failure.unanswered.next
	}
	return p
}

// unansweredBy returns the description of the last fetches in a way, or nil if they had an answer.
// p may be nil.
func (p *Policy) unansweredBy(way Way) *unanswered {
	p = p.by(way)
	if p == nil || p.failure == nil {
		return nil
	}
	return p.failure.unanswered
}

// maxWays bounds the ways that are remembered for an authority. A program may have a thousand
// proxies.
const maxWays = 8

// others returns copies of the policies that p has for other ways than way. It returns at most most
// policies, linked by next. p may be nil.
func (p *Policy) others(way Way, most int) *Policy {
	if p == nil || !p.unanswered() || most == 0 {
		return nil
	}
	u := *p.failure.unanswered
	if p.failure.holdsFor(way) {
		return u.next.others(way, most)
	}
	u.next = u.next.others(way, most-1)
	x := *p.failure
	x.unanswered = &u
	other := *p
	other.failure = &x
	return &other
}

// After retriesAtOnce unanswered fetches in a row, in whatever ways, the next one starts at least
// retryGap after the last.
const (
	retriesAtOnce = 10
	retryGap      = 100 * time.Millisecond
)

// waitToRetry waits until the file may be requested again after a failure, or until ctx ends. last
// may be nil.
func waitToRetry(ctx context.Context, last *failure) {
	if last == nil || last.unanswered == nil || last.count < retriesAtOnce {
		return
	}
	timer := time.NewTimer(time.Until(last.last.add(retryGap).time()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
