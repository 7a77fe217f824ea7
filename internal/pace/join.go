package pace

import (
	"slices"
	"sync"
	"time"
)

// A Group names the group of a host. The hosts with the same Name share one pace.
type Assignment struct {
	// Name is the name of the group. If it is empty, the host is paced alone.
	Name string
	// Until is when the caller should find the group of the host again.
	Until time.Time
	// Basis is what the caller has derived Name from. This package does not use it.
	Basis any
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
func (h *Host) Join(a Assignment) {
	if !h.rules.Shares {
		return
	}
	h = h.lockSelf()
	h.paced.member.assigned = a
	h.mu.Unlock()
	h.settle(h.hosts.now())
}

// Group returns the Group that was last passed to Join. It returns the zero Group before that.
func (h *Host) Assignment() Assignment {
	h = h.lockSelf()
	defer h.mu.Unlock()
	if m := h.member(); m != nil {
		return m.assigned
	}
	return Assignment{}
}

// SharesPace reports whether o is h or belongs to the same group.
func (h *Host) SharesPace(o *Host) bool {
	return h.keeper() == o.keeper()
}

// isSettled reports whether m is in the group that it was last told to join. The lock of the host
// is held.
func (m *member) isSettled() bool {
	if m.group == nil {
		return m.assigned.Name == ""
	}
	return m.group.name == m.assigned.Name
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
	if m.assigned.Name != "" {
		after = h.hosts.group(now, m.assigned.Name)
		after.mu.Lock()
		defer after.mu.Unlock()
	}
	if before != h {
		before.paced.members.count--
	}
	m.group = nil
	h.gone = after != h
	if h.gone {
		m.group = after
		after.addMember(h)
	}
	after.takeOver(now, m, before)
}

// addMember adds o to the group h. Both are locked.
func (h *Host) addMember(o *Host) {
	p := h.paced
	switch {
	case p.members.count == 0:
		h.rules = o.rules
		p.hours = o.paced.hours
	case h.rules != o.rules:
		h.rules = h.rules.withThoseOf(o.rules)
		p.hours = p.hours.and(o.paced.hours)
	}
	p.scheduled = p.scheduled || p.hours != nil
	p.members.count++
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
	p := h.ensurePaced()
	from := before.ensurePaced()
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
	if before.paced.members != nil {
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
		group.ensurePaced().members = new(members)
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
	examined := 0
	for name, group := range g.byName { // in random order
		if group.forgetGroup(now) {
			delete(g.byName, name)
		}
		examined++
		if examined == mostExamined {
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
	return h.paced.members.count == 0 && h.isForgettable(now) && h.deserted(now)
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
	group.paced.members.count--
	m.group = nil
	return true
}
