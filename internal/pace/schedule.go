package pace

import "time"

// A Schedule says how the pace that a source requests depends on the time of day. Its methods must
// be safe for concurrent use. Two Schedules are the same if they are equal.
type Schedule interface {
	// At returns the slot that contains t.
	At(t time.Time) Slot
}

// A Slot is a period in which a Schedule does not change.
type Slot struct {
	Delay     time.Duration // the delay between two starts, or 0
	DelayLine int           // the line of robots.txt that requests the delay
	Closed    bool          // no request may start, except for robots.txt
	OpenLine  int           // the line of robots.txt that closes the host
	Until     time.Time     // when the slot ends; zero if it never does
}

// A scheduled is the Schedule of a host, with the Hosts whose clock it uses.
type scheduled struct {
	Schedule
	hosts *Hosts
}

// is reports whether x has the schedule s. x and s may be nil.
func (x *scheduled) is(s Schedule) bool {
	if x == nil {
		return s == nil
	}
	return x.Schedule == s
}

// setSchedule records the schedule that a source requests, or nil for none. until is when the file
// has to be read again. It reports whether the schedule has changed.
func (h *Host) setSchedule(now instant, source Source, s Schedule, until instant) (changed bool) {
	p := h.slowed()
	d := p.crawlDelayOf(&source)
	if d == nil {
		if s == nil {
			return false
		}
		d = &crawlDelay{source: source}
		p.crawlDelays = append(p.crawlDelays, d)
	}
	h.holds(now, d) // if d has expired, its schedule is removed
	changed = !d.schedule.is(s)
	if changed {
		d.schedule = nil
		if s != nil {
			d.schedule = &scheduled{Schedule: s, hosts: h.hosts}
			p.scheduled = true
		}
	}
	d.until = max(until, now).add(h.grace(now, d))
	return changed
}

// SetSchedule is like [Host.SetCrawlDelay] for a schedule, or nil for none. If several sources have
// schedules, all apply.
func (h *Host) SetSchedule(now time.Time, source Source, s Schedule, until time.Time) (changed bool) {
	if s == nil && h.plain() {
		return false
	}
	h = h.lock()
	defer h.mu.Unlock()
	changed = h.setSchedule(h.hosts.instant(now), source, s, h.hosts.lapses(until))
	if changed {
		h.lookAgain()
	}
	return changed
}

// A slot is a Slot that combines all schedules of a host.
type slot struct {
	delay     time.Duration // the longest, limited to MaxDelay
	delayLine int
	closed    bool
	openLine  int
	until     instant // when this may change; 0 if never
}

// slot combines the slots at the time at of the schedules that are in force at now. It returns the
// zero slot if there are none.
func (l *limiter) slot(now, at instant) (s slot) {
	if l.paced == nil || !l.paced.scheduled {
		return slot{}
	}
	for _, d := range l.paced.crawlDelays {
		if d.schedule != nil && l.holds(now, d) {
			s.add(d.schedule, at)
		}
	}
	s.delay = l.kept(s.delay)
	return s
}

// add adds what one schedule requests.
func (s *slot) add(one *scheduled, at instant) {
	other := one.At(one.hosts.time(at))
	if other.Delay > s.delay {
		s.delay = other.Delay
		s.delayLine = other.DelayLine
	}
	if other.Closed && !s.closed {
		s.closed = true
		s.openLine = other.OpenLine
	}
	if other.Until.IsZero() {
		return
	}
	if until := one.hosts.instant(other.Until); s.until == 0 || until < s.until {
		s.until = until
	}
}

// maxSlots limits the number of slots that nextSlot examines, for delays of many days.
const maxSlots = 100

// nextSlot returns the first time, not before at, at which the request of t may start under the
// schedules that are in force at now. base is the delay from other causes. If t reads robots.txt,
// it may start while the host is closed. After maxSlots slots, nextSlot returns an earlier time, at
// which it has to be called again.
func (l *limiter) nextSlot(now, at instant, base time.Duration, t *Ticket) instant {
	for range maxSlots {
		s := l.slot(now, at)
		start := at
		if delay := max(base, s.delay); delay > 0 && l.last != 0 {
			start = max(at, l.last.add(delay))
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
