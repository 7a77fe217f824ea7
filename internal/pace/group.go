package pace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// This file lets several hosts share one pace, for example all hosts of one server.
//
// A group is a Host of its own, which is not in the shards. It has the limiter, the queues and the
// lock of all of its members. The lock method of a member returns the locked group, so the other
// methods of a Host need not know whether it belongs to one. A ticket belongs to the member where
// it is used. As long as it holds something, its member cannot leave the group.
//
// The locks are taken in this order: that of a member, that of the registry of groups, that of a
// group.

// A Group names the group of a host. The hosts with the same Name share one pace.
type Group struct {
	// Name is the name of the group. If it is empty, the host is paced alone.
	Name string
	// Until is when the caller should find the group of the host again.
	Until time.Time
	// Basis is what the caller has derived Name from. This package does not use it.
	Basis any
}

// A member is what a host needs in addition to its limiter if it may share its pace.
type member struct {
	// The following fields are guarded by the lock of the host.
	group  *Host // keeps the pace of the host; nil if the host does that itself
	wanted Group // the group that the host joins when it has no tickets

	// The following fields are guarded by the lock of the group.
	tickets int     // the tickets of the host that hold something
	queued  int     // the tickets of the host in Enter
	inLine  *Ticket // the one that waits in the queue of the group; nil if there is none
	backlog list    // the tickets in Enter behind inLine

	crawlDelays []*crawlDelay // those of the host; also guarded by its own lock if it is alone

	// The following fields count events while the host belonged to a group.
	requests  atomic.Int64
	throttled atomic.Int64
	waited    atomic.Int64 // a time.Duration
}

// A groupState is what the limiter of a group has in addition to that of a host.
type groupState struct {
	members  int     // the number of its hosts
	tickets  int     // the tickets of its hosts that hold something
	reserved instant // the last turn that Reserve has returned
}

// A groups is the registry of the groups.
type groups struct {
	// mu protects byName, and is held while a host joins or leaves a group.
	mu     sync.Mutex
	byName map[string]*Host
}

// Join makes h share the pace of a group. If g has no name, h is paced alone. If a request of h
// waits or is in flight, this applies from the next request on that finds no other one. Join has no
// effect if Rules.Shares is not set.
func (h *Host) Join(g Group) {
	if !h.rules.Shares {
		return
	}
	h = h.lockSelf()
	h.paced.member.wanted = g
	h.mu.Unlock()
	h.settle(h.hosts.now())
}

// Group returns the Group that was last passed to Join. It returns the zero Group before that.
func (h *Host) Group() Group {
	h = h.lockSelf()
	defer h.mu.Unlock()
	if m := h.member(); m != nil {
		return m.wanted
	}
	return Group{}
}

// SharesPace reports whether o is h or belongs to the same group.
func (h *Host) SharesPace(o *Host) bool {
	return h.keeper() == o.keeper()
}

// keeper returns the Host that keeps the pace of h: its group, or h itself.
func (h *Host) keeper() *Host {
	h = h.lock()
	defer h.mu.Unlock()
	return h
}

// member returns what h needs to share its pace, or nil if its rules do not allow that.
func (h *Host) member() *member {
	if !h.rules.Shares {
		return nil
	}
	return h.paced.member
}

// memberOf returns the member that t belongs to, or nil if l is not the limiter of a group.
func (l *limiter) memberOf(t *Ticket) *member {
	if l.paced == nil || l.paced.group == nil {
		return nil
	}
	return t.host.Load().paced.member
}

// groupOf returns the group that keeps the pace of h, or nil if h does that itself or is forgotten.
// h is locked.
func (h *Host) groupOf() *Host {
	if !h.gone || !h.rules.Shares {
		return nil
	}
	return h.paced.member.group
}

// lockSelf locks and returns the current Host of h's name, even if a group keeps its pace. Its lock
// guards the counts and the marks that only Host has.
func (h *Host) lockSelf() *Host {
	for {
		h.mu.Lock()
		if !h.gone || h.groupOf() != nil {
			return h
		}
		h.mu.Unlock()
		h = h.hosts.At(time.Now(), h.name)
	}
}

// lockGroup returns the locked group of h, which is locked and gone, and unlocks h. If h was
// forgotten, it returns h, which stays locked.
func (h *Host) lockGroup() *Host {
	group := h.groupOf()
	if group == nil {
		return h
	}
	group.mu.Lock()
	h.mu.Unlock()
	return group
}

// isSettled reports whether m is in the group that it was last told to join. The lock of the host
// is held.
func (m *member) isSettled() bool {
	if m.group == nil {
		return m.wanted.Name == ""
	}
	return m.group.name == m.wanted.Name
}

// settle moves h to the group that it was last told to join, if it is not there yet and none of its
// requests waits or is in flight.
func (h *Host) settle(now instant) {
	h = h.lockSelf()
	defer h.mu.Unlock()
	m := h.member()
	if m.isSettled() {
		return
	}
	h.hosts.groups.mu.Lock()
	defer h.hosts.groups.mu.Unlock()
	before := h
	if m.group != nil {
		before = m.group
		before.mu.Lock()
		defer before.mu.Unlock()
	}
	if m.tickets > 0 || before == h && (!h.deserted(now) || h.inFlight.front != nil) {
		return
	}
	after := h
	if m.wanted.Name != "" {
		after = h.hosts.group(now, m.wanted.Name)
		after.mu.Lock()
		defer after.mu.Unlock()
	}
	if before != h {
		before.paced.group.members--
	}
	m.group = nil
	h.gone = after != h
	if h.gone {
		m.group = after
		after.accept(h)
	}
	after.takeOver(now, m, before)
}

// accept adds o to the group h. Both are locked.
func (h *Host) accept(o *Host) {
	p := h.paced
	switch {
	case p.group.members == 0:
		h.rules = o.rules
		p.hours = o.paced.hours
	case h.rules != o.rules:
		h.rules = h.rules.withThoseOf(o.rules)
		p.hours = p.hours.and(o.paced.hours)
	}
	p.scheduled = p.scheduled || p.hours != nil
	p.group.members++
}

// and returns the hours of a group if one host has the hours x and another has o. x and o may be
// nil.
func (x *scheduled) and(o *scheduled) *scheduled {
	switch {
	case x == nil:
		return o
	case o == nil || x.Schedule == o.Schedule:
		return x
	}
	both := *x
	both.Schedule = bothOpen{x.Schedule, o.Schedule}
	return &both
}

// A bothOpen is a Schedule that is open while both of two Schedules are.
type bothOpen [2]Schedule

// At implements Schedule.
func (b bothOpen) At(t time.Time) Slot {
	slot := b[0].At(t)
	other := b[1].At(t)
	slot.Delay = max(slot.Delay, other.Delay)
	slot.Closed = slot.Closed || other.Closed
	if slot.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(slot.Until) {
		slot.Until = other.Until
	}
	return slot
}

// takeOver moves what m has contributed to the pace of before to the pace of h, so that the delays
// between the requests of m hold across the move. Both are locked.
func (h *Host) takeOver(now instant, m *member, before *Host) {
	p := h.slowed()
	from := before.slowed()
	p.longest = nil
	from.longest = nil
	for _, d := range from.crawlDelays {
		if d.source.by == m {
			p.crawlDelays = append(p.crawlDelays, d)
			p.scheduled = p.scheduled || d.schedule != nil
		}
	}
	from.crawlDelays = slices.DeleteFunc(from.crawlDelays, func(d *crawlDelay) bool { return d.source.by == m })
	h.last = max(h.last, before.last)
	if before.paced.group != nil {
		return // the rest is not due to m alone
	}
	h.visited = h.visited || before.visited
	p.notBefore = max(p.notBefore, from.notBefore)
	if h.estimator(now) == nil {
		p.estimator = from.estimator
	}
	p.gaps = p.gaps.and(before.gaps())
}

// group returns the group with a name, and makes it if there is none. h.groups.mu is held.
func (h *Hosts) group(now instant, name string) *Host {
	g := &h.groups
	group := g.byName[name]
	if group == nil {
		g.forgetSome(now)
		group = &Host{hosts: h, name: name, limiter: limiter{rules: new(Rules)}}
		group.slowed().group = new(groupState)
		if g.byName == nil {
			g.byName = make(map[string]*Host)
		}
		g.byName[name] = group
	}
	return group
}

// forgetSome examines a few groups and forgets those without members whose pace no longer matters.
// g.mu is held.
func (g *groups) forgetSome(now instant) {
	looked := 0
	for name, group := range g.byName { // in random order
		if group.forgetGroup(now) {
			delete(g.byName, name)
		}
		looked++
		if looked == looks {
			return
		}
	}
}

// forgetGroup reports whether a group has no members and may be forgotten at now.
func (h *Host) forgetGroup(now instant) bool {
	if !h.mu.TryLock() {
		return false
	}
	defer h.mu.Unlock()
	return h.paced.group.members == 0 && h.idle(now) && h.deserted(now)
}

// all returns the groups at the moment.
func (g *groups) all() []*Host {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*Host, 0, len(g.byName))
	for _, group := range g.byName {
		all = append(all, group)
	}
	return all
}

// leaveGroup is called before h is forgotten. It reports whether h, which is locked, had no tickets
// and has left its group.
func (h *Host) leaveGroup(m *member) bool {
	group := m.group
	if !group.mu.TryLock() {
		return false
	}
	defer group.mu.Unlock()
	if m.tickets > 0 {
		return false
	}
	for _, d := range m.crawlDelays { // the group removes them later
		d.written = 0
		d.schedule = nil
	}
	group.paced.group.members--
	m.group = nil
	return true
}

// withThoseOf returns the rules of a group with rules r after a host with rules o has joined it: of
// each rule the value that keeps the requests further apart. The Hours are not among them, see
// accept.
func (r *Rules) withThoseOf(o *Rules) *Rules {
	both := *r
	both.MinDelay = max(r.MinDelay, o.MinDelay)
	both.FromEnd = r.FromEnd || o.FromEnd
	both.Adaptive = max(r.Adaptive, o.Adaptive)
	both.MaxDelay = max(r.MaxDelay, o.MaxDelay)
	if r.MaxDelay == 0 || o.MaxDelay == 0 {
		both.MaxDelay = 0
	}
	both.MaxInFlight = max(r.MaxInFlight, o.MaxInFlight)
	if r.MaxInFlight > 0 && o.MaxInFlight > 0 {
		both.MaxInFlight = min(r.MaxInFlight, o.MaxInFlight)
	}
	if o.mostBackOff() > r.mostBackOff() {
		both.MaxBackOff = o.MaxBackOff
	}
	return &both
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
	p.group.tickets++
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
	p.group.tickets--
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
	if second == nil && p.group != nil {
		return l.memberOf(p.waiting.front).backlog.front
	}
	return second
}

// leaveUrgent removes t from the tickets in Start.
func (l *limiter) leaveUrgent(t *Ticket) {
	l.paced.urgent.remove(t)
	l.hold(t, -1)
}

// hold adds n to the number of tickets of a member that hold something, if t is one of a member.
func (l *limiter) hold(t *Ticket, n int) {
	if m := l.memberOf(t); m != nil {
		m.tickets += n
		l.paced.group.tickets += n
	}
}

// nextTurn returns when a request that is made at now may start. In a group it comes after the
// requests of the other hosts, which take turns with it.
func (l *limiter) nextTurn(now instant) instant {
	turn := now.add(l.due(now, nil))
	if l.paced == nil || l.paced.group == nil || l.rules.Free {
		return turn
	}
	return turn.add(times(l.delay(now), l.paced.group.tickets))
}

// mostAhead limits how far ahead Reserve reserves a turn, because the delay may become shorter.
const mostAhead = 5 * time.Minute

// Reserve is like NextStart for a request that goes away and is made again at its turn. In a group,
// the next request that calls Reserve gets a turn one delay later, so that the hosts of the group
// do not all come back at the same time.
func (h *Host) Reserve(now time.Time) (turn time.Time, alone bool) {
	turn, alone = h.NextStart(now)
	h = h.lock()
	defer h.mu.Unlock()
	if h.paced == nil || h.paced.group == nil || h.rules.Free {
		return turn, alone
	}
	p := h.paced
	at := h.hosts.instant(now)
	first := h.nextTurn(at)
	p.group.reserved = min(max(p.group.reserved.add(h.delay(at)), first), first.add(mostAhead))
	return h.hosts.time(p.group.reserved), alone
}

// countRequest adds n to the number of requests of the host of t.
func (l *limiter) countRequest(t *Ticket, n int) {
	l.requests += n
	if m := l.memberOf(t); m != nil {
		m.requests.Add(int64(n))
	}
}

// addWait adds d to the time that the requests of the host of t have waited.
func (l *limiter) addWait(t *Ticket, d time.Duration) {
	l.paced.waited += d
	if m := l.memberOf(t); m != nil {
		m.waited.Add(int64(d))
	}
}

// countThrottled counts a complaint of a member, which may be nil, if it starts a new incident of
// the group.
func (l *limiter) countThrottled(m *member, slower bool) {
	if slower && l.paced.group != nil {
		m.throttled.Add(1)
	}
}

// readsAnother reports whether t, which may be nil, reads a robots.txt of a group, and another
// request of the group does so at now. The files are read one after another, because the first may
// request a delay. wait is the time after which to ask again.
func (l *limiter) readsAnother(now instant, t *Ticket) (wait time.Duration, reads bool) {
	if t == nil || !t.renews || l.paced == nil || l.paced.group == nil {
		return 0, false
	}
	for other := range l.inFlight.all {
		if other.renews && !other.lapsed(now) {
			return other.lease.since(now), true
		}
	}
	return 0, false
}
