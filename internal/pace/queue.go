package pace

import (
	"context"
	"time"
)

// admit locks and returns a group, and makes t a ticket of its host: h, or if h is forgotten, the Host
// that has replaced it. If ctx has ended or the registry is closed, it ends t and returns the error
// instead, without the lock.
func (h *Host) admit(ctx context.Context, t *Ticket) (*Group, error) {
	err := h.own.registry.closeError()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.End()
		return nil, err
	}
	g, host := h.lock()
	if host.own.rules.Shares && !host.isSettled() {
		g.mu.Unlock()
		host.settle(g.registry.now())
		g, host = host.lock()
	}
	if g.isUnknown() {
		g.mu.Unlock()
		g, host = host.lockLoaded()
	}
	if at := t.host.Load(); at != host {
		if at != nil {
			g.mu.Unlock()
			t.End()
			g, host = host.lock()
		}
		t.host.Store(host)
	}
	return g, nil
}

// enter is the part of Host.Enter that needs the lock. It is called with the lock held and returns
// without it.
func (g *Group) enter(ctx context.Context, t *Ticket) error {
	if t.state == admitted {
		t.state = waiting
		return g.await(ctx, t)
	}
	g.leave(t)
	g.visit()
	isUnpaced := g.paced == nil && g.unpaced(0) || g.unpaced(g.registry.now())
	if isUnpaced && !t.isPaused() && !g.asksPacer() && !g.queuesForRate() {
		g.mu.Unlock()
		return nil
	}
	p := g.ensurePaced()
	t.state = waiting
	p.enqueue(t, g.memberOf(t))
	return g.await(ctx, t)
}

// visit records a request that no other site has led to. The caller must hold the lock.
func (g *Group) visit() {
	g.visited = true
	if g.led {
		g.led = false
		g.wakeNext()
	}
}

// startOrWait is the part of Start that needs the lock. It is called with the lock held and returns
// without it.
func (g *Group) startOrWait(ctx context.Context, t *Ticket, direct bool) error {
	if _, ok := g.startNow(g.registry.now(), t, direct); ok {
		g.unlock()
		return nil
	}
	t.state = urgent
	g.ensurePaced().urgent.push(t)
	g.countTicket(t, 1)
	if t.renews && g.paced.hasSchedule {
		g.paced.urgent.front = t // a request that waits until the host opens must not keep robots.txt waiting
	}
	return g.await(ctx, t)
}

// startNow is StartNow with the lock held.
func (g *Group) startNow(now instant, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	lent := t.takeLease()
	g.leave(t)
	t.lease = lent
	t.direct = direct
	if g.nextUrgent() != nil || t.isPaused() || !g.ensureLease(now, t) {
		return 0, false
	}
	wait, ok = g.mayStartNow(now, t)
	if !ok {
		return wait, false
	}
	wait, ok = g.start(now, t)
	if ok {
		g.dispatched(t)
		g.wakeNext()
	}
	return wait, ok
}

// await waits until t has had its turn. On error, t has left its list. await is called with the
// lock held and returns without it.
func (g *Group) await(ctx context.Context, t *Ticket) error {
	began := g.registry.now()
	defer func() {
		t.host.Load().addWait(g.registry.now().since(began))
		g.unlock()
	}()
	for state := t.state; ; {
		now := g.registry.now()
		err := g.stopsWaiting(now, t)
		switch d, ok := g.mayStart(now, t); {
		case err != nil:
		case ok && g.ensureLease(now, t):
			g.take(now, t)
			return nil
		case ok && g.mayAsk():
			err = g.acquire(ctx, t)
		default:
			err = g.sleep(ctx, t, d)
		}
		if t.state != state {
			return ErrEnded
		}
		if err != nil {
			g.leave(t)
			return err
		}
	}
}

// sleep is like Ticket.sleep. It is called with the lock held and releases it while it sleeps.
func (g *Group) sleep(ctx context.Context, t *Ticket, d time.Duration) error {
	t.ensureWake()
	if g.paced.hasSchedule {
		d = min(d, maxSleep)
	}
	g.giveUpLease(t)
	g.unlock()
	defer g.mu.Lock()
	return t.sleep(ctx, g.registry, d)
}

// An admitted ticket that has not started is kept for at least turnTime, even if the delay is
// shorter.
const turnTime = 100 * time.Millisecond

// mayPass reports whether t, which waits in Enter or Start, may go on. If not, it returns the time
// after which to ask again, or 0 if t should wait until it is woken.
func (g *Group) mayPass(now instant, t *Ticket) (time.Duration, bool) {
	if t.isPaused() {
		return 0, false
	}
	p := g.paced
	first := g.nextUrgent()
	if t.state == urgent {
		if first != t {
			return 0, false
		}
		return g.ready(now, t)
	}
	g.skipPaused()
	if front := p.waiting.front; front != t && front.next == t && front.state == admitted {
		if !front.expired(now) {
			return front.expiry.since(now), false
		}
		// The request of front got the turn and never started. Either a later callback aborted it,
		// or it still waits for something else. In the second case it will start without the turn,
		// and Start still keeps the delay.
		g.leave(front)
	}
	if p.waiting.front != t || first != nil {
		return 0, false
	}
	return g.ready(now, t)
}

// take lets t, which waits in Enter or Start, go on. The caller must know that it may.
func (g *Group) take(now instant, t *Ticket) {
	switch {
	case t.state == urgent:
		g.leaveUrgent(t)
		g.start(now, t)
		g.dispatched(t)
	case t.lease != nil && !t.lease.isExclusive() && g.unpaced(now):
		g.paced.dequeue(t, g.memberOf(t)) // no request has to wait for t, here or in another process
		t.state = idle
	default:
		d := max(g.delay(now), turnTime)
		t.state = admitted
		t.expiry = now.add(d)
		g.paced.advance(t, g.memberOf(t))
		if t.lease != nil {
			g.giveBackAfter(d, t.lease)
		}
	}
	g.wakeNext()
}

// leave removes t from its list. Afterwards t holds nothing.
func (g *Group) leave(t *Ticket) {
	if t.lease != nil {
		g.dropLease(t)
	}
	switch t.state {
	case idle:
		return
	case waiting, admitted:
		g.paced.dequeue(t, g.memberOf(t))
		t.state = idle
	case urgent:
		g.leaveUrgent(t)
		t.state = idle
	default:
		g.finish(g.registry.now(), t)
	}
	if g.paced != nil && g.asksFor(t) {
		g.paced.leasing.cancel(ErrEnded)
	}
	t.wakeUp() // wakes the goroutine of t, which finds that t was ended
	g.wakeNext()
}

// wakeNext wakes the tickets whose turn it may be now: the first ticket in Start, or, if there is
// none, the first two tickets in Enter. The second of these watches whether the first one expires.
func (g *Group) wakeNext() {
	p := g.paced
	if p == nil {
		return
	}
	if first := g.nextUrgent(); first != nil {
		first.wakeUp()
		return
	}
	g.skipPaused()
	if p.waiting.front != nil {
		p.waiting.front.wakeUp()
		if second := g.second(); second != nil {
			second.wakeUp()
		}
	}
}

// wakeStarts is like wakeNext but wakes all tickets in Start, because the host may be away now.
func (g *Group) wakeStarts() {
	g.wakeNext()
	if g.paced == nil {
		return
	}
	for t := range g.paced.urgent.all {
		t.wakeUp()
	}
}

// deserted reports whether no request waits. A ticket that got the turn and has not started before its
// place expired does not count, unless it has a lease: then the timer of the lease ends it soon.
func (g *Group) deserted(now instant) bool {
	if front := g.paced.waiting.front; front != nil && front.state == admitted && front.expired(now) && front.lease == nil {
		g.leave(front)
	}
	return g.paced.waiting.front == nil && g.paced.urgent.front == nil
}

// enqueue adds t to the tickets in Enter. m is the member of t, or nil in the own group of a host.
// Each member has one ticket in the queue, and its others follow one by one, so the members take
// turns.
func (p *paced) enqueue(t *Ticket, m *member) {
	p.queued++
	if m == nil {
		p.waiting.push(t)
		return
	}
	m.tickets++
	p.members.tickets++
	m.queued++
	if m.inLine != nil {
		m.backlog.push(t)
		return
	}
	m.inLine = t
	p.waiting.push(t)
}

// dequeue removes t from the tickets in Enter.
func (p *paced) dequeue(t *Ticket, m *member) {
	p.queued--
	if m == nil {
		p.waiting.remove(t)
		return
	}
	m.tickets--
	p.members.tickets--
	m.queued--
	if t != m.inLine && t != p.waiting.front { // the front one may be a ticket that was admitted
		m.backlog.remove(t)
		return
	}
	p.waiting.remove(t)
	p.advance(t, m)
}

// advance puts the next ticket of m in the queue, if t is the one that was in the queue. It is called
// when t was admitted or has left the queue. m may be nil.
func (p *paced) advance(t *Ticket, m *member) {
	if m == nil || m.inLine != t {
		return
	}
	m.inLine = m.backlog.front
	if m.inLine != nil {
		m.backlog.remove(m.inLine)
		p.waiting.push(m.inLine)
	}
}

// second returns the ticket in Enter behind the front one, or nil. In a group with members it may be
// the next ticket of the same member.
func (l *limiter) second() *Ticket {
	p := l.paced
	second := p.waiting.second()
	if second == nil && p.members != nil {
		return l.memberOf(p.waiting.front).backlog.front
	}
	return second
}

// leaveUrgent removes t from the tickets in Start.
func (g *Group) leaveUrgent(t *Ticket) {
	g.paced.urgent.remove(t)
	g.countTicket(t, -1)
	if g.registry.total != nil {
		g.registry.total.leave(g.registry.now(), t)
	}
}

// countTicket adds n to the number of tickets that hold something, if t is the ticket of a member.
func (l *limiter) countTicket(t *Ticket, n int) {
	if m := l.memberOf(t); m != nil {
		m.tickets += n
		l.paced.members.tickets += n
	}
}

// A list is a ring of tickets in the order of their arrival. A ticket is in at most one list.
type list struct{ front *Ticket }

func (l *list) push(t *Ticket) {
	if l.front == nil {
		l.front = t
		t.prev = t
		t.next = t
		return
	}
	t.prev = l.front.prev
	t.next = l.front
	t.prev.next = t
	t.next.prev = t
}

func (l *list) remove(t *Ticket) {
	if l.front == t {
		l.front = l.second()
	}
	t.prev.next = t.next
	t.next.prev = t.prev
	t.prev = nil
	t.next = nil
}

// second returns the ticket after the front one, or nil.
func (l *list) second() *Ticket {
	if l.front == nil || l.front.next == l.front {
		return nil
	}
	return l.front.next
}

// all yields the tickets from the front on. The loop may remove the ticket that is yielded.
func (l *list) all(yield func(*Ticket) bool) {
	if l == nil || l.front == nil {
		return
	}
	last := l.front.prev
	for t := l.front; ; {
		next := t.next
		if !yield(t) || t == last {
			return
		}
		t = next
	}
}
