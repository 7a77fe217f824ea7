package pace

import "time"

// maxRetryAfter bounds the wait that a single Retry-After can cause, because a server can send any
// number. The next response may ask for an hour again.
const maxRetryAfter = time.Hour

// slowDown records a complaint, which is a 429 response or a 503 response that counts as
// throttling. t is the ticket of its request and may be nil. after is the Retry-After of the
// response, or 0 if it has none. random is a number in [0, 1).
//
// It reports whether the complaint starts a new incident. Complaints about requests that were
// already under way when the host last complained belong to that earlier incident.
func (l *limiter) slowDown(now instant, t *Ticket, after time.Duration, random float64) bool {
	if t != nil {
		t.judged = true
		l.measure(now, t, false)
	}
	most := l.mostBackOff()
	until := now.add(min(after, maxRetryAfter))
	if after <= 0 && most == 0 || after > 0 && until <= l.notBefore(now) {
		return false
	}
	e := l.ensureEstimator(now)
	if after > 0 {
		l.paced.notBefore = until
	}
	if t != nil && t.incident != e.incident {
		return false
	}
	if most == 0 {
		e.probe()
	} else {
		e.complain(complaint{
			seen:   now,
			last:   l.moment,
			wait:   after > 0,
			rate:   l.sending(now, t),
			random: random,
		}, 1/most.Seconds())
	}
	return true
}

// unavailable records a 503 response without Retry-After, which may only mean that the page is
// broken. If the estimator counts it as a complaint, unavailable is like slowDown.
func (l *limiter) unavailable(now instant, t *Ticket, random float64) bool {
	if t != nil {
		t.judged = true
		l.measure(now, t, false)
	}
	if l.mostBackOff() == 0 {
		return false
	}
	e := l.ensureEstimator(now)
	if t != nil && t.incident != e.incident {
		return false
	}
	return e.unavailable() && l.slowDown(now, t, 0, random)
}

// sending estimates how many requests per second were sent before now. It divides the number of
// requests in flight by the time that has passed since t started. It returns 0 if that is unknown.
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

// ensureEstimator returns the estimator. It creates one if there is none, and resets one that is
// too old to be used at now.
func (l *limiter) ensureEstimator(now instant) *estimator {
	p := l.ensurePaced()
	if p.estimator == nil {
		p.estimator = new(estimator)
	} else if l.estimator(now) == nil {
		*p.estimator = estimator{incident: p.estimator.incident, proven: now}
	}
	return p.estimator
}

// estimator returns the state that the host's complaints have left at now. It returns nil if the
// host has never complained, or if the last request was so long ago that the state is out of date:
// longer ago than longQuiet plus ten intervals of the back-off.
func (l *limiter) estimator(now instant) *estimator {
	if l.paced == nil || l.paced.estimator == nil {
		return nil
	}
	e := l.paced.estimator
	quiet := now.since(max(l.last, l.paced.notBefore))
	if quiet > longQuiet && quiet-longQuiet > 10*e.interval(now, l.mostBackOff()) {
		return nil
	}
	return e
}

// probing reports whether all other requests wait for the answer to a probe at now.
func (l *limiter) probing(now instant) bool {
	e := l.estimator(now)
	return e != nil && e.probing()
}

// longQuiet is the shortest time without a request after which the complaints of a host are
// forgotten.
const longQuiet = 10 * time.Minute

// usualBackOff is the longest delay that complaints can cause if the rules do not set it.
const usualBackOff = 5 * time.Minute

// mostBackOff returns the longest delay that complaints can cause. 0 means that the back-off is
// turned off.
func (l *limiter) mostBackOff() time.Duration { return l.rules.mostBackOff() }

func (r *Rules) mostBackOff() time.Duration {
	if r.MaxBackOff == 0 {
		return usualBackOff
	}
	return max(r.MaxBackOff, 0)
}
