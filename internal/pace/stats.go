package pace

import (
	"math"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// Stats are the statistics of one host. Package pace sets the fields of HostStats that concern the
// pace, and those of its HostCounts.
type Stats struct {
	report.HostStats
	// Busy reports whether a request waits or is in flight.
	Busy  bool
	Marks uint16 // the bits that were passed to Mark
	// RateWait is about how long a request that is made now waits for the total rate; see
	// Hosts.LimitRate.
	RateWait time.Duration
}

// counters has the counters of a host in 24 bytes. The group of the host is locked.
type counters struct {
	requests  uint32
	pages     uint32
	denied    uint32
	failed    uint32
	unchanged uint32
	throttled uint16 // at most math.MaxUint16
	refusals  uint16 // at most math.MaxUint16
}

// add adds n; see Host.Count.
func (c *counters) add(n report.HostCounts) {
	c.pages += uint32(n.Pages)
	c.denied += uint32(n.Denied)
	c.failed += uint32(n.Failed)
	c.unchanged += uint32(n.Unchanged)
	c.throttled = uint16(min(int(c.throttled)+n.Throttled, math.MaxUint16))
	c.refusals = uint16(min(int(c.refusals)+n.Refusals, math.MaxUint16))
}

// Stats returns the counts so far and the parts of the delay at now. The counts and Waiting are
// those of h alone, and the others those of its group.
func (h *Host) Stats(now time.Time) Stats {
	g, host := h.lock()
	defer g.mu.Unlock()
	var s Stats
	s.HostCounts = host.counts()
	s.Host = host.own.name
	s.LastStatus = int(host.status)
	s.Marks = host.marks
	at := g.registry.instant(now)
	s.MinGap = g.gaps().smallest
	s.GapOverDelay = g.gaps().overDelay
	s.Source, s.Line = g.nextCause(at)
	s.CrawlDelay = g.crawlDelay(at)
	s.BackOff = g.backOff(at)
	s.Delay = g.delay(at)
	if until := g.notBefore(at); until != 0 {
		s.NotBefore = g.registry.time(until)
	}
	next := g.nextStart(at)
	s.RateWait = g.rateWait(at)
	if until, waits := g.isInRateQueue(at); waits {
		next = max(next, until)
		s.Source = report.SourceMaxRate
		s.Line = 0
	}
	if host.isPaused() {
		s.Source = report.SourcePaused
		s.Line = 0
	}
	if next != 0 {
		s.NextStart = g.registry.time(next)
	}
	if g.paced == nil {
		s.Busy = g.busy(at)
		return s
	}
	s.ResponseTime = g.paced.responseTime
	s.Opens, s.Closes = g.openingTimes(at)
	if !g.hasMembers() {
		s.Waiting = g.countWaiting(at)
		s.Busy = g.busy(at) || s.Waiting > 0 || g.paced.urgent.front != nil
		return s
	}
	s.Waiting = g.countWaitingOf(at, host)
	s.Busy = g.isMemberBusy(at, host)
	s.Group = g.name
	s.SharedWith = g.paced.members.count - 1
	s.GroupWaiting = g.countWaiting(at)
	return s
}

// countWaiting returns the number of tickets in Enter. A ticket that got the turn and never started
// does not count.
func (g *Group) countWaiting(now instant) int {
	if g.unusedTurn(now) != nil {
		return g.paced.queued - 1
	}
	return g.paced.queued
}

// countWaitingOf is like countWaiting for the tickets of a member.
func (g *Group) countWaitingOf(now instant, h *Host) int {
	n := h.member().queued
	if t := g.unusedTurn(now); t != nil && t.host.Load() == h {
		n--
	}
	return n
}

// unusedTurn returns the ticket that has had the turn and not started before its place expired, or
// nil.
func (g *Group) unusedTurn(now instant) *Ticket {
	front := g.paced.waiting.front
	if front != nil && front.state == admitted && front.expired(now) {
		return front
	}
	return nil
}

// isMemberBusy reports whether a request of h, a member of g, waits or is in flight.
func (g *Group) isMemberBusy(now instant, h *Host) bool {
	m := h.member()
	n := m.tickets - (m.queued - g.countWaitingOf(now, h))
	for t := range g.inFlight.all {
		if t.host.Load() == h && t.state != onWire && t.expired(now) {
			n--
		}
	}
	return n > 0
}

// counts returns the statistics that can be summed. The group of h is locked, or h is forgotten.
func (h *Host) counts() report.HostCounts {
	c := report.HostCounts{
		Requests:     int(h.requests),
		Throttled:    int(h.throttled),
		Pages:        int(h.pages),
		Denied:       int(h.denied),
		Failed:       int(h.failed),
		Refusals:     int(h.refusals),
		Unchanged:    int(h.unchanged),
		GapOverDelay: h.own.gaps().overDelay,
	}
	if p := h.own.paced; p != nil {
		c.Waited = p.waited
		c.Retried = int(p.retried)
		c.GivenUp = int(p.givenUp)
	}
	return c
}
