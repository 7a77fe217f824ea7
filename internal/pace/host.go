package pace

import (
	"context"
	"sync"
	"time"
)

// A Host schedules the requests to one host. Get one from Hosts.At. All methods may be called from
// any goroutine. A Host may be kept: if the registry forgets it, its methods act on the Host that
// has replaced it.
//
// Each request waits in the goroutine of its caller. Only the request whose turn comes next sleeps
// on a timer.
type Host struct {
	// mu protects the fields below it, except hosts, name, lastUse and nextInRing, and the tickets of the host.
	// If the host belongs to a group, the lock of the group protects its pace. See lockPace and lockSelf.
	mu    sync.Mutex
	hosts *Hosts
	name  string
	limiter
	pages      uint32
	denied     uint32
	refusals   uint32
	unchanged  uint32
	lastUse    int32  // when At last returned it, in seconds; guarded by the lock of its shard
	marks      uint16 // the bits that were passed to Mark
	status     uint16 // of the last response
	nextInRing *Host  // the next host in the ring of its shard; guarded by the same lock
}

// Name returns the name that At was called with.
func (h *Host) Name() string { return h.name }

// Rules returns the settings of the host, as returned by the func passed to New.
func (h *Host) Rules() *Rules { return h.rules }

// SetCrawlDelay records the crawl delay that a robots.txt of the host requests, or 0 for none, and
// reports whether it has changed. The new delay also applies to requests that already wait. The
// delay in force is the longest that any source requests.
//
// until is when the file has to be read again. The delay holds longer: for one delay, but at least
// a minute, after until and after each request that obeys it (see Obey), and as long as such a
// request waits or is on the wire. Then it expires, because its source is no longer in use. If
// until is the zero time, the delay does not expire.
func (h *Host) SetCrawlDelay(now time.Time, source Source, written time.Duration, until time.Time) (changed bool) {
	if written <= 0 && h.plain() {
		return false
	}
	h, self := h.lockPace()
	defer h.mu.Unlock()
	changed = h.setCrawlDelay(h.hosts.instant(now), source.of(self), written, h.hosts.instantOrNever(until))
	if changed {
		h.wakeNext()
	}
	return changed
}

// Obey records that the request of t obeys the crawl delay of a source. That delay does not expire
// while t waits or is on the wire.
func (h *Host) Obey(t *Ticket, source Source) {
	if h.plain() {
		return
	}
	h, self := h.lockPace()
	defer h.mu.Unlock()
	t.obeyed = nil
	if h.paced != nil {
		source = source.of(self)
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

// Skip records that t, which has passed Enter, has had its turn but its request is not sent. The
// next request starts one delay later, as if this one had been sent. The caller must call End
// afterwards.
func (h *Host) Skip(now time.Time, t *Ticket) {
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	if t != nil && t.state == admitted && h.due(at, nil) == 0 {
		h.last = max(h.last, at)
	}
}

// Plain reports whether no delay, limit or complaint has ever kept the requests of the host apart.
// It takes no lock.
func (h *Host) Plain() bool { return h.plain() }

// AskedBefore records that the host may have got a request before the registry was made, at an
// unknown time. The first request therefore starts one delay after the registry was made at the
// earliest.
func (h *Host) AskedBefore() {
	h = h.lock()
	defer h.mu.Unlock()
	h.last = max(h.last, 1)
}

// Enter is the first stage, for a request that holds nothing yet. It waits until no other request
// of the host has the turn and a request may start. Then t has the turn, but not the time of the
// start. No other request of the host passes Enter until the caller calls Start, for at most one
// delay. If nothing limits the host, Enter returns at once, and t does not get the turn. If t has
// already passed Enter and still has the turn, it keeps the turn and only waits for the time.
//
// On error, t holds nothing. The error is the cause of ctx, the error passed to Close, or ErrEnded.
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
	if !h.asksPacer() && (h.paced == nil && h.unpaced(0) || h.unpaced(h.hosts.now())) {
		h.mu.Unlock()
		return nil
	}
	p := h.ensurePaced()
	t.state = waiting
	p.enqueue(t, h.memberOf(t))
	return h.await(ctx, t)
}

// MayEnter reports whether Enter can be omitted for t, because nothing has ever kept the requests
// of the host apart. It costs less than Enter.
func (h *Host) MayEnter(t *Ticket) bool {
	return h.plain() && t.host.Load() == nil && h.hosts.closeError() == nil
}

// Start is the second stage. It waits until the request may go on the wire. The delay counts from
// the moment when Start returns, until Sent reports a better one. Requests are served in the order
// of their calls, before all requests in Enter. If direct is true, the caller sends the request now
// and calls End later. Otherwise something may still keep the request from being sent, and its
// place expires after a second if OnWire is not called.
//
// On error, t holds nothing. The error is the cause of ctx, the error passed to Close, or ErrEnded.
func (h *Host) Start(ctx context.Context, t *Ticket, direct bool) error {
	h, err := h.admitting(ctx, t)
	if err != nil {
		return err
	}
	h.visit()
	return h.startOrWait(ctx, t, direct)
}

// StartLed is like [Host.StartIf] for a request that another site has led to, for example by a
// redirect. As long as a host gets no other requests, these start at least one second apart.
func (h *Host) StartLed(ctx context.Context, t *Ticket, wanted func() error) error {
	t.wanted = wanted
	h, err := h.admitting(ctx, t)
	if err != nil {
		return err
	}
	if !h.visited {
		h.led = true
		h.ensurePaced()
	}
	return h.startOrWait(ctx, t, true)
}

// StartNow is like Start but does not wait, for a caller with its own clock. It reports whether t
// has started at now. If not, t holds nothing except possibly a lease, and wait is the time after
// which the caller should try again, or earlier if a request of the host ends. If wait is 0, only
// the end of a request helps.
func (h *Host) StartNow(now time.Time, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	h, err := h.admitting(context.Background(), t)
	if err != nil {
		return 0, false
	}
	defer h.unlock()
	h.visit()
	return h.startNow(h.hosts.instant(now), t, direct)
}

// lock locks and returns the Host that keeps the pace of h: h itself, the group of h, or if h was
// forgotten, that of the current Host of its name.
func (h *Host) lock() *Host {
	keeper, _ := h.lockPace()
	return keeper
}

// lockPace is like lock. It also returns the current Host of h's name, which differs from the
// keeper if that is a group.
func (h *Host) lockPace() (keeper, self *Host) {
	for {
		h.mu.Lock()
		if !h.gone {
			return h, h
		}
		keeper = h.lockGroup()
		if keeper != h {
			return keeper, h
		}
		h.mu.Unlock()
		h = h.hosts.At(time.Now(), h.name)
	}
}

// lockFor is like lock. It also returns t if t was last used with this host, and nil otherwise.
func (h *Host) lockFor(t *Ticket) (*Host, *Ticket) {
	h, self := h.lockPace()
	if t == nil || t.host.Load() != self {
		return h, nil
	}
	return h, t
}

// lockSelf locks and returns the current Host of h's name, even if a group keeps its pace. Its lock
// guards the counts and the marks that only Host has.
func (h *Host) lockSelf() *Host {
	for {
		h.mu.Lock()
		if !h.gone || h.groupOf() != nil {
			return h
		}
		h.mu.Unlock()
		h = h.hosts.At(time.Now(), h.name)
	}
}

// Answered records that the host has answered the request of t with a status, and that the response
// is not a complaint (see SlowDown and Unavailable). pages is added to the count of pages, as by
// Count.
//
// End also records this, but later; after a complaint all other requests wait for the first
// accepted response. Answered reports whether t was that response: the host has recovered.
func (h *Host) Answered(t *Ticket, status, pages int) (recovered bool) {
	if h.rules.Shares { // the counts have another lock
		h.Count(pages, 0)
		h.SetStatus(status)
	}
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	if !h.rules.Shares {
		h.status = uint16(status)
		h.pages += uint32(pages)
	}
	if t == nil {
		return false
	}
	now := h.hosts.now()
	measured := h.measure(now, t, succeeded(status))
	recovered = h.accept(now, t)
	if recovered || measured {
		h.wakeNext()
	}
	return recovered
}

// SlowDown records a complaint, which is a response with status 429, or 503 with a Retry-After. t
// is the ticket of the request and may be nil. retryAfter is the Retry-After of the response, or 0
// if it has none; it counts as one hour at most. SlowDown must be called before t ends.
//
// After retryAfter, one request goes first. When the host accepts it, the other requests follow, at
// a rate that is slightly below the rate that the host had accepted before and that slowly rises.
//
// SlowDown reports whether the complaint starts a new incident. Complaints about requests that were
// already under way when the host first complained belong to the same incident.
func (h *Host) SlowDown(now time.Time, t *Ticket, retryAfter time.Duration) bool {
	of := h.member()
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	slower := h.slowDown(h.hosts.instant(now), t, retryAfter, h.hosts.random)
	h.countThrottled(of, slower)
	h.wakeNext()
	return slower
}

// Unavailable is like SlowDown for a response with status 503 and no Retry-After, which may only
// mean that the page is broken. Such a response is a complaint only if several came with few other
// responses between them, or if all other requests wait for this response.
func (h *Host) Unavailable(now time.Time, t *Ticket) bool {
	of := h.member()
	h, t = h.lockFor(t)
	defer h.mu.Unlock()
	slower := h.unavailable(h.hosts.instant(now), t, h.hosts.random)
	h.countThrottled(of, slower)
	h.wakeNext()
	return slower
}

// BusyFor reports whether it is already certain at now that no request to the host may start within
// d.
func (h *Host) BusyFor(now time.Time, d time.Duration) bool {
	if h.plain() {
		return false
	}
	h = h.lock()
	defer h.mu.Unlock()
	return h.due(h.hosts.instant(now), nil) > d
}

// NextStart returns the time before which no request starts. It is now or earlier if a request may
// start at once. alone reports whether at most one request may be in flight, or a delay is in
// force.
func (h *Host) NextStart(now time.Time) (next time.Time, alone bool) {
	if h.plain() {
		return now, false
	}
	h = h.lock()
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	if h.rules.Free {
		return now, false
	}
	delay := h.delay(at)
	alone = h.mostInFlight(at, delay) == 1 || delay > 0 || h.probing(at)
	return h.hosts.time(h.nextTurn(at)), alone
}

// mostAhead limits how far ahead Reserve reserves a turn, because the delay may become shorter.
const mostAhead = 5 * time.Minute

// Reserve is like NextStart for a request that goes away and is made again at its turn. In a group,
// the next request that calls Reserve gets a turn one delay later, so that the hosts of the group
// do not all come back at the same time.
func (h *Host) Reserve(now time.Time) (turn time.Time, alone bool) {
	turn, alone = h.NextStart(now)
	h = h.lock()
	defer h.mu.Unlock()
	if h.paced == nil || h.paced.members == nil || h.rules.Free {
		return turn, alone
	}
	p := h.paced
	at := h.hosts.instant(now)
	first := h.nextTurn(at)
	p.members.reserved = min(max(p.members.reserved.add(h.delay(at)), first), first.add(mostAhead))
	return h.hosts.time(p.members.reserved), alone
}

// Count adds to the pages and to the denied requests in Stats.
func (h *Host) Count(pages, denied int) {
	h = h.lockSelf()
	defer h.mu.Unlock()
	h.pages += uint32(pages)
	h.denied += uint32(denied)
}

// CountRefusal adds one to the refusals in Stats.
func (h *Host) CountRefusal() {
	h = h.lockSelf()
	defer h.mu.Unlock()
	h.refusals++
}

// CountUnchanged adds one to Unchanged in Stats.
func (h *Host) CountUnchanged() {
	h = h.lockSelf()
	defer h.mu.Unlock()
	h.unchanged++
}

// SetStatus records the status of a complaint for Stats.
func (h *Host) SetStatus(status int) {
	h = h.lockSelf()
	defer h.mu.Unlock()
	h.status = uint16(status)
}

// Mark marks the host with a bit that the caller chooses, and reports whether the host did not have
// that mark before. A caller that reports something once for each host therefore needs no memory of
// its own.
func (h *Host) Mark(bit uint16) (isNew bool) {
	h = h.lockSelf()
	defer h.mu.Unlock()
	isNew = h.marks&bit == 0
	h.marks |= bit
	return isNew
}

// MarkPace is like Mark for something that concerns the pace. If the host belongs to a group, it
// marks the group.
func (h *Host) MarkPace(bit uint16) (isNew bool) {
	h = h.lock()
	defer h.mu.Unlock()
	isNew = h.marks&bit == 0
	h.marks |= bit
	return isNew
}

// HasMark reports whether the host has a mark.
func (h *Host) HasMark(bit uint16) bool {
	h = h.lockSelf()
	defer h.mu.Unlock()
	return h.marks&bit != 0
}

// LastStart estimates when the last of n requests starts that all wait at now, at least one. It
// takes the hours and the rates of all schedules into account.
func (h *Host) LastStart(now time.Time, n int) time.Time {
	h = h.lock()
	defer h.mu.Unlock()
	return h.hosts.time(h.lastStart(h.hosts.instant(now), n))
}

// forget marks h as gone if forgetting it at now changes nothing, and reports whether it did.
func (h *Host) forget(now instant) bool {
	if !h.mu.TryLock() {
		return false // another goroutine uses the host
	}
	defer h.mu.Unlock()
	if h.gone {
		return h.leaveGroup(h.member())
	}
	h.gone = h.isForgettable(now) && (h.paced == nil || h.deserted(now))
	if h.gone {
		for t := range h.inFlight.all {
			h.expire(now, t) // if its request still reaches the transport, it has to start again, at the next Host
		}
	}
	return h.gone
}
