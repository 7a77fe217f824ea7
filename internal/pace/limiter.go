package pace

import (
	"math"
	"sync/atomic"
	"time"
)

// An instant is a moment in nanoseconds since the registry was made, plus one. Zero: never.
type instant int64

// add returns i later by d. What is beyond the end of time is the end of time.
func (i instant) add(d time.Duration) instant {
	if d > 0 && i > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return i + instant(d)
}

// since returns how long before i start was; 0 if it was not.
func (i instant) since(start instant) time.Duration {
	return time.Duration(max(i-start, 0))
}

// A limiter decides when one host may be asked again. It only decides: the time is an argument,
// waiting is Host's, which also holds its lock around every call.
//
// The delay in force is the largest of what the host's robots.txt asks for (under http and under
// https, and of each of the crawler's names: one host, one pace), MinDelay, and what its governor
// makes of 429 and 503. A Retry-After holds everything until its time has come.
//
// The delay is kept by arithmetic on instants rather than by a rate.Limiter, whose bucket of one
// is the same thing counted in floating point, in 80 bytes, and which cannot be told later
// that its token was taken at another moment.
type limiter struct {
	rules    *Rules
	last     instant // what the delay counts from: the last moment, or with FromEnd the last end
	moment   instant // when the last request reached the wire
	inFlight list    // tickets that have started and not ended, oldest first
	requests int
	paced    *paced      // nil: nothing but rules has ever slowed the host down
	slow     atomic.Bool // there is paced, or rules slow the host down; read without the lock
	visited  bool        // a request came that no other site has led to
	led      bool        // the host has only got requests that other sites have led to
}

// paced is what only a host with a delay, a limit or somebody who waits needs.
type paced struct {
	crawlDelays []*crawlDelay
	notBefore   instant       // Retry-After
	before      instant       // the moment before the last one; 0: no delay was in force between
	asked       time.Duration // the delay that was in force when the last moment came; 0: none that was kept
	gaps        gaps          // before the last moment
	waited      time.Duration // by all tickets together
	throttled   int
	governor    *governor // nil: the host has never complained
	urgent      list      // tickets in Start, first come first served
	waiting     list      // tickets in Enter; the front one may be admitted already
	queued      int       // length of waiting
	sharing     *sharing  // nil: no Pacer was asked
}

// gaps are the smallest that there were between two moments while a delay was in force; 0: there
// were none.
type gaps struct {
	least     time.Duration
	overDelay float64 // divided by the delay at that time
}

// Where one request at a time is in flight only because of a delay, its place lapses after these:
// its body may never end.
const (
	leastLease  = time.Minute
	leaseDelays = 10
)

// startLease is how long a started request may take to reach the transport. One that does not get
// there was aborted by a later callback, or sent to another host.
const startLease = time.Second

// slowed returns l.paced, made if need be.
func (l *limiter) slowed() *paced {
	if l.paced == nil {
		l.paced = new(paced)
		l.slow.Store(true)
	}
	return l.paced
}

// plain reports whether nothing has ever kept the host's requests apart, so that none has to wait
// and the clock does not matter. It needs no lock.
func (l *limiter) plain() bool { return !l.slow.Load() }

// delay returns the delay in force at now.
func (l *limiter) delay(now instant) time.Duration {
	if l.paced == nil { // as of most hosts
		return max(l.rules.MinDelay, 0)
	}
	return max(l.floor(now), l.backOff(now))
}

// floor returns the delay that is in force at now whatever the host answers.
func (l *limiter) floor(now instant) time.Duration {
	return max(l.kept(l.crawlDelay(now)), l.least())
}

// ledDelay is the least delay of a host that gets only requests to which other sites have led.
const ledDelay = time.Second

// least returns the delay that is in force whatever the host asks for.
func (l *limiter) least() time.Duration {
	if l.led {
		return max(l.rules.MinDelay, ledDelay)
	}
	return l.rules.MinDelay
}

// kept returns how much of a crawl delay is kept.
func (l *limiter) kept(written time.Duration) time.Duration {
	if most := l.rules.MaxDelay; most > 0 {
		return min(written, most)
	}
	return written
}

// backOff returns the delay that the host's complaints have brought it.
func (l *limiter) backOff(now instant) time.Duration {
	if g := l.governor(now); g != nil {
		return g.interval(now, l.mostBackOff())
	}
	return 0
}

// notBefore returns until when a Retry-After holds everything; 0: none does at now.
func (l *limiter) notBefore(now instant) instant {
	if l.paced == nil || l.paced.notBefore <= now {
		return 0
	}
	return l.paced.notBefore
}

// unpaced reports whether nothing keeps a request from starting, now or later.
func (l *limiter) unpaced(now instant) bool {
	return l.rules.Free || l.rules.MaxInFlight == 0 && l.delay(now) == 0 && l.notBefore(now) == 0 &&
		!l.governor(now).probing()
}

// ready reports whether a request may start at now, and if not, after what wait to ask again; 0:
// when something has changed. It takes nothing.
func (l *limiter) ready(now instant) (wait time.Duration, ok bool) {
	if l.rules.Free {
		return 0, true
	}
	if until := l.notBefore(now); until != 0 {
		return until.since(now), false
	}
	if wait, full := l.full(now, l.delay(now)); full {
		return wait, false
	}
	wait = l.due(now)
	return wait, wait == 0
}

// due returns how long nothing may start from now on, whatever is in flight.
func (l *limiter) due(now instant) time.Duration {
	if l.rules.Free {
		return 0
	}
	wait := l.notBefore(now).since(now)
	if delay := l.delay(now); delay > 0 && l.last != 0 {
		wait = max(wait, delay-now.since(l.last))
	}
	return wait
}

// longest returns when the place of a request lapses that is on the wire since now; 0: never.
func (l *limiter) longest(now instant) instant {
	if l.rules.MaxInFlight > 0 {
		return 0
	}
	delay := min(l.delay(now), math.MaxInt64/leaseDelays)
	return now.add(max(leastLease, leaseDelays*delay))
}

// nextStart returns before when no request may start, as far as is known at now; 0: one may start
// as soon as not too many are in flight.
func (l *limiter) nextStart(now instant) instant {
	if l.rules.Free {
		return 0
	}
	next := l.notBefore(now)
	if delay := l.delay(now); delay > 0 && l.last != 0 {
		next = max(next, l.last.add(delay))
	}
	if next <= now {
		return 0
	}
	return next
}

// full reports whether as many requests are in flight as may be, and after what wait to ask again;
// 0: when one has ended.
func (l *limiter) full(now instant, delay time.Duration) (wait time.Duration, full bool) {
	most, g := l.rules.MaxInFlight, l.governor(now)
	if l.floor(now) > 0 && most == 0 || delay > 0 && l.rules.FromEnd {
		most = 1
	}
	if most == 0 && !g.probing() {
		return 0, false
	}
	count := 0
	for t := range l.inFlight.all {
		if t.lapsed(now) {
			l.lapse(t)
			continue
		}
		if left := t.lease.since(now); left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
		if count++; count == most || g.probing() && t.incident == g.incident {
			return wait, true
		}
	}
	return 0, false
}

// lapse takes t, which has lapsed, out of what is in flight.
func (l *limiter) lapse(t *Ticket) {
	if t.state == onWire && l.rules.FromEnd {
		l.last = max(l.last, t.lease) // as if it had ended then
	}
	l.remove(t)
}

// remove takes t, which has started, out of what is in flight. If the transport never had it, there
// was no request.
func (l *limiter) remove(t *Ticket) {
	if t.state == started {
		l.requests--
	}
	l.inFlight.remove(t)
	t.state = idle
}

// start lets t go at now, if it may. If not, wait is as ready has it.
func (l *limiter) start(now instant, t *Ticket) (wait time.Duration, ok bool) {
	if wait, ok = l.ready(now); !ok {
		return wait, false
	}
	delay := l.delay(now)
	t.at, t.state, t.lease, t.delay = now, onWire, l.longest(now), delay
	if !t.direct {
		t.state, t.lease = started, now.add(startLease)
	}
	if t.incident, t.judged = 0, false; l.paced != nil && l.paced.governor != nil {
		g := l.ensureGovernor(now)
		g.started(now)
		t.incident = g.incident
	}
	l.inFlight.push(t)
	l.used(now, t)
	l.requests++
	t.gap = l.next(now, delay)
	return 0, true
}

// sent moves the moment of t, if it is in flight, to now.
func (l *limiter) sent(now instant, t *Ticket) {
	if t.state < started || now <= t.at {
		return
	}
	l.used(now, t)
	latest := t.at == l.moment
	if t.gap > 0 {
		t.gap += now.since(t.at)
	}
	switch t.at = now; {
	case latest:
		l.moment, l.last = now, max(l.last, now)
	case now > l.moment: // others have started and reached the wire meanwhile
		t.gap = l.next(now, l.delay(now))
	}
}

// late reports whether the delay would not be kept if t, which has started, reached the wire at now.
func (l *limiter) late(now instant, t *Ticket) bool {
	switch {
	case t.delay == 0 || l.rules.Free:
		return false
	case t.at != l.moment: // another has
		return now.since(l.moment) < t.delay
	}
	return t.gap > 0 && t.gap+now.since(t.at) < t.delay
}

// next makes now the last moment, under a delay, after the gap before the one that was the last is
// settled. It returns the time between the two; 0: now is the first.
func (l *limiter) next(now instant, delay time.Duration) (gap time.Duration) {
	previous := l.moment
	if previous != 0 {
		gap = now.since(previous)
	}
	l.moment, l.last = now, max(l.last, now)
	if l.paced == nil && delay == 0 {
		return gap
	}
	p := l.slowed()
	p.gaps = p.gapsTo(previous)
	if p.before, p.asked = 0, 0; delay > 0 {
		p.before = previous
		if !l.rules.Free {
			p.asked = delay
		}
	}
	return gap
}

// gaps returns the smallest gaps so far.
func (l *limiter) gaps() gaps {
	if l.paced == nil {
		return gaps{}
	}
	return l.paced.gapsTo(l.moment)
}

// gapsTo returns the smallest gaps of p if last is the last moment and stays where it is.
func (p *paced) gapsTo(last instant) gaps {
	g := p.gaps
	if p.before == 0 {
		return g
	}
	gap := last.since(p.before)
	if g.least == 0 || gap < g.least {
		g.least = gap
	}
	if p.asked > 0 {
		g.overDelay = smaller(g.overDelay, float64(gap)/float64(p.asked))
	}
	return g
}

// smaller returns the smaller of two numbers that are not 0.
func smaller(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// accepted takes note that the request of t was answered, and not with a complaint. It reports
// whether anybody has waited for that.
func (l *limiter) accepted(now func() instant, t *Ticket) bool {
	if t.state != onWire || t.judged || l.paced == nil || l.paced.governor == nil {
		return false
	}
	t.judged = true
	return l.paced.governor.accept(now(), t)
}

// end takes t, which has started, off the wire.
func (l *limiter) end(now func() instant, t *Ticket) {
	l.accepted(now, t)
	l.remove(t)
	if l.rules.FromEnd {
		at := now()
		l.last = max(l.last, at)
		l.used(at, t)
	}
}

// idle reports whether forgetting the host at now changes nothing about when it is asked next.
func (l *limiter) idle(now instant) bool {
	_, ok := l.ready(now)
	return ok && !l.busy(now) && l.governor(now) == nil
}

// busy reports whether anything is in flight. What has never reached the wire in time is not.
func (l *limiter) busy(now instant) bool {
	for t := range l.inFlight.all {
		if t.state == onWire || !t.lapsed(now) {
			return true
		}
	}
	return false
}
