package pace

import "time"

// maxRetryAfter bounds what one Retry-After can do. The next answer may ask for as much again.
const maxRetryAfter = time.Hour

// slowDown takes note of a complaint about t, which may be nil, and of the Retry-After that came
// with it, 0 for none. It reports whether it is news: the answers to requests that were under way
// when the host last complained are not. random is a number in [0, 1).
func (l *limiter) slowDown(now instant, t *Ticket, after time.Duration, random float64) bool {
	if t != nil {
		t.judged = true
	}
	most, until := l.mostBackOff(), now.add(min(after, maxRetryAfter))
	if after <= 0 && most == 0 || after > 0 && until <= l.notBefore(now) {
		return false
	}
	g := l.ensureGovernor(now)
	if after > 0 {
		l.paced.notBefore = until
	}
	if t != nil && t.incident != g.incident {
		return false
	}
	if most == 0 {
		g.probe()
	} else {
		g.complain(complaint{
			seen: now, last: l.moment, wait: after > 0, rate: l.sending(now, t), random: random,
		}, 1/most.Seconds())
	}
	l.paced.throttled++
	return true
}

// unavailable is slowDown for an answer that is perhaps no complaint.
func (l *limiter) unavailable(now instant, t *Ticket, random float64) bool {
	if t != nil {
		t.judged = true
	}
	if l.mostBackOff() == 0 {
		return false
	}
	g := l.ensureGovernor(now)
	if t != nil && t.incident != g.incident {
		return false
	}
	return g.unavailable() && l.slowDown(now, t, 0, random)
}

// sending estimates how many requests a second were sent before now from how long that of t took.
func (l *limiter) sending(now instant, t *Ticket) float64 {
	if t == nil || now <= t.at {
		return 0
	}
	count := 0.0
	for range l.inFlight.all {
		count++
	}
	return count / now.since(t.at).Seconds()
}

// ensureGovernor returns the governor, made if there is none at now.
func (l *limiter) ensureGovernor(now instant) *governor {
	p := l.slowed()
	if p.governor == nil {
		p.governor = new(governor)
	} else if l.governor(now) == nil {
		*p.governor = governor{incident: p.governor.incident, proven: now}
	}
	return p.governor
}

// governor returns what is remembered of the host's complaints at now. It is nil if there were
// none, or if the last request is so long ago that the host may well have changed its mind.
func (l *limiter) governor(now instant) *governor {
	if l.paced == nil || l.paced.governor == nil {
		return nil
	}
	g := l.paced.governor
	quiet := now.since(max(l.last, l.paced.notBefore))
	if quiet > longQuiet && quiet-longQuiet > 10*g.interval(now, l.mostBackOff()) {
		return nil
	}
	return g
}

// longQuiet is after what time without a request complaints are forgotten, at the earliest.
const longQuiet = 10 * time.Minute

// mostBackOff returns the longest delay that complaints can cause.
func (l *limiter) mostBackOff() time.Duration {
	if l.rules.MaxBackOff == 0 {
		return 5 * time.Minute
	}
	return max(l.rules.MaxBackOff, 0)
}
