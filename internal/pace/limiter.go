package pace

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// An instant is a moment in nanoseconds since the registry was made, plus one. Zero means never.
type instant int64

// add returns the instant that is d after i. The result is at most the largest instant.
func (i instant) add(d time.Duration) instant {
	if d > 0 && i > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return i + instant(d)
}

// since returns the time from start to i, or 0 if i is before start.
func (i instant) since(start instant) time.Duration {
	return time.Duration(max(i-start, 0))
}

// A limiter decides when a request of a group may start. It only decides: the time is an argument, and
// the Group waits and holds its lock around every call.
//
// The delay in force is the largest of four values: the crawl delay, MinDelay, the delay that the
// estimator derives from 429 and 503 responses, and under Rules.Adaptive the delay that follows
// from the response time. The crawl delay is the longest that a robots.txt of a host requests, under
// http and https and for each product token of the crawler. Until a Retry-After has passed, nothing
// starts.
//
// Under Rules.Jitter, each gap is longer than the delay by a random share of it. The share is drawn
// when a request starts, for the gap after it. It then holds until the next start, even if the delay
// changes.
//
// The limiter computes with instants and does not use a rate.Limiter. A rate.Limiter with a burst
// of one gives the same decisions, but it counts in floating point, takes 80 bytes, and has no way
// to correct later the moment at which a token was taken.
type limiter struct {
	rules       *Rules
	last        instant     // the delay counts from here: the last moment, or with FromEnd the last end of a request
	moment      instant     // when the last request reached the wire
	reported    instant     // the latest start that Ticket.Report has returned
	inFlight    list        // tickets that have started and not ended, oldest first
	paced       *paced      // nil if only rules have ever slowed the host down
	isPaced     atomic.Bool // paced is not nil, or rules slow the host down; read without the lock
	visited     bool        // the host got a request that no other site has led to
	led         bool        // the host has got only requests that other sites have led to
	isLoaded    bool        // the pace was loaded from the Memory
	isForgotten bool        // the only host of the group is forgotten; here, because it needs no memory here
}

// paced has the fields of a limiter that only some hosts need: those with a delay, a limit, or a
// request that waits.
type paced struct {
	crawlDelays []*crawlDelay
	longest     *crawlDelay   // of those in force; nil if it has to be found again
	hasSchedule bool          // there are hours, or one of the crawlDelays has had a schedule
	unwritten   bool          // the request of the last moment was never written
	paused      bool          // the host is paused, see Hosts.Pause
	share       float32       // of Rules.Jitter, in [0, 1]: for the gap after the last start, see gapAfter
	hours       *hostSchedule // Rules.Hours of all hosts of the group; nil if none has hours
	notBefore   instant       // the end of the last Retry-After; 0 if there was none
	before      instant       // the moment of the written request before the last one; 0 if no delay was in force at the last moment
	required    time.Duration // the delay that was in force at the last moment; 0 if none was kept
	gaps        gaps          // the gaps before the last moment
	waited      time.Duration // see Host.addWait
	retried     uint32        // see Host.Count
	givenUp     uint32        // as retried
	// responseTime is the smoothed response time of the host under Rules.Adaptive. It is 0 before
	// the first response.
	responseTime time.Duration
	estimator    *estimator // nil if the host has never complained
	urgent       list       // tickets in Start, in the order of their calls
	waiting      list       // tickets in Enter; the front one may be admitted
	queued       int        // the number of tickets in Enter
	leasing      *leasing   // nil if no Pacer was asked
	saved        *Kept      // what the Memory has; nil if that is only a time

	member  *member  // of the only host of the group; nil if its Rules do not let it share its pace
	members *members // nil if the group is the own group of a host
}

// gaps are the smallest gaps between two moments while a delay was in force. They are 0 if there
// were none.
type gaps struct {
	smallest  time.Duration
	overDelay float64 // the gap divided by the delay at that time
}

// The place of a request on the wire expires after placeTime or after placeDelays delays, whichever is
// longer, unless Rules.MaxInFlightPerHost is set. If places did not expire, a response that never
// ends would stop all requests to a host with a delay, because only one may be in flight there.
const (
	placeTime   = time.Minute
	placeDelays = 10
)

// startTime is how long a started request may take to reach the transport. A request that does not
// reach it was aborted by a later callback or sent to another host.
const startTime = time.Second

// ensurePaced returns l.paced. It creates it if it is nil.
func (l *limiter) ensurePaced() *paced {
	if l.paced == nil {
		l.paced = new(paced)
		l.isPaced.Store(true)
		l.drawShare()
	}
	return l.paced
}

// drawShare draws the share of Rules.Jitter for the gap after the last start.
func (l *limiter) drawShare() {
	if l.rules.Jitter > 0 && l.paced != nil {
		l.paced.share = float32(l.rules.random())
	}
}

// gapAfter returns the shortest time between the last start and the next one while delay is in
// force: the delay and, under Rules.Jitter, a random share of it.
func (l *limiter) gapAfter(delay time.Duration) time.Duration {
	if l.rules.Jitter == 0 || l.paced == nil {
		return delay
	}
	return longer(delay, l.rules.Jitter*float64(l.paced.share))
}

// usualGap returns the mean of the gaps while delay is in force, for estimates.
func (l *limiter) usualGap(delay time.Duration) time.Duration {
	if l.rules.Jitter == 0 {
		return delay
	}
	return longer(delay, l.rules.Jitter/2)
}

// longer returns a delay that is longer than delay by a share of it, which is at most 1. A delay of
// centuries, whose double overflows, does not change.
func longer(delay time.Duration, share float64) time.Duration {
	if delay > math.MaxInt64/2 {
		return delay
	}
	return delay + time.Duration(share*float64(delay))
}

// plain reports whether nothing has ever kept the requests of the host apart. If so, no request has
// to wait and the clock does not matter. plain needs no lock.
func (l *limiter) plain() bool { return !l.isPaced.Load() }

// delay returns the delay in force at now.
func (l *limiter) delay(now instant) time.Duration {
	if l.paced == nil { // true for most hosts
		return max(l.rules.MinDelay, 0)
	}
	return max(l.floor(now), l.backOff(now), l.adaptiveDelay())
}

// floor returns the part of the delay in force at now that does not depend on the responses of the
// host.
func (l *limiter) floor(now instant) time.Duration {
	if l.paced == nil { // true for most hosts
		return l.minDelay()
	}
	delay := max(l.limited(l.crawlDelay(now)), l.minDelay())
	if l.paced.hasSchedule {
		delay = max(delay, l.slot(now, now).delay)
	}
	return delay
}

// isScheduled reports whether the host has, or has had, a schedule.
func (l *limiter) isScheduled() bool { return l.paced != nil && l.paced.hasSchedule }

// ledDelay is the shortest delay for a host that gets only requests that other sites have led to.
const ledDelay = time.Second

// minDelay returns the delay that is in force even if the host requests none.
func (l *limiter) minDelay() time.Duration {
	if l.led {
		return max(l.rules.MinDelay, ledDelay)
	}
	return l.rules.MinDelay
}

// limited returns the part of a crawl delay that is obeyed: at most MaxCrawlDelay.
func (l *limiter) limited(written time.Duration) time.Duration {
	if most := l.rules.MaxCrawlDelay; most > 0 {
		return min(written, most)
	}
	return written
}

// backOff returns the delay that the complaints of the host cause at now.
func (l *limiter) backOff(now instant) time.Duration {
	if e := l.estimator(now); e != nil {
		return e.interval(now, l.mostBackOff())
	}
	return 0
}

// notBefore returns the end of the Retry-After that is in force at now, or 0 if there is none.
func (l *limiter) notBefore(now instant) instant {
	if l.paced == nil || l.paced.notBefore <= now {
		return 0
	}
	return l.paced.notBefore
}

// unpaced reports whether nothing keeps a request from starting, now or later.
func (l *limiter) unpaced(now instant) bool {
	if l.rules.Free {
		return true
	}
	if l.rules.MaxInFlightPerHost > 0 || l.rules.Adaptive > 0 || l.isScheduled() {
		return false
	}
	return l.delay(now) == 0 && l.notBefore(now) == 0 && !l.probing(now)
}

// ready reports whether the request of t may start at now. If it may not, wait is the time after
// which to ask again, or 0 to ask again when something has changed. ready changes nothing. t may be
// nil.
func (l *limiter) ready(now instant, t *Ticket) (wait time.Duration, ok bool) {
	if l.rules.Free {
		return 0, true
	}
	if until := l.notBefore(now); until != 0 {
		return until.since(now), false
	}
	if wait, full := l.full(now, l.delay(now)); full {
		return wait, false
	}
	if wait, reads := l.readsAnother(now, t); reads {
		return wait, false
	}
	wait = l.due(now, t)
	return wait, wait == 0
}

// due returns how long the request of t has to wait from now on, regardless of the requests in
// flight. t may be nil.
func (l *limiter) due(now instant, t *Ticket) time.Duration {
	if l.rules.Free {
		return 0
	}
	if l.isScheduled() {
		return l.dueBySchedule(now, t)
	}
	wait := l.notBefore(now).since(now)
	if delay := l.delay(now); delay > 0 && l.last != 0 {
		wait = max(wait, l.gapAfter(delay)-now.since(l.last))
	}
	return wait
}

// leastAway is the shortest wait for which a host is away.
const leastAway = time.Minute

// isAway reports whether the host has asked that no request starts for a long time: for more than
// leastAway and two gaps. Only its Retry-After and its Visit-time count. All other waits go on, because
// the requests before this one start one after another, or because the program has asked for the wait
// with Rules.Hours, a Pacer or a total rate.
func (l *limiter) isAway(now instant) bool {
	if l.rules.Free {
		return false
	}
	until := l.notBefore(now)
	slot := l.slot(now, now)
	if slot.closed && slot.closedBy == report.SourceVisitTime {
		until = max(until, slot.until)
	}
	gap := min(l.gapAfter(l.delay(now)), math.MaxInt64/4)
	return until.since(now) > leastAway+2*gap
}

// dueBySchedule is like due for a host that has had a schedule.
func (l *limiter) dueBySchedule(now instant, t *Ticket) time.Duration {
	from := max(now, l.notBefore(now))
	return l.nextSlot(now, from, l.last, t).since(now)
}

// expiry returns when the place of t expires if its request reaches the wire at now, or 0 if it
// does not expire.
func (l *limiter) expiry(now instant, t *Ticket) instant {
	if l.rules.MaxInFlightPerHost > 0 && !t.mayExpire {
		return 0
	}
	delay := min(l.delay(now), math.MaxInt64/placeDelays)
	return now.add(max(placeTime, placeDelays*delay))
}

// nextStart returns the instant before which no request may start, as known at now. If it is 0, a
// request may start as soon as there are not too many in flight.
func (l *limiter) nextStart(now instant) instant {
	wait := l.due(now, nil)
	if wait == 0 {
		return 0
	}
	return now.add(wait)
}

// full reports whether the largest number of requests is in flight. If so, wait is the time after
// which to ask again, or 0 to ask again when a request has ended.
func (l *limiter) full(now instant, delay time.Duration) (wait time.Duration, full bool) {
	most := l.mostInFlight(now, delay)
	probing := l.probing(now)
	if most == 0 && !probing {
		return 0, false
	}
	count := 0
	for t := range l.inFlight.all {
		if t.expired(now) {
			l.expire(now, t)
			continue
		}
		if left := t.expiry.since(now); left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
		count++
		if count == most || probing && t.incident == l.paced.estimator.incident {
			return wait, true
		}
	}
	return 0, false
}

// mostInFlight returns the largest number of requests in flight while a delay is in force at now. 0
// means any number.
func (l *limiter) mostInFlight(now instant, delay time.Duration) int {
	most := l.rules.MaxInFlightPerHost
	switch {
	case delay > 0 && l.rules.FromEnd, most == 0 && l.floor(now) > 0:
		return 1
	case most == 0 && l.rules.Adaptive > 0:
		return adaptiveInFlight(l.rules.Adaptive)
	}
	return most
}

// expire removes t, whose place has expired, from the requests in flight.
func (l *limiter) expire(now instant, t *Ticket) {
	if t.lease != nil {
		t.lease.overdue = t.state == started
	}
	if t.state == onWire && l.rules.FromEnd {
		l.last = max(l.last, t.expiry) // as if it had ended then
	}
	l.measure(now, t, false)
	l.remove(t)
}

// remove removes t, which has started, from the requests in flight. If t never reached the
// transport, its request is not counted.
func (l *limiter) remove(t *Ticket) {
	if t.state == started {
		t.host.Load().requests--
	}
	l.inFlight.remove(t)
	l.countTicket(t, -1)
	t.state = idle
}

// start starts t at now if it may start. Otherwise it returns the wait of ready.
func (l *limiter) start(now instant, t *Ticket) (wait time.Duration, ok bool) {
	wait, ok = l.ready(now, t)
	if !ok {
		return wait, false
	}
	delay := l.delay(now)
	t.at = now
	t.delay = delay
	t.state = onWire
	t.expiry = l.expiry(now, t)
	if !t.direct {
		t.state = started
		t.expiry = now.add(startTime)
	}
	t.incident = 0
	t.judged = false
	t.measured = false
	if l.paced != nil && l.paced.estimator != nil {
		e := l.ensureEstimator(now)
		e.countStart(now)
		t.incident = e.incident
	}
	l.inFlight.push(t)
	l.countTicket(t, 1)
	l.extend(now, t)
	t.host.Load().requests++
	t.gap = l.setMoment(now, delay)
	return 0, true
}

// sent moves the moment of t to now if t is in flight.
func (l *limiter) sent(now instant, t *Ticket) {
	if t.state < started || now <= t.at {
		return
	}
	l.extend(now, t)
	latest := t.at == l.moment
	if t.gap > 0 {
		t.gap += now.since(t.at)
	}
	t.at = now
	switch {
	case latest:
		l.moment = now
		l.last = max(l.last, now)
	case now > l.moment: // others have started and reached the wire since t started
		t.gap = l.setMoment(now, l.delay(now))
	}
}

// late reports whether the delay or the hours would not be kept if t, which has started, reached
// the wire at now, or whether its host is paused.
func (l *limiter) late(now instant, t *Ticket) bool {
	switch {
	case t.isPaused():
		return true
	case l.rules.Free:
		return false
	case l.isScheduled() && !t.renews && l.slot(now, now).closed:
		return true
	case t.delay == 0:
		return false
	case t.at != l.moment: // another request has reached the wire since t started
		return now.since(l.moment) < t.delay
	}
	return t.gap > 0 && t.gap+now.since(t.at) < t.delay
}

// setMoment makes now the last moment, while delay is in force. It returns the time since the previous
// moment, or 0 if there was none. The gap before the previous moment can no longer change, so setMoment
// adds it to the smallest gaps.
func (l *limiter) setMoment(now instant, delay time.Duration) (gap time.Duration) {
	previous := l.moment
	if previous != 0 {
		gap = now.since(previous)
	}
	l.moment = now
	l.last = max(l.last, now)
	if l.paced == nil && delay == 0 {
		return gap
	}
	p := l.ensurePaced()
	l.drawShare()
	p.gaps = p.gapsTo(previous)
	if p.unwritten {
		previous = p.before
	}
	p.unwritten = false
	p.before = 0
	p.required = 0
	if delay > 0 {
		p.before = previous
		if !l.rules.Free {
			p.required = delay
		}
	}
	return gap
}

// notSent records that the request of t was never written, so that no gap ends at its moment. If another
// request has started since then, the gap has already been counted.
func (l *limiter) notSent(t *Ticket) {
	if l.paced != nil && t.at == l.moment {
		l.paced.unwritten = true
	}
}

// gaps returns the smallest gaps so far.
func (l *limiter) gaps() gaps {
	if l.paced == nil {
		return gaps{}
	}
	return l.paced.gapsTo(l.moment)
}

// gapsTo returns the smallest gaps of p including the one that ends at last, the last moment.
func (p *paced) gapsTo(last instant) gaps {
	e := p.gaps
	if p.before == 0 || p.unwritten {
		return e
	}
	gap := last.since(p.before)
	if e.smallest == 0 || gap < e.smallest {
		e.smallest = gap
	}
	if p.required > 0 {
		e.overDelay = smaller(e.overDelay, float64(gap)/float64(p.required))
	}
	return e
}

// and returns the smaller values of g and o.
func (g gaps) and(o gaps) gaps {
	if g.smallest == 0 || o.smallest != 0 && o.smallest < g.smallest {
		g.smallest = o.smallest
	}
	g.overDelay = smaller(g.overDelay, o.overDelay)
	return g
}

// smaller returns the smaller of two numbers. It ignores a number that is 0.
func smaller(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// accept records that the request of t got a response that is not a complaint. It reports whether
// other requests have waited for this response.
func (l *limiter) accept(now instant, t *Ticket) bool {
	if t.state != onWire || t.judged || l.paced == nil || l.paced.estimator == nil {
		return false
	}
	t.judged = true
	return l.paced.estimator.accept(now, t)
}

// finish takes t, which has started, off the wire.
func (l *limiter) finish(now instant, t *Ticket) {
	l.measure(now, t, false)
	l.accept(now, t)
	l.remove(t)
	if l.rules.FromEnd {
		l.last = max(l.last, now)
		l.extend(now, t)
	}
}

// isForgettable reports whether the next request would start at the same time if the limiter were
// forgotten at now. A host that only Rules.Hours close can be forgotten, because the Host that
// replaces it has the same Rules.
func (l *limiter) isForgettable(now instant) bool {
	ignoresHours := Ticket{renews: l.paced != nil && len(l.paced.crawlDelays) == 0}
	_, ok := l.ready(now, &ignoresHours)
	return ok && !l.busy(now) && l.estimator(now) == nil
}

// busy reports whether a request is in flight. A request that did not reach the wire in time is
// not.
func (l *limiter) busy(now instant) bool {
	for t := range l.inFlight.all {
		if t.state == onWire || !t.expired(now) {
			return true
		}
	}
	return false
}
