package pace

import (
	"context"
	"math"
	"sync"
	"time"
)

// Rules are what holds for a host whatever it says itself. They must not change once they are
// given to New's caller. The zero Rules let everything start at once until robots.txt or a 429 says
// otherwise.
type Rules struct {
	MinDelay    time.Duration // least delay
	MaxDelay    time.Duration // a longer crawl delay counts as this; 0: every delay is kept
	MaxInFlight int           // most requests at once; 0: one while a crawl delay or MinDelay is in force, else no limit
	FromEnd     bool          // the delay counts from the end of a response; one request at once
	Free        bool          // a dry run: everything may start at once, and is counted

	// MaxBackOff is the longest delay that 429 and 503 cause. It does not shorten a Retry-After.
	// Zero: five minutes; less: none, not even after a Retry-After has passed.
	MaxBackOff time.Duration
}

// A Host lets the requests to one host start, one after the other, when it may be asked. Get one
// from Hosts.At; all methods may be called from any goroutine. A Host may be kept: if it is
// forgotten meanwhile, its methods act on the one that has taken its place.
//
// Every request that waits is a goroutine that exists anyway, and only the one whose turn comes
// next sleeps on a timer.
type Host struct {
	mu    sync.Mutex
	hosts *Hosts
	name  string
	limiter
	pages, denied int
	gone          bool   // forgotten: another Host has this name
	told          uint8  // see First
	status        uint16 // of the last answer
	asked         int32  // when At last returned it, in seconds; guarded by its shard's lock
	next          *Host  // in its shard's ring; guarded by the same
}

// Stats is what happened with one host. Sums of several hosts have the counts only.
type Stats struct {
	Host      string
	Requests  int // started, except those that were NotSent: pages, redirect hops, robots.txt, sitemaps
	Throttled int // times the host asked for less: each incident of 429 or 503 once
	Pages     int // as told to Count
	Denied    int // as told to Count
	Waiting   int // requests that wait in Enter now

	CrawlDelay time.Duration // what robots.txt asks for as written, the most of its sources
	BackOff    time.Duration // the delay that 429 and 503 have brought, as far as not yet forgiven
	NotBefore  time.Time     // until when the last Retry-After holds everything; zero: nothing is held
	NextStart  time.Time     // before when no request starts; zero: one may, unless too many are in flight
	// Delay is in force: the largest of BackOff, CrawlDelay within MaxDelay, and MinDelay. It is at
	// least a second, with the cause MinDelay, for a host that gets only requests to which other
	// sites have led.
	Delay time.Duration
	Cause Cause // of NextStart, else of Delay
	Line  int   // of robots.txt, if that is the Cause
	// MinGap is the smallest time between the moments at which two requests reached the wire, as
	// far as a delay was in force. Zero: there were no two.
	MinGap time.Duration
	// GapOverDelay is the smallest such time divided by the delay in force when the second one
	// started. Zero: there were no two, or nothing is kept (Rules.Free).
	GapOverDelay float64

	Waited time.Duration // by all requests together, in Enter and Start
	Status int           // of the last answer
}

// add sums the counts. GapOverDelay becomes the smaller of both.
func (s *Stats) add(o Stats) {
	s.Requests += o.Requests
	s.Throttled += o.Throttled
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Waited += o.Waited
	s.GapOverDelay = smaller(s.GapOverDelay, o.GapOverDelay)
}

// minLease is how long an admitted ticket is kept for a request that has not started, where the
// delay is shorter still.
const minLease = 100 * time.Millisecond

// Name returns the name that At was called with.
func (h *Host) Name() string { return h.name }

// Rules returns what New's func said of the host.
func (h *Host) Rules() *Rules { return h.rules }

// SetCrawlDelay records the crawl delay that a robots.txt of the host asks for, 0 for none, and
// reports whether that has changed. It holds at once for the requests that wait. The delay in force
// is the longest that any source asks for.
//
// The file has to be read again at until. A delay holds for longer: for one delay, at least a minute,
// after until and after each request that obeys it (see Obey), and as long as such a request waits
// or is on the wire. Then it lapses, because its source is no longer in use. With the zero time it
// does not lapse.
func (h *Host) SetCrawlDelay(now time.Time, source Source, written time.Duration, until time.Time) (changed bool) {
	if written <= 0 && h.plain() {
		return false
	}
	h = h.lock()
	defer h.mu.Unlock()
	lapses := instant(math.MaxInt64)
	if !until.IsZero() {
		lapses = h.hosts.instant(until)
	}
	if changed = h.setCrawlDelay(h.hosts.instant(now), source, written, lapses); changed {
		h.lookAgain()
	}
	return changed
}

// Obey says that the request of t obeys the crawl delay of a source: that does not lapse while t
// waits, or is on the wire.
func (h *Host) Obey(t *Ticket, source Source) {
	if h.plain() {
		return
	}
	h = h.lock()
	defer h.mu.Unlock()
	t.obeyed = nil
	if h.paced != nil {
		t.obeyed = h.paced.crawlDelayOf(&source)
	}
}

// Delay returns the delay in force at now.
func (h *Host) Delay(now time.Time) time.Duration {
	if h.plain() {
		return 0
	}
	h = h.lock()
	defer h.mu.Unlock()
	return h.delay(h.hosts.instant(now))
}

// Skip says that the turn of t, which has passed Enter, has come, and that its request is not sent.
// The next one starts a delay later, as if it were. End must follow.
func (h *Host) Skip(now time.Time, t *Ticket) {
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	if t != nil && t.state == admitted && h.due(at) == 0 {
		h.last = max(h.last, at)
	}
}

// Plain reports whether nothing has ever kept the requests of the host apart: no delay, no limit,
// no complaint. It costs next to nothing.
func (h *Host) Plain() bool { return h.plain() }

// AskedBefore says that somebody has asked the host before the registry was made, nobody knows
// when: its first request starts no sooner than one delay after that.
func (h *Host) AskedBefore() {
	h = h.lock()
	defer h.mu.Unlock()
	h.last = max(h.last, 1)
}

// Enter is the first stage, for a request that holds nothing yet: it waits until the host's one
// undispatched ticket is free and the host may be asked, and takes the ticket, but not the time.
// Start follows; until then, but at most for one delay, no other ticket of the host gets in. Where
// there is nothing to wait for there are no tickets. If t has passed Enter already and has not lost
// its place, it keeps that and only waits for the time.
//
// The error is ctx's cause, Close's, or ErrEnded; t then holds nothing.
func (h *Host) Enter(ctx context.Context, t *Ticket) error {
	h, err := h.admitting(ctx, t)
	if err != nil {
		return err
	}
	if t.state == admitted {
		t.state = waiting
		return h.await(ctx, t)
	}
	h.leave(t)
	h.visit()
	if !h.shared() && (h.paced == nil && h.unpaced(0) || h.unpaced(h.hosts.now())) {
		h.mu.Unlock()
		return nil
	}
	p := h.slowed()
	t.state = waiting
	p.waiting.push(t)
	p.queued++
	return h.await(ctx, t)
}

// MayEnter reports whether there is no need for t to Enter: nothing has ever kept the requests of
// the host apart. It costs less.
func (h *Host) MayEnter(t *Ticket) bool {
	return h.plain() && t.host.Load() == nil && h.hosts.closed() == nil
}

// Start is the second stage: it waits until the request may go on the wire, and that is the moment
// which counts for the delay, until Sent names a better one. Requests are served in the order of
// their calls, ahead of all in Enter. With direct the caller sends the request now, and End will
// follow; else somebody may still keep it from being sent, and its place lapses after a second if
// OnWire is not called.
//
// The error is ctx's cause, Close's, or ErrEnded; t then holds nothing.
func (h *Host) Start(ctx context.Context, t *Ticket, direct bool) error {
	h, err := h.admitting(ctx, t)
	if err != nil {
		return err
	}
	h.visit()
	return h.startOrWait(ctx, t, direct)
}

// StartLed is like [Host.StartIf] for a request that another site has led to. As long as a host gets
// no other requests, these start at least a second apart.
func (h *Host) StartLed(ctx context.Context, t *Ticket, wanted func() error) error {
	t.wanted = wanted
	h, err := h.admitting(ctx, t)
	if err != nil {
		return err
	}
	if !h.visited {
		h.led = true
		h.slowed()
	}
	return h.startOrWait(ctx, t, true)
}

// visit notes that a request came which no other site has led to. The lock is held.
func (h *Host) visit() {
	h.visited = true
	if h.led {
		h.led = false
		h.lookAgain()
	}
}

// startOrWait is Start with the lock held. It returns without the lock.
func (h *Host) startOrWait(ctx context.Context, t *Ticket, direct bool) error {
	if _, ok := h.startNow(h.hosts.now(), t, direct); ok {
		h.unlock()
		return nil
	}
	t.state = urgent
	h.slowed().urgent.push(t)
	return h.await(ctx, t)
}

// StartNow is Start for a request that has to wait for nothing, and for a caller with a clock of
// its own. It reports whether t has started at now; if not, t holds nothing but perhaps a lease,
// and wait is after what time to try again, unless a request of the host ends before; 0: nothing
// but that helps.
func (h *Host) StartNow(now time.Time, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	h, err := h.admitting(context.Background(), t)
	if err != nil {
		return 0, false
	}
	defer h.unlock()
	h.visit()
	return h.startNow(h.hosts.instant(now), t, direct)
}

// startNow is StartNow with the lock held.
func (h *Host) startNow(now instant, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	lent := t.keep()
	h.leave(t)
	t.held, t.direct = lent, direct
	if h.paced != nil && h.paced.urgent.front != nil || !h.claim(now, t) {
		return 0, false
	}
	if wait, ok = h.start(now, t); ok {
		h.dispatched(t)
		h.lookAgain()
	}
	return wait, ok
}

// admitting locks the host that stands for h, with t at it, unless ctx or everything has ended.
func (h *Host) admitting(ctx context.Context, t *Ticket) (*Host, error) {
	err := h.hosts.closed()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.End()
		return nil, err
	}
	h = h.lock()
	if at := t.host.Load(); at != h {
		if at != nil {
			h.mu.Unlock()
			t.End()
			h = h.lock()
		}
		t.host.Store(h)
	}
	return h, nil
}

// lock locks and returns the host that stands for h: h itself, unless it was forgotten.
func (h *Host) lock() *Host {
	for {
		h.mu.Lock()
		if !h.gone {
			return h
		}
		h.mu.Unlock()
		h = h.hosts.At(time.Now(), h.name)
	}
}

// await returns when t has had its turn, or with an error and t out of its list. It is called with
// the lock held and returns without.
func (h *Host) await(ctx context.Context, t *Ticket) error {
	began := h.hosts.now()
	defer func() {
		h.paced.waited += h.hosts.now().since(began)
		h.unlock()
	}()
	for state := t.state; ; {
		now := h.hosts.now()
		var err error
		switch d, ok := h.turn(now, t); {
		case ok && h.claim(now, t):
			h.take(now, t)
			return nil
		case ok && h.mayAsk():
			err = h.acquire(ctx, t)
		default:
			err = h.sleep(ctx, t, d)
		}
		if t.state != state {
			return ErrEnded
		}
		if err != nil {
			h.leave(t)
			return err
		}
	}
}

// sleep is Ticket.sleep, with the lock given up meanwhile.
func (h *Host) sleep(ctx context.Context, t *Ticket, d time.Duration) error {
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	h.yield(t)
	h.unlock()
	defer h.mu.Lock()
	return t.sleep(ctx, h.hosts, d)
}

// turn reports whether it is t's turn to take what it waits for. If not, it returns after what time
// to look again; 0: when woken.
func (h *Host) turn(now instant, t *Ticket) (time.Duration, bool) {
	p := h.paced
	if t.state == urgent {
		if p.urgent.front != t {
			return 0, false
		}
		return h.ready(now)
	}
	if front := p.waiting.front; front != t && front.next == t && front.state == admitted {
		if !front.lapsed(now) {
			return front.lease.since(now), false
		}
		// Its request was let in and never started: a later callback aborted it, or it still waits
		// for something else. In that case it will start without a ticket, at the right time all
		// the same.
		h.leave(front)
	}
	if p.waiting.front != t || p.urgent.front != nil {
		return 0, false
	}
	return h.ready(now)
}

// take gives t what it waits for: its turn has come.
func (h *Host) take(now instant, t *Ticket) {
	switch {
	case t.state == urgent:
		h.paced.urgent.remove(t)
		h.start(now, t)
		h.dispatched(t)
	case t.held != nil && t.held.until == 0 && h.unpaced(now):
		h.paced.waiting.remove(t) // nobody waits for it, here or elsewhere
		h.paced.queued--
		t.state = idle
	default:
		d := max(h.delay(now), minLease)
		t.state, t.lease = admitted, now.add(d)
		if t.held != nil {
			h.lapseAfter(d, t.held)
		}
	}
	h.lookAgain()
}

// leave takes t out of the list it is in. After it t holds nothing.
func (h *Host) leave(t *Ticket) {
	if t.held != nil {
		h.free(t)
	}
	switch t.state {
	case idle:
		return
	case waiting, admitted:
		h.paced.waiting.remove(t)
		h.paced.queued--
		t.state = idle
	case urgent:
		h.paced.urgent.remove(t)
		t.state = idle
	default:
		h.end(h.hosts.now, t)
	}
	if h.paced != nil && h.asksFor(t) {
		h.paced.sharing.cancel(ErrEnded)
	}
	t.look() // its goroutine finds that it was ended
	h.lookAgain()
}

// lookAgain wakes those whose turn it may be now: the first in Start, else the first two in Enter,
// the second of whom watches the ticket of the first.
func (h *Host) lookAgain() {
	switch p := h.paced; {
	case p == nil:
	case p.urgent.front != nil:
		p.urgent.front.look()
	default:
		p.waiting.front.look()
		p.waiting.second().look()
	}
}

// Answered says that the host has answered the request of t with a status, and not with a complaint
// (see SlowDown and Unavailable); pages is for Count. End says the same of the request, but later,
// and after a complaint everybody waits until one is answered. It reports whether everybody has
// waited for this answer: the host has recovered.
func (h *Host) Answered(t *Ticket, status, pages int) (recovered bool) {
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	h.status = uint16(status)
	h.pages += pages
	if t == nil {
		return false
	}
	if recovered = h.accepted(h.hosts.now, t); recovered {
		h.lookAgain()
	}
	return recovered
}

// SlowDown takes note of a complaint about the request of t, which may be nil: an answer with
// status 429, or 503 with a Retry-After, given as retryAfter; 0: it has none. Call it before t
// ends. From then on one request goes ahead, after retryAfter, and when that is accepted the
// others follow at a rate that is a little below what the host had accepted before, and slowly
// rises. A retryAfter counts as an hour at the most.
//
// It reports whether this is news: the complaints about requests that were under way when the host
// first complained are one incident.
func (h *Host) SlowDown(now time.Time, t *Ticket, retryAfter time.Duration) bool {
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	slower := h.slowDown(h.hosts.instant(now), t, retryAfter, h.hosts.random)
	h.lookAgain()
	return slower
}

// Unavailable is SlowDown for an answer with status 503 and no Retry-After, which is the page's own
// trouble as likely as the host's. It is a complaint if there were several with hardly another
// answer between them, or if everybody waits for this answer.
func (h *Host) Unavailable(now time.Time, t *Ticket) bool {
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	slower := h.unavailable(h.hosts.instant(now), t, h.hosts.random)
	h.lookAgain()
	return slower
}

// lockFor is lock. It also returns t if that was last with this host, else nil.
func (h *Host) lockFor(t *Ticket) (*Host, *Ticket) {
	if h = h.lock(); t == nil || t.host.Load() != h {
		return h, nil
	}
	return h, t
}

// BusyFor reports whether it is already certain that the host cannot be asked within d.
func (h *Host) BusyFor(d time.Duration) bool {
	h = h.lock()
	defer h.mu.Unlock()
	return h.due(h.hosts.now()) > d
}

// StartsWithin reports whether a request may start within d of now, as far as is known.
func (h *Host) StartsWithin(now time.Time, d time.Duration) bool {
	if h.plain() {
		return true
	}
	h = h.lock()
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	return h.nextStart(at).since(at) <= d
}

// Count adds to the counts that Stats has of pages that came and of requests that were denied.
func (h *Host) Count(pages, denied int) {
	h = h.lock()
	defer h.mu.Unlock()
	h.pages += pages
	h.denied += denied
}

// SetStatus notes the status of an answer with a complaint, for Stats.
func (h *Host) SetStatus(status int) {
	h = h.lock()
	defer h.mu.Unlock()
	h.status = uint16(status)
}

// First reports whether it is called for the first time with what, a bit of the caller's choice: so
// what is to be said once of each host needs no memory elsewhere.
func (h *Host) First(what uint8) bool {
	h = h.lock()
	defer h.mu.Unlock()
	first := h.told&what == 0
	h.told |= what
	return first
}

// Told reports whether First was called with what.
func (h *Host) Told(what uint8) bool {
	h = h.lock()
	defer h.mu.Unlock()
	return h.told&what != 0
}

// Stats returns the counts so far, and the parts of the delay as they are at now.
func (h *Host) Stats(now time.Time) Stats {
	h = h.lock()
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	s := h.counts()
	s.Host, s.MinGap, s.Status = h.name, h.gaps().least, int(h.status)
	s.Cause, s.Line = h.nextCause(at)
	s.CrawlDelay, s.BackOff, s.Delay = h.crawlDelay(at), h.backOff(at), h.delay(at)
	if until := h.notBefore(at); until != 0 {
		s.NotBefore = h.hosts.time(until)
	}
	if next := h.nextStart(at); next != 0 {
		s.NextStart = h.hosts.time(next)
	}
	if h.paced != nil {
		s.Waiting = h.paced.queued
		if front := h.paced.waiting.front; front != nil && front.state == admitted && front.lapsed(at) {
			s.Waiting-- // it was let in and never started
		}
	}
	return s
}

// counts returns what can be summed.
func (h *Host) counts() Stats {
	s := Stats{Requests: h.requests, Pages: h.pages, Denied: h.denied, GapOverDelay: h.gaps().overDelay}
	if h.paced != nil {
		s.Throttled, s.Waited = h.paced.throttled, h.paced.waited
	}
	return s
}

// forget makes h gone if forgetting it at now changes nothing, and reports whether it did.
func (h *Host) forget(now instant) bool {
	if !h.mu.TryLock() {
		return false // somebody is there
	}
	defer h.mu.Unlock()
	h.gone = h.idle(now) && (h.paced == nil || h.deserted(now))
	if h.gone {
		for t := range h.inFlight.all {
			h.lapse(t) // if it still comes to the transport, it has to start anew, with who comes after h
		}
	}
	return h.gone
}

// deserted reports whether nobody waits. A ticket that was let in and never started is nobody, but
// for one with a lease: that is given back soon.
func (h *Host) deserted(now instant) bool {
	if front := h.paced.waiting.front; front != nil && front.state == admitted && front.lapsed(now) && front.held == nil {
		h.leave(front)
	}
	return h.paced.waiting.front == nil && h.paced.urgent.front == nil
}
