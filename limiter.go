package collyrobots

import (
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// A limiter decides when one host may be asked again. It only decides: the time is an argument, waiting is the turnstile's, which also
// holds its lock around every call.
//
// The delay in force is the largest of what the host's robots.txt asks for (under http and under https: one host, one pace),
// MinDelay, and the back-off. A Retry-After holds everything until its time has come.
type limiter struct {
	rules *pacing

	wishes    [2]wish              // of robots.txt under http and under https
	backOff   backOff              // after 429 and 503
	notBefore time.Time            // Retry-After
	delay     time.Duration        // in force
	bucket    *rate.Limiter        // one token each delay, counted from the last start (or end); nil: no delay
	last      time.Time            // what the delay counts from
	started   time.Time            // the last start
	flights   map[*url.URL]*flight // on the wire now, by their request's URL
	stats     HostStats
}

// pacing is what the options say about all hosts.
type pacing struct {
	minDelay time.Duration
	fromEnd  bool // the delay counts from the end of a response
	inFlight int  // most requests of a host at once; 0: one while a delay is in force
	free     bool // a dry run: everything may start, nothing is waited for
}

// A wish is the crawl delay of one robots.txt, as written and as it is to be kept.
type wish struct{ written, kept time.Duration }

// A flight is a request that has started and not ended.
type flight struct {
	url    url.URL // as judged
	start  time.Time
	onWire bool // seen by the transport, which will see its end too
}

// launchLease is how long a started request may take to reach the transport. One that does not get there was aborted by a
// later OnRequestHeaders callback, or sent to another host.
const launchLease = time.Second

// ask notes the crawl delay that robots.txt of one scheme asks for. It tells whether that is new.
func (l *limiter) ask(now time.Time, scheme string, w wish) bool {
	known := &l.wishes[0]
	if scheme == "https" {
		known = &l.wishes[1]
	}
	if *known == w {
		return false
	}
	*known = w
	l.stats.CrawlDelay = max(l.wishes[0].written, l.wishes[1].written)
	l.settle(now)
	return true
}

// settle puts the delay in force that holds at now.
func (l *limiter) settle(now time.Time) {
	if !l.notBefore.After(now) {
		l.notBefore = time.Time{}
	}
	delay := max(l.wishes[0].kept, l.wishes[1].kept, l.rules.minDelay, l.backOff.at(now))
	if delay != l.delay {
		l.delay = delay
		l.drain()
	}
}

// drain makes the bucket fill from the last start or end on. A fresh one is full, which would let the first page follow
// robots.txt at once.
func (l *limiter) drain() {
	if l.bucket = nil; l.delay > 0 {
		l.bucket = rate.NewLimiter(rate.Every(l.delay), 1)
		if !l.last.IsZero() {
			l.bucket.AllowN(l.last, 1)
		}
	}
}

// ready tells whether a request may start at now, and if not, after what wait to ask again; 0: when
// something has changed. It takes nothing.
func (l *limiter) ready(now time.Time) (wait time.Duration, ok bool) {
	l.settle(now)
	if l.rules.free {
		return 0, true
	}
	if wait = l.notBefore.Sub(now); wait > 0 {
		return wait, false
	}
	if wait, full := l.full(now); full {
		return wait, false
	}
	if l.bucket == nil {
		return 0, true
	}
	r := l.bucket.ReserveN(now, 1)
	defer r.CancelAt(now)
	wait = r.DelayFrom(now)
	return wait, wait == 0
}

// unpaced tells whether nothing keeps a request from starting, now or later.
func (l *limiter) unpaced() bool {
	return l.rules.free || l.bucket == nil && l.notBefore.IsZero() && l.rules.inFlight == 0
}

// full tells whether as many requests are in flight as may be, and after what wait to ask again; 0: when one has ended.
func (l *limiter) full(now time.Time) (wait time.Duration, full bool) {
	most := l.rules.inFlight
	if l.delay > 0 && (most == 0 || l.rules.fromEnd) {
		most = 1
	}
	if most == 0 || len(l.flights) < most {
		return 0, false
	}
	for u, f := range l.flights {
		left := f.start.Add(launchLease).Sub(now)
		switch {
		case f.onWire:
		case left <= 0:
			delete(l.flights, u)
			return 0, false
		case wait == 0 || left < wait:
			wait = left
		}
	}
	return wait, true
}

// start lets the request for u go at now, if it may: directly on the wire, or through Colly, which may still abort it. In the
// first case the caller must see to it that end follows.
func (l *limiter) start(now time.Time, u *url.URL, onWire bool) bool {
	if _, ok := l.ready(now); !ok || l.bucket != nil && !l.bucket.AllowN(now, 1) && !l.rules.free {
		return false
	}
	if gap := now.Sub(l.started); l.bucket != nil && !l.started.IsZero() && (l.stats.MinGap == 0 || gap < l.stats.MinGap) {
		l.stats.MinGap = gap
	}
	l.last, l.started = now, now
	l.stats.Requests++
	if l.flights == nil {
		l.flights = make(map[*url.URL]*flight)
	}
	l.flights[u] = &flight{*u, now, onWire}
	return true
}

// end notes at now that the request for u is no longer on the wire. It tells whether it was.
func (l *limiter) end(now time.Time, u *url.URL) bool {
	if _, ok := l.flights[u]; !ok {
		return false
	}
	delete(l.flights, u)
	if l.rules.fromEnd {
		l.last = now
		l.drain()
	}
	return true
}

// maxRetryAfter bounds what one Retry-After can do. The next answer may ask for as much again.
const maxRetryAfter = time.Hour

// throttle takes an answer with status 429 or 503 to heart. A Retry-After moves the next start; without one the back-off
// grows. It tells whether anything came of it: the answers to requests that were under way when the host first complained are
// one incident. jitter is a random number in [0, 1).
func (l *limiter) throttle(now time.Time, u *url.URL, header http.Header, jitter float64) bool {
	start := now
	if f := l.flights[u]; f != nil {
		start = f.start
	}
	if after := min(policy.RetryAfter(header, now), maxRetryAfter); after > 0 {
		until := now.Add(after)
		if !until.After(l.notBefore) {
			return false
		}
		l.notBefore = until
	} else if !l.backOff.grow(now, start, jitter) {
		return false
	}
	l.stats.Throttled++
	l.settle(now)
	return true
}

// idle tells whether forgetting the host at now changes nothing about when it is asked next.
func (l *limiter) idle(now time.Time) bool {
	_, ok := l.ready(now)
	return ok && len(l.flights) == 0 && l.backOff.step == 0
}

// A backOff is a delay that doubles with each incident, from minBackOff to maxBackOff, and halves after each quiet time of
// ten times its length.
type backOff struct {
	step     time.Duration // 0: none
	jitter   time.Duration // up to half a step more, so that a fleet does not come back as one
	since    time.Time     // of the step
	incident time.Time     // when the last one was counted
}

const (
	minBackOff = time.Second
	maxBackOff = 5 * time.Minute
)

// at returns the back-off that is left at now.
func (b *backOff) at(now time.Time) time.Duration {
	for b.step > 0 && now.Sub(b.since) >= 10*b.step {
		b.since = b.since.Add(10 * b.step)
		b.step /= 2
		b.jitter /= 2
		if b.step < minBackOff {
			b.step, b.jitter = 0, 0
		}
	}
	return b.step + b.jitter
}

// grow counts an incident seen at now by a request that had started at start, unless it is part of the last one.
func (b *backOff) grow(now, start time.Time, jitter float64) bool {
	if start.Before(b.incident) {
		return false
	}
	b.at(now)
	b.step = min(max(2*b.step, minBackOff), maxBackOff)
	b.jitter = time.Duration(jitter * float64(b.step/2))
	b.since, b.incident = now, now
	return true
}
