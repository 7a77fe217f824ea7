package pace

import (
	"context"
	"time"
)

// admitting locks and returns the Host that keeps the pace of h, and moves t to the current Host of
// h's name. If ctx or the registry has ended, it ends t and returns the error instead, without the
// lock.
func (h *Host) admitting(ctx context.Context, t *Ticket) (*Host, error) {
	err := h.hosts.closeError()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.End()
		return nil, err
	}
	if h.rules.Shares {
		h.settle(h.hosts.now())
	}
	h, self := h.lockPace()
	if at := t.host.Load(); at != self {
		if at != nil {
			h.mu.Unlock()
			t.End()
			h, self = self.lockPace()
		}
		t.host.Store(self)
	}
	return h, nil
}

// visit records a request that no other site has led to. The caller must hold the lock.
func (h *Host) visit() {
	h.visited = true
	if h.led {
		h.led = false
		h.wakeNext()
	}
}

// startOrWait is the part of Start that needs the lock. It is called with the lock held and returns
// without it.
func (h *Host) startOrWait(ctx context.Context, t *Ticket, direct bool) error {
	if _, ok := h.startNow(h.hosts.now(), t, direct); ok {
		h.unlock()
		return nil
	}
	t.state = urgent
	h.ensurePaced().urgent.push(t)
	h.countTicket(t, 1)
	if t.renews && h.paced.scheduled {
		h.paced.urgent.front = t // a request that waits until the host opens must not keep robots.txt waiting
	}
	return h.await(ctx, t)
}

// startNow is StartNow with the lock held.
func (h *Host) startNow(now instant, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	lent := t.takeLease()
	h.leave(t)
	t.lease = lent
	t.direct = direct
	if h.paced != nil && h.paced.urgent.front != nil || !h.ensureLease(now, t) {
		return 0, false
	}
	wait, ok = h.start(now, t)
	if ok {
		h.dispatched(t)
		h.wakeNext()
	}
	return wait, ok
}

// await waits until t has had its turn. On error, t has left its list. await is called with the
// lock held and returns without it.
func (h *Host) await(ctx context.Context, t *Ticket) error {
	began := h.hosts.now()
	defer func() {
		h.addWait(t, h.hosts.now().since(began))
		h.unlock()
	}()
	for state := t.state; ; {
		now := h.hosts.now()
		err := t.stopsWaiting()
		switch d, ok := h.mayPass(now, t); {
		case err != nil:
		case ok && h.ensureLease(now, t):
			h.take(now, t)
			return nil
		case ok && h.mayAsk():
			err = h.acquire(ctx, t)
		default:
			err = h.sleep(ctx, t, d)
		}
		if t.state != state {
			return ErrEnded
		}
		if err != nil {
			h.leave(t)
			return err
		}
	}
}

// sleep is like Ticket.sleep. It is called with the lock held and releases it while it sleeps.
func (h *Host) sleep(ctx context.Context, t *Ticket, d time.Duration) error {
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	if h.paced.scheduled {
		d = min(d, maxSleep)
	}
	h.giveUpLease(t)
	h.unlock()
	defer h.mu.Lock()
	return t.sleep(ctx, h.hosts, d)
}

// An admitted ticket that has not started is kept for at least turnTime, even if the delay is
// shorter.
const turnTime = 100 * time.Millisecond

// mayPass reports whether t, which waits in Enter or Start, may go on. If not, it returns the time
// after which to look again, or 0 if t should wait until it is woken.
func (h *Host) mayPass(now instant, t *Ticket) (time.Duration, bool) {
	p := h.paced
	if t.state == urgent {
		if p.urgent.front != t {
			return 0, false
		}
		return h.ready(now, t)
	}
	if front := p.waiting.front; front != t && front.next == t && front.state == admitted {
		if !front.expired(now) {
			return front.expiry.since(now), false
		}
		// The request of front got the turn and never started. Either a later callback aborted it,
		// or it still waits for something else. In the second case it will start without the turn,
		// and Start still keeps the delay.
		h.leave(front)
	}
	if p.waiting.front != t || p.urgent.front != nil {
		return 0, false
	}
	return h.ready(now, t)
}

// take lets t, which waits in Enter or Start, go on. The caller must know that it may.
func (h *Host) take(now instant, t *Ticket) {
	switch {
	case t.state == urgent:
		h.leaveUrgent(t)
		h.start(now, t)
		h.dispatched(t)
	case t.lease != nil && t.lease.until == 0 && h.unpaced(now):
		h.paced.dequeue(t, h.memberOf(t)) // no request has to wait for t, here or in another process
		t.state = idle
	default:
		d := max(h.delay(now), turnTime)
		t.state = admitted
		t.expiry = now.add(d)
		h.paced.advance(t, h.memberOf(t))
		if t.lease != nil {
			h.giveBackAfter(d, t.lease)
		}
	}
	h.wakeNext()
}

// leave removes t from its list. Afterwards t holds nothing.
func (h *Host) leave(t *Ticket) {
	if t.lease != nil {
		h.dropLease(t)
	}
	switch t.state {
	case idle:
		return
	case waiting, admitted:
		h.paced.dequeue(t, h.memberOf(t))
		t.state = idle
	case urgent:
		h.leaveUrgent(t)
		t.state = idle
	default:
		h.finish(h.hosts.now(), t)
	}
	if h.paced != nil && h.asksFor(t) {
		h.paced.leasing.cancel(ErrEnded)
	}
	t.wakeUp() // wakes the goroutine of t, which finds that t was ended
	h.wakeNext()
}

// wakeNext wakes the tickets whose turn it may be now: the first ticket in Start, or, if there is
// none, the first two tickets in Enter. The second of these watches whether the first one expires.
func (h *Host) wakeNext() {
	p := h.paced
	switch {
	case p == nil:
	case p.urgent.front != nil:
		p.urgent.front.wakeUp()
	case p.waiting.front != nil:
		p.waiting.front.wakeUp()
		if second := h.second(); second != nil {
			second.wakeUp()
		}
	}
}

// deserted reports whether no request waits. A ticket that got the turn and never started does not
// count, unless it has a lease, which the timer of the lease gives back soon.
func (h *Host) deserted(now instant) bool {
	if front := h.paced.waiting.front; front != nil && front.state == admitted && front.expired(now) && front.lease == nil {
		h.leave(front)
	}
	return h.paced.waiting.front == nil && h.paced.urgent.front == nil
}

// enqueue adds t to the tickets in Enter. In a group, each member has one ticket in the queue, and
// its others follow one by one, so the members take turns.
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

// advance puts the next ticket of a member in the queue, if t, which was the one in the queue, has
// left it or was admitted. m may be nil.
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

// second returns the ticket in Enter behind the front one, or nil. In a group it may be the next
// ticket of the same member.
func (l *limiter) second() *Ticket {
	p := l.paced
	second := p.waiting.second()
	if second == nil && p.members != nil {
		return l.memberOf(p.waiting.front).backlog.front
	}
	return second
}

// leaveUrgent removes t from the tickets in Start.
func (l *limiter) leaveUrgent(t *Ticket) {
	l.paced.urgent.remove(t)
	l.countTicket(t, -1)
}

// countTicket adds n to the number of tickets of a member that hold something, if t is one of a member.
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
