package audit

import (
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// clockTolerance is the largest difference between the clock and the monotonic clock of a process
// that is not a jump.
const clockTolerance = time.Second

// A logClock compares the clock of a log with the clocks of the servers. Servers may be wrong, so
// only changes of the differences count, and only if two hosts agree, or if there is only one. A
// change is a jump, or the sum of small changes since the first response of a host.
type logClock struct {
	id    string // Notice.Clock
	hosts map[string]serverClock
	jump  time.Duration // that one host has shown; 0 if none has
	by    string        // this host
}

// A serverClock is the difference of the clock of a server, at first and now.
type serverClock struct {
	since time.Time // when first was found
	first difference
	last  difference
}

// A difference is the interval of the difference between the clock of a server and that of the log.
type difference struct{ low, high time.Duration }

const (
	// serverTolerance is how much a server's clock may change before that counts as a jump.
	serverTolerance = 5 * time.Second
	// driftLimit is how much faster a clock may run than another one: one part in driftLimit. The
	// clocks of computers keep 1 in 10,000, and NTP changes their rate by at most 1 in 2,000.
	driftLimit = 1000
	// maxClocks bounds the number of hosts in a logClock.
	maxClocks = 10_000
)

// compare compares the Date header of a response with the clock. It returns by how much the clock
// has jumped or drifted, or 0.
func (c *logClock) compare(e *report.Event) (jump time.Duration) {
	if e.Date.IsZero() {
		return 0
	}
	now := differenceOf(e)
	before, known := c.hosts[e.Host]
	if !known {
		if c.hosts == nil {
			c.hosts = make(map[string]serverClock)
		}
		if len(c.hosts) < maxClocks {
			c.hosts[e.Host] = serverClock{since: e.Time, first: now, last: now}
		}
		return 0
	}
	jump = before.to(now, e.Time)
	switch {
	case jump == 0:
		before.last = before.last.and(now)
		c.hosts[e.Host] = before
		return 0
	case len(c.hosts) > 1 && (c.by == "" || c.by == e.Host || abs(jump-c.jump) > serverTolerance):
		c.jump = jump
		c.by = e.Host
		return 0
	}
	clear(c.hosts)
	c.by = ""
	c.hosts[e.Host] = serverClock{since: e.Time, first: now, last: now}
	return jump
}

// to returns by how much the clock has moved to the difference now, which was found at a time. It is
// 0 if the clock has neither jumped nor drifted too far.
func (s serverClock) to(now difference, at time.Time) time.Duration {
	jump := s.last.to(now, serverTolerance)
	if jump != 0 {
		return jump
	}
	return s.first.to(now, serverTolerance+abs(at.Sub(s.since))/driftLimit)
}

// differenceOf returns the difference that the Date of a response shows. The server has written the
// date, in whole seconds, between the start and the end.
func differenceOf(e *report.Event) difference {
	return difference{low: e.Date.Sub(e.Time), high: e.Date.Add(time.Second).Sub(e.Time.Add(-e.Took))}
}

// age returns how much older a response is than earlier ones of the host were when they came. It is
// 0 if that is not known.
func (c *logClock) age(e *report.Event) time.Duration {
	before, known := c.hosts[e.Host]
	if !known || e.Date.IsZero() {
		return 0
	}
	return before.last.low - differenceOf(e).high
}

// uncertainty returns by how much a gap that begins on the clock c and ends on the clock o may be
// longer than the times say. known is false if there is nothing to compare the clocks with.
func (c *logClock) uncertainty(o *logClock, host string) (most time.Duration, known bool) {
	if c == o || c.id == o.id && c.id != "" {
		return 0, true
	}
	one, known := c.hosts[host]
	other, alsoKnown := o.hosts[host]
	if !known || !alsoKnown {
		return 0, false
	}
	return other.last.high - one.last.low, true
}

// to returns how far the interval has moved, or 0 if that is less than a tolerance.
func (d difference) to(o difference, tolerance time.Duration) time.Duration {
	switch {
	case o.low > d.high+tolerance:
		return o.low - d.high
	case o.high < d.low-tolerance:
		return o.high - d.low
	}
	return 0
}

// and returns the interval that both agree on, or o if there is none.
func (d difference) and(o difference) difference {
	both := difference{low: max(d.low, o.low), high: min(d.high, o.high)}
	if both.low > both.high {
		return o
	}
	return both
}

func abs(d time.Duration) time.Duration { return max(d, -d) }
