package pace

import (
	"math"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A Schedule says how the pace that a source requests depends on the time of day. Its methods must
// be safe for concurrent use. Two Schedules are the same if they are equal.
type Schedule interface {
	// At returns the slot that contains t.
	At(t time.Time) Slot
}

// A Slot is a period without a change of a Schedule.
type Slot struct {
	Delay     time.Duration // the delay between two starts, or 0
	DelayLine int           // the line of robots.txt that requests the delay
	Closed    bool          // no request may start, except for robots.txt
	OpenLine  int           // the line of robots.txt that closes the host
	Until     time.Time     // when the slot ends; zero if it never does
}

// A hostSchedule is a Schedule of a host.
type hostSchedule struct {
	Schedule
	registry *Hosts             // whose clock it uses
	closes   report.DelaySource // the Source of a wait while it closes the host
}

// is reports whether x has the schedule s. x and s may be nil.
func (x *hostSchedule) is(s Schedule) bool {
	if x == nil {
		return s == nil
	}
	return x.Schedule == s
}

// setSchedule records the schedule that a source requests, or nil for none. until is when the file
// has to be read again. It reports whether the schedule has changed.
func (g *Group) setSchedule(now instant, source Source, s Schedule, until instant) (changed bool) {
	p := g.ensurePaced()
	d := p.crawlDelayOf(&source)
	if d == nil {
		if s == nil {
			return false
		}
		d = &crawlDelay{source: source}
		g.addCrawlDelay(now, d, source.by)
	}
	g.inForce(now, d) // if d has expired, its schedule is removed
	changed = !d.schedule.is(s)
	if changed {
		d.schedule = nil
		if s != nil {
			d.schedule = &hostSchedule{Schedule: s, registry: g.registry, closes: report.SourceVisitTime}
			p.hasSchedule = true
		}
	}
	d.until = max(until, now).add(g.grace(now, d))
	return changed
}

// SetSchedule is like [Host.SetCrawlDelay] for a schedule, or nil for none. If several sources have
// schedules, all apply.
func (h *Host) SetSchedule(now time.Time, source Source, s Schedule, until time.Time) (changed bool) {
	if s == nil && h.own.plain() {
		return false
	}
	g, host := h.lock()
	defer g.mu.Unlock()
	changed = g.setSchedule(g.registry.instant(now), source.of(host), s, g.registry.instantOrNever(until))
	if changed {
		g.wakeNext()
	}
	return changed
}

// maxSleep is the longest time that a request of a host with a schedule sleeps before it reads the
// clock again. The clock may be set while it sleeps.
const maxSleep = 10 * time.Minute

// A combinedSlot is the Slot of all schedules of a host together.
type combinedSlot struct {
	delay     time.Duration // the longest, limited to MaxCrawlDelay
	delayLine int
	closed    bool
	closedBy  report.DelaySource
	openLine  int
	until     instant // when this may change; 0 if never
}

// slot combines the slots at the time at of the schedules that are in force at now. It returns the
// zero slot if there are none.
func (l *limiter) slot(now, at instant) (s combinedSlot) {
	if l.paced == nil || !l.paced.hasSchedule {
		return combinedSlot{}
	}
	if l.paced.hours != nil {
		s.add(l.paced.hours, at)
	}
	for _, d := range l.paced.crawlDelays {
		if d.schedule != nil && l.inForce(now, d) {
			s.add(d.schedule, at)
		}
	}
	s.delay = l.limited(s.delay)
	return s
}

// add adds what one schedule requests.
func (s *combinedSlot) add(one *hostSchedule, at instant) {
	clock := one.registry.time(at)
	other := one.At(clock)
	if other.Delay > s.delay {
		s.delay = other.Delay
		s.delayLine = other.DelayLine
	}
	if other.Closed && !s.closed {
		s.closed = true
		s.closedBy = one.closes
		s.openLine = other.OpenLine
	}
	if other.Until.IsZero() {
		return
	}
	if until := at.add(other.Until.Sub(clock)); s.until == 0 || until < s.until {
		s.until = until
	}
}

// maxSlots limits the number of slots that one call examines, for delays of many days.
const maxSlots = 100

// nextSlot returns when the request of t may start at the earliest: not before at, one gap after
// last, and, unless t reads a robots.txt, while the host is open. It uses the schedules that are in
// force at now. If it finds no such time within maxSlots slots, it returns an earlier time, at which
// the caller should ask again.
func (l *limiter) nextSlot(now, at, last instant, t *Ticket) instant {
	base := l.unscheduledDelay(now)
	for range maxSlots {
		s := l.slot(now, at)
		start := at
		if delay := max(base, s.delay); delay > 0 && last != 0 {
			start = max(at, last.add(l.gapAfter(delay)))
		}
		isOpen := !s.closed || t != nil && t.renews
		if isOpen && (s.until == 0 || start < s.until) {
			return start
		}
		if s.until <= at {
			return start // the schedule does not say when it opens
		}
		at = s.until
	}
	return at
}

// unscheduledDelay returns the delay that is in force at now without those of schedules.
func (l *limiter) unscheduledDelay(now instant) time.Duration {
	return max(l.limited(l.crawlDelay(now)), l.minDelay(), l.backOff(now), l.adaptiveDelay())
}

// lastStart estimates when the last of n requests starts, if n requests wait at now. It assumes that
// only schedules change the delay.
func (l *limiter) lastStart(now instant, n int) instant {
	first := now.add(l.due(now, nil))
	last := first
	left := n - 1
	for range maxSlots {
		if left == 0 {
			return last
		}
		s := l.slot(now, last)
		delay := l.usualGap(max(l.unscheduledDelay(now), s.delay))
		fit := left // requests that start before this slot ends
		if s.until != 0 && delay > 0 {
			fit = int(min((s.until.since(last)-1)/delay, time.Duration(left)))
		}
		last = last.add(times(delay, fit))
		left -= fit
		if left > 0 {
			last = l.nextSlot(now, s.until, last, nil)
			left--
		}
	}
	done := n - left
	return last.add(times(last.since(first)/time.Duration(max(done-1, 1)), left))
}

// times returns n times d, or the longest Duration if that overflows.
func times(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

// longestPeriod is how far openingTimes looks ahead. A host with daily hours opens and closes within
// this time, even if a change of the clock to summer time skips its opening hours on one day.
const longestPeriod = 48 * time.Hour

// openingTimes returns when the host opens again, if it is closed at now, or when it closes next, if it
// is open. Both are zero if no schedule closes the host.
func (g *Group) openingTimes(now instant) (opens, closes time.Time) {
	s := g.slot(now, now)
	at := s.until
	next := s
	for range maxSlots {
		if at == 0 || at.since(now) > longestPeriod || next.closed != s.closed {
			break
		}
		next = g.slot(now, at)
		if next.closed == s.closed {
			at = next.until
		}
	}
	switch {
	case next.closed == s.closed:
		return time.Time{}, time.Time{}
	case s.closed:
		return g.registry.time(at), time.Time{}
	}
	return time.Time{}, g.registry.time(at)
}
