package pace

import (
	"slices"
	"sync"
	"time"
)

// An Assignment says which group a host belongs to. The hosts with the same Name share one pace.
type Assignment struct {
	// Name is the name of the group. If it is empty, the host is paced alone.
	Name string
	// Until is when the caller should find the group of the host again.
	Until time.Time
	// Basis is what the caller has derived Name from. This package does not use it.
	Basis any
}

// groups is the registry of the groups with members.
type groups struct {
	// mu protects byName, and is held while a host moves from one group to another.
	mu     sync.Mutex
	byName map[string]*Group
}

// Join makes h share the pace of a group. If a has no name, h is paced alone. If a request of h waits
// or is in flight, h moves to the group with the first later request that finds no other one. Join
// has no effect if Rules.Shares is not set.
func (h *Host) Join(a Assignment) {
	if !h.own.rules.Shares {
		return
	}
	g, host := h.lock()
	host.member().assigned = a
	isSettled := host.isSettled()
	g.mu.Unlock()
	if !isSettled {
		host.settle(g.registry.now())
	}
}

// Assignment returns the Assignment that was last passed to Join. It returns the zero Assignment
// before that.
func (h *Host) Assignment() Assignment {
	g, host := h.lock()
	defer g.mu.Unlock()
	if m := host.member(); m != nil {
		return m.assigned
	}
	return Assignment{}
}

// SharesPace reports whether o is h or belongs to the same group.
func (h *Host) SharesPace(o *Host) bool {
	return h.currentGroup() == o.currentGroup()
}

// currentGroup returns the group of h, or if h is forgotten, that of the Host that has replaced it.
func (h *Host) currentGroup() *Group {
	g, _ := h.lock()
	defer g.mu.Unlock()
	return g
}

// isSettled reports whether h, which may share its pace, is in the group that it was last assigned to.
// The group of h is locked.
func (h *Host) isSettled() bool {
	m := h.member()
	g := m.group.Load()
	if g == &h.own {
		return m.assigned.Name == ""
	}
	return g.name == m.assigned.Name
}

// settle moves h to the group that it was last assigned to, if it is not there yet and none of its
// requests waits or is in flight.
func (h *Host) settle(now instant) {
	groups := &h.own.registry.groups
	groups.mu.Lock()
	defer groups.mu.Unlock()
	before := h.group()
	before.mu.Lock()
	defer before.mu.Unlock()
	isForgotten := before != h.group() || before.isForgotten
	if isForgotten || h.isSettled() || !h.mayLeave(now, before) {
		return
	}
	after := &h.own
	m := h.member()
	if m.assigned.Name != "" {
		after = h.own.registry.group(now, m.assigned.Name)
	}
	after.mu.Lock() // no other goroutine holds the lock of a group while it waits for that of another
	defer after.mu.Unlock()
	if before.hasMembers() {
		before.paced.members.count--
	}
	if after.hasMembers() {
		after.addMember(&h.own)
	}
	after.takeOver(now, m, before)
	m.group.Store(after)
}

// mayLeave reports whether h may leave its group g at now: no request of h waits or is in flight.
func (h *Host) mayLeave(now instant, g *Group) bool {
	if g.hasMembers() {
		return h.member().tickets == 0
	}
	return g.deserted(now) && g.inFlight.front == nil
}

// addMember adds a host, whose own group is o, to the group g. Both are locked.
func (g *Group) addMember(o *Group) {
	p := g.paced
	switch {
	case p.members.count == 0:
		g.rules = o.rules
		p.hours = o.paced.hours
	case g.rules != o.rules:
		g.rules = g.rules.withThoseOf(o.rules)
		p.hours = p.hours.and(o.paced.hours)
	}
	p.hasSchedule = p.hasSchedule || p.hours != nil
	p.members.count++
}

// and returns the hours of a group if one host has the hours x and another has o. x and o may be
// nil.
func (x *hostSchedule) and(o *hostSchedule) *hostSchedule {
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

// takeOver moves what m has contributed to the pace of before to the pace of g, so that the delays
// between the requests of m hold across the move. Both are locked.
func (g *Group) takeOver(now instant, m *member, before *Group) {
	p := g.ensurePaced()
	from := before.ensurePaced()
	p.longest = nil
	from.longest = nil
	for _, d := range from.crawlDelays {
		if d.source.by == m {
			p.crawlDelays = append(p.crawlDelays, d)
			p.hasSchedule = p.hasSchedule || d.schedule != nil
		}
	}
	from.crawlDelays = slices.DeleteFunc(from.crawlDelays, func(d *crawlDelay) bool { return d.source.by == m })
	if before.last > g.last {
		g.last = before.last
		p.share = from.share
	}
	if before.hasMembers() {
		return // the other members have contributed to the rest
	}
	g.visited = g.visited || before.visited
	p.notBefore = max(p.notBefore, from.notBefore)
	if g.estimator(now) == nil {
		p.estimator = from.estimator
	}
	p.gaps = p.gaps.and(before.gaps())
}

// group returns the group with a name, and makes it if there is none. h.groups.mu is held.
func (h *Hosts) group(now instant, name string) *Group {
	groups := &h.groups
	group := groups.byName[name]
	if group == nil {
		groups.forgetSome(now)
		group = &Group{registry: h, name: name, limiter: limiter{rules: new(Rules)}}
		group.ensurePaced().members = new(members)
		if groups.byName == nil {
			groups.byName = make(map[string]*Group)
		}
		groups.byName[name] = group
	}
	return group
}

// forgetSome examines a few groups and forgets those without members whose pace no longer matters.
// g.mu is held.
func (g *groups) forgetSome(now instant) {
	examined := 0
	for name, group := range g.byName { // in random order
		if group.isUnused(now) {
			delete(g.byName, name)
		}
		examined++
		if examined == mostExamined {
			return
		}
	}
}

// isUnused reports whether g, which hosts may join, has no members and may be forgotten at now.
func (g *Group) isUnused(now instant) bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	return g.paced.members.count == 0 && g.isForgettable(now) && g.deserted(now)
}

// forgetMember is the part of Host.forget for a host that belongs to a group with members, which is
// locked.
func (h *Host) forgetMember(g *Group) bool {
	m := h.member()
	if m.tickets > 0 {
		return false
	}
	for _, d := range m.crawlDelays { // the group removes them later
		d.written = 0
		d.schedule = nil
	}
	g.paced.members.count--
	h.own.isForgotten = true
	m.group.Store(&h.own)
	return true
}
