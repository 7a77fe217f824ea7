package pace

import (
	queue "container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A totalRate lets the requests to all hosts together start at a rate. The requests that have to wait
// form a queue, in the order of their arrival. Each host has one request in it: the one that may start
// next at the host. So the hosts take turns, however many requests wait for each of them.
//
// Only the request at the front sleeps on a timer, with a reservation of the rate.Limiter. If it leaves
// the queue, the next request takes the reservation over, so no token is lost. When it starts, it
// wakes the next request.
type totalRate struct {
	limiter *rate.Limiter
	epoch   time.Time // of the registry

	// mu protects the fields below it.
	mu     sync.Mutex
	line   queue.List             // of *Ticket
	places map[*Ticket]*ratePlace // of the tickets that wait or have a token
	next   *rate.Reservation      // of the front ticket; nil if it has not made one
	waited time.Duration          // of the tickets that no longer wait
}

// A ratePlace is what a totalRate knows about a ticket.
type ratePlace struct {
	element *queue.Element // nil if the ticket has a token
	since   instant        // when the ticket joined the queue
}

// LimitRate limits how many requests to all hosts together start per second, except to hosts with
// Rules.Free. burst requests may start at once. It must be called before any other method.
//
// A request waits for the rate in Start, when its host lets it start. The other requests of the host
// wait in Enter meanwhile. If its host stops letting it start, it leaves the queue for the rate, and
// joins it at the end when the host lets it start again. While it waits it has no lease of a Pacer.
func (h *Hosts) LimitRate(r rate.Limit, burst int) {
	h.total = &totalRate{
		limiter: rate.NewLimiter(r, burst),
		epoch:   h.epoch,
		places:  make(map[*Ticket]*ratePlace),
	}
}

// RateWaits are the waits for the rate of LimitRate.
type RateWaits struct {
	Waiting int           // the hosts whose next request waits now
	Waited  time.Duration // the sum of the waits so far, also of those that have not ended
}

// RateWaits returns the waits for the rate of LimitRate at now. It reports whether there is such a rate.
func (h *Hosts) RateWaits(now time.Time) (waits RateWaits, ok bool) {
	r := h.total
	if r == nil {
		return RateWaits{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return RateWaits{Waiting: r.line.Len(), Waited: r.waited + r.waitedUntil(h.instant(now))}, true
}

// waitedUntil returns the sum of the waits at now that have not ended. r.mu is held.
func (r *totalRate) waitedUntil(now instant) (sum time.Duration) {
	for _, p := range r.places {
		if p.element != nil {
			sum += now.since(p.since)
		}
	}
	return sum
}

// rateWait estimates how long a request that is made at now waits for the total rate.
func (g *Group) rateWait(now instant) time.Duration {
	r := g.registry.total
	if r == nil || g.rules.Free {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expected(now, r.line.Len()+1)
}

// rateTime returns the least time until n requests that are made at now have started with the total
// rate, after those that wait for it now.
func (g *Group) rateTime(now instant, n int) time.Duration {
	r := g.registry.total
	if r == nil || g.rules.Free {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expected(now, r.line.Len()+n)
}

// queuesForRate reports whether a request waits in Enter only because of the total rate: other requests
// of the host wait, or would wait for a token. Only one request of a host should wait in Start.
func (g *Group) queuesForRate() bool {
	if g.registry.total == nil || g.rules.Free {
		return false
	}
	if g.paced != nil && (g.paced.waiting.front != nil || g.paced.urgent.front != nil) {
		return true
	}
	return g.rateWait(g.registry.now()) > 0
}

// mayStart is like mayPass. A ticket in Start must also have a token of the total rate.
func (g *Group) mayStart(now instant, t *Ticket) (time.Duration, bool) {
	wait, ok := g.mayPass(now, t)
	r := g.registry.total
	if r == nil || t.state != urgent {
		return wait, ok
	}
	if !ok {
		r.leave(now, t)
		return wait, false
	}
	t.ensureWake()
	return r.pass(now, t)
}

// mayStartNow is like mayStart for a ticket that does not wait. It takes a token only if the host lets
// the ticket start.
func (g *Group) mayStartNow(now instant, t *Ticket) (time.Duration, bool) {
	r := g.registry.total
	if r == nil || g.rules.Free {
		return 0, true // start asks the host
	}
	if wait, ok := g.ready(now, t); !ok {
		return wait, false
	}
	return r.take(now)
}

// isInRateQueue reports whether the first request in Start waits for the total rate, and returns a time
// before which it does not start.
func (g *Group) isInRateQueue(now instant) (until instant, waits bool) {
	r := g.registry.total
	if r == nil || g.paced == nil || g.paced.urgent.front == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[g.paced.urgent.front]
	if p == nil || p.element == nil {
		return 0, false
	}
	if r.next != nil {
		until = now.add(r.next.DelayFrom(r.time(now)))
	}
	return until, true
}

// pass reports whether t, which its host lets start, may start at now. If not, t has a place in the
// queue, and wait is the time after which to ask again, or 0 if t is woken. The caller must start t or
// call leave.
func (r *totalRate) pass(now instant, t *Ticket) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[t]
	if p == nil {
		p = &ratePlace{element: r.line.PushBack(t), since: now}
		r.places[t] = p
	}
	if p.element == nil {
		return 0, true
	}
	if r.line.Front() != p.element {
		return 0, false
	}
	if r.next == nil {
		r.next = r.limiter.ReserveN(r.time(now), 1)
	}
	wait = r.next.DelayFrom(r.time(now))
	if wait > 0 {
		return wait, false
	}
	r.next = nil
	r.remove(now, p)
	r.wakeFront()
	return 0, true
}

// take takes a token if no ticket waits for one. Otherwise it returns an estimate of the wait.
func (r *totalRate) take(now instant) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.line.Len() == 0 && r.limiter.AllowN(r.time(now), 1) {
		return 0, true
	}
	return r.expected(now, r.line.Len()+1), false
}

// leave forgets t, which has started or no longer waits.
func (r *totalRate) leave(now instant, t *Ticket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.places[t]
	if p == nil {
		return
	}
	delete(r.places, t)
	if p.element == nil {
		return
	}
	r.remove(now, p)
	if r.line.Len() == 0 && r.next != nil {
		r.next.CancelAt(r.time(now))
		r.next = nil
	}
	r.wakeFront()
}

// remove removes a place from the queue. r.mu is held.
func (r *totalRate) remove(now instant, p *ratePlace) {
	r.line.Remove(p.element)
	p.element = nil
	r.waited += now.since(p.since)
}

// wakeFront wakes the ticket at the front. r.mu is held.
func (r *totalRate) wakeFront() {
	if front := r.line.Front(); front != nil {
		front.Value.(*Ticket).wakeUp()
	}
}

// expected returns how long it takes from now on until n tokens can be taken, including that of the
// reservation. r.mu is held.
func (r *totalRate) expected(now instant, n int) time.Duration {
	missing := float64(n) - r.limiter.TokensAt(r.time(now))
	if r.next != nil {
		missing-- // the reservation has taken a token from TokensAt
	}
	if missing <= 0 {
		return 0
	}
	seconds := missing / float64(r.limiter.Limit())
	return time.Duration(min(math.Ceil(seconds*float64(time.Second)), math.MaxInt64/2))
}

// time returns i as the rate.Limiter gets it.
func (r *totalRate) time(i instant) time.Time { return r.epoch.Add(time.Duration(i - 1)) }
