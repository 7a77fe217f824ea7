package policy

import (
	"context"
	"time"
)

// A silence is a fetch that was not answered: no look-up of the name, no connection, no complete
// response. That says something about the way in which the file was asked for, such as a proxy or
// a time limit, and little about the site. So it counts for callers that ask in the same way, and a
// caller that asks in another way makes its own fetch. An answer is for all.
type silence struct {
	way   Way
	route route         // of its requests
	began instant       // when the first fetch in a row began that was not answered
	pause time.Duration // until the next one in the same way
	next  *Policy       // that of another way, asked in before; nil if there is none
}

// silence returns the silence of a fetch that has just used so much time. before is that of the one
// before in the same way, or nil.
//
// It lasts as long as the fetch took, and a fifth of the time since the first one: a service that
// starts is found soon, and a host that hangs costs no page its time limit for a while. Where proxies
// take turns it does not last: the next one may reach the site.
func (t *accessTable) silence(way Way, r route, before *silence, used time.Duration) *silence {
	at := now()
	s := &silence{way: way, route: r, began: at.add(-used)}
	if before != nil {
		s.began = before.began
	}
	if r.fixed() {
		age := time.Duration(at - s.began)
		s.pause = min(max(t.retrySilence.first, used, age/5), t.retrySilence.most)
	}
	return s
}

// A route is what is known of the proxies that requests have gone through.
type route struct {
	proxy   string // of the last request; "": none
	repeats bool   // the request before went through the same
	turns   bool   // there were several
}

// add adds a request that went through a proxy.
func (r *route) add(proxy string) {
	r.repeats = proxy == r.proxy
	r.turns = r.turns || !r.repeats && r.proxy != ""
	r.proxy = proxy
}

// fixed reports whether the next request will most likely take the same route as the last one.
func (r *route) fixed() bool { return r.proxy == "" || r.repeats && !r.turns }

// unanswered reports whether p is for one way of asking alone.
func (p *Policy) unanswered() bool { return p.failure != nil && p.failure.silence != nil }

// by returns what is known where the file is asked for in a way: p if the site has answered, else
// the policy after the last fetch in that way, or nil.
func (p *Policy) by(way Way) *Policy {
	for p != nil && p.unanswered() && p.failure.silence.way != way {
		p = p.failure.silence.next
	}
	return p
}

// silenceBy returns the silence of the last fetch in a way, or nil.
func (p *Policy) silenceBy(way Way) *silence {
	if p = p.by(way); p == nil || p.failure == nil {
		return nil
	}
	return p.failure.silence
}

// maxWays bounds the ways that are remembered of an authority. A program may have a thousand
// proxies.
const maxWays = 8

// others returns what p knows of ways other than this one: copies of at most so many policies.
func (p *Policy) others(way Way, most int) *Policy {
	if p == nil || !p.unanswered() || most == 0 {
		return nil
	}
	s := *p.failure.silence
	if s.way == way {
		return s.next.others(way, most)
	}
	s.next = s.next.others(way, most-1)
	x := *p.failure
	x.silence = &s
	other := *p
	other.failure = &x
	return &other
}

// After so many fetches in a row that were not answered, whatever their ways, the next one waits
// until retryGap after the last one.
const (
	retriesAtOnce = 10
	retryGap      = 100 * time.Millisecond
)

// holdUp waits until the file may be asked for again after a failure, which may be nil, or until ctx
// ends.
func holdUp(ctx context.Context, last *failure) {
	if last == nil || last.silence == nil || last.count < retriesAtOnce {
		return
	}
	timer := time.NewTimer(time.Until(last.last.add(retryGap).time()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
