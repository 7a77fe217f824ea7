package pace

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A Host is one host of a crawl. It has the counts of the host, and belongs to a Group, which schedules
// its requests. Get one from Hosts.At. All methods may be called from any goroutine. A Host may be
// kept: if the registry forgets it, its methods act on the Host that has replaced it.
//
// Each request waits in the goroutine of its caller. Only the request whose turn comes next sleeps
// on a timer.
type Host struct {
	// own is the group of the host while it is paced alone. It always has the name and the Rules of
	// the host.
	own Group

	// The following fields are guarded by the lock of the group of the host.
	counters
	marks  uint16 // the bits that were passed to Mark
	status uint16 // of the last response

	// The following fields are guarded by the lock of the shard.
	lastUse    int32 // when At last returned the host, in seconds
	nextInRing *Host // the next host in the ring of the shard
}

// A member is what a host needs in addition if it may share its pace.
type member struct {
	// group is the group of the host. It is written under the lock of the group that the host leaves.
	group atomic.Pointer[Group]

	// The following fields are guarded by the lock of that group.
	assigned Assignment // says which group the host joins when it has no tickets
	tickets  int        // the tickets of the host that hold something in a group of several hosts
	queued   int        // the tickets of the host in Enter
	inLine   *Ticket    // the one that waits in the queue of the group; nil if there is none
	backlog  list       // the tickets in Enter behind inLine

	crawlDelays []*crawlDelay // those that a robots.txt of the host has requested
}

// Name returns the name that At was called with.
func (h *Host) Name() string { return h.own.name }

// Rules returns the settings of the host, as returned by the func passed to New.
func (h *Host) Rules() *Rules { return h.own.rules }

// Plain reports whether no delay, limit or complaint has ever kept the requests of the host apart.
// It takes no lock.
func (h *Host) Plain() bool { return h.own.plain() }

// member returns what h needs to share its pace, or nil if its rules do not allow that.
func (h *Host) member() *member {
	if !h.own.rules.Shares {
		return nil
	}
	return h.own.paced.member
}

// group returns the group of h at the moment. Without the lock of the group, h may just be moving to
// another one.
func (h *Host) group() *Group {
	if m := h.member(); m != nil {
		return m.group.Load()
	}
	return &h.own
}

// lock locks a group and returns it with its host: h, or if h is forgotten, the Host that has replaced
// it.
func (h *Host) lock() (*Group, *Host) {
	host := h
	for {
		g := host.group()
		g.mu.Lock()
		isCurrent := g == host.group()
		if isCurrent && !g.isForgotten {
			return g, host
		}
		g.mu.Unlock()
		if isCurrent {
			host = g.registry.At(time.Now(), g.name) // host is forgotten
		}
	}
}

// ticket returns t if it was last used with h, and otherwise nil. t may be nil.
func (h *Host) ticket(t *Ticket) *Ticket {
	if t == nil || t.host.Load() != h {
		return nil
	}
	return t
}

// addWait adds to the time that the requests of h have waited. Only a host that has made requests wait
// needs memory for it.
func (h *Host) addWait(d time.Duration) { h.own.ensurePaced().waited += d }

// SetCrawlDelay records the crawl delay that a robots.txt of the host requests, or 0 for none, and
// reports whether it has changed. The new delay also applies to requests that already wait. The
// delay in force is the longest that any source requests.
//
// until is when the file has to be read again. The delay expires some time after that, because its
// source is then no longer in use: after one more delay, but at least a minute. Each request that
// obeys the delay (see Obey) extends that time, and the delay does not expire while such a request
// waits or is on the wire. If until is the zero time, the delay never expires.
func (h *Host) SetCrawlDelay(now time.Time, source Source, written time.Duration, until time.Time) (changed bool) {
	if written <= 0 && h.own.plain() {
		return false
	}
	g, host := h.lock()
	defer g.mu.Unlock()
	changed = g.setCrawlDelay(g.registry.instant(now), source.of(host), written, g.registry.instantOrNever(until))
	if changed {
		g.wakeNext()
	}
	return changed
}

// Obey records that the request of t obeys the crawl delay of a source. That delay does not expire
// while t waits or is on the wire.
func (h *Host) Obey(t *Ticket, source Source) {
	if h.own.plain() {
		return
	}
	g, host := h.lock()
	defer g.mu.Unlock()
	t.obeyed = nil
	if g.paced != nil {
		source = source.of(host)
		t.obeyed = g.paced.crawlDelayOf(&source)
	}
}

// Delay returns the delay in force at now.
func (h *Host) Delay(now time.Time) time.Duration {
	if h.own.plain() {
		return 0
	}
	g, _ := h.lock()
	defer g.mu.Unlock()
	return g.delay(g.registry.instant(now))
}

// Skip uses the turn of t, which has passed Enter, without a request. The next request starts one
// delay later, as if a request had been sent. The caller must call End afterwards.
func (h *Host) Skip(now time.Time, t *Ticket) {
	g, host := h.lock()
	defer g.mu.Unlock()
	t = host.ticket(t)
	at := g.registry.instant(now)
	if t != nil && t.state == admitted && g.due(at, nil) == 0 {
		g.last = max(g.last, at)
		g.drawShare()
	}
}

// Enter is the first stage, for a request that holds nothing yet. It waits until a request may start
// and no other request of the host has the turn. Then t has the turn: no other request of the host
// passes Enter until the caller calls Start, or until one delay has passed. If nothing limits the
// host, Enter returns at once, and t does not get the turn. If t already has the turn from an earlier
// call, it keeps the turn, and Enter only waits until a request may start.
//
// On error, t holds nothing. The error is the cause of ctx, the error passed to Close, or ErrEnded.
func (h *Host) Enter(ctx context.Context, t *Ticket) error {
	g, err := h.admit(ctx, t)
	if err != nil {
		return err
	}
	return g.enter(ctx, t)
}

// MayEnter reports whether Enter can be omitted for t, because nothing has ever kept the requests
// of the host apart. It costs less than Enter. It is false if t will wait for the total rate in Start,
// so that the caller can report that.
func (h *Host) MayEnter(t *Ticket) bool {
	registry := h.own.registry
	if !h.own.plain() || t.host.Load() != nil || registry.closeError() != nil {
		return false
	}
	return registry.total == nil || h.own.rateWait(registry.now()) == 0
}

// Start is the second stage. It waits until the request may go on the wire. The delay counts from
// the moment when Start returns, until Sent reports a better one. Requests are served in the order
// of their calls, before all requests in Enter. If direct is true, the caller sends the request now
// and calls End later. Otherwise something may still keep the request from being sent, and its
// place expires after a second if OnWire is not called.
//
// On error, t holds nothing. The error is the cause of ctx, the error passed to Close, or ErrEnded.
func (h *Host) Start(ctx context.Context, t *Ticket, direct bool) error {
	g, err := h.admit(ctx, t)
	if err != nil {
		return err
	}
	g.visit()
	return g.startOrWait(ctx, t, direct)
}

// StartLed is like [Host.StartIf] for a request that another site has led to, for example by a
// redirect. As long as a host gets no other requests, these start at least one second apart.
func (h *Host) StartLed(ctx context.Context, t *Ticket, wanted func() error) error {
	t.wanted = wanted
	g, err := h.admit(ctx, t)
	if err != nil {
		return err
	}
	if !g.visited {
		g.led = true
		g.ensurePaced()
	}
	return g.startOrWait(ctx, t, true)
}

// StartNow is like Start but does not wait, for a caller with its own clock. It reports whether t
// has started at now. If not, t holds nothing except possibly a lease, and wait is the time after
// which the caller should try again, or earlier if a request of the host ends. If wait is 0, only
// the end of a request helps.
func (h *Host) StartNow(now time.Time, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	g, err := h.admit(context.Background(), t)
	if err != nil {
		return 0, false
	}
	defer g.unlock()
	g.visit()
	return g.startNow(g.registry.instant(now), t, direct)
}

// Answered records that the host has answered the request of t with a status, and that the response
// is not a complaint (see SlowDown and Unavailable). pages is added to the count of pages, as by
// Count.
//
// End also records this, but later; after a complaint all other requests wait for the first
// accepted response. Answered reports whether t was that response: the host has recovered.
func (h *Host) Answered(t *Ticket, status, pages int) (recovered bool) {
	g, host := h.lock()
	defer g.mu.Unlock()
	host.status = uint16(status)
	host.pages += uint32(pages)
	if t == nil || t.host.Load() != host {
		return false
	}
	now := g.registry.now()
	measured := g.measure(now, t, succeeded(status))
	recovered = g.accept(now, t)
	if recovered || measured {
		g.wakeNext()
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
	g, host := h.lock()
	defer g.mu.Unlock()
	slower := g.slowDown(g.registry.instant(now), host.ticket(t), retryAfter, g.registry.random)
	if slower {
		host.counters.add(report.HostCounts{Throttled: 1})
	}
	g.wakeStarts()
	return slower
}

// Unavailable is like SlowDown for a response with status 503 and no Retry-After, which may only
// mean that the page is broken. Such a response is a complaint only if several came with few other
// responses between them, or if all other requests wait for this response.
func (h *Host) Unavailable(now time.Time, t *Ticket) bool {
	g, host := h.lock()
	defer g.mu.Unlock()
	slower := g.unavailable(g.registry.instant(now), host.ticket(t), g.registry.random)
	if slower {
		host.counters.add(report.HostCounts{Throttled: 1})
	}
	g.wakeNext()
	return slower
}

// BusyFor reports whether it is already certain at now that no request to the host may start within
// d.
func (h *Host) BusyFor(now time.Time, d time.Duration) bool {
	if h.own.plain() {
		return false
	}
	g, _ := h.lockLoaded()
	defer g.mu.Unlock()
	return g.due(g.registry.instant(now), nil) > d
}

// IsAway reports whether the host has asked at now, by a Retry-After or a Visit-time, that no request
// starts for more than a minute and two gaps.
func (h *Host) IsAway(now time.Time) bool {
	if h.own.plain() {
		return false
	}
	g, _ := h.lock()
	defer g.mu.Unlock()
	return g.isAway(g.registry.instant(now))
}

// NextStart returns the time before which no request starts. It is now or earlier if a request may
// start at once. oneByOne reports whether at most one request may be in flight, or a delay is in
// force.
func (h *Host) NextStart(now time.Time) (next time.Time, oneByOne bool) {
	if h.own.plain() {
		return now, false
	}
	g, host := h.lock()
	defer g.mu.Unlock()
	at := g.registry.instant(now)
	switch {
	case host.isPaused():
		return now.Add(mayResume), true
	case g.rules.Free:
		return now, false
	}
	delay := g.delay(at)
	oneByOne = g.mostInFlight(at, delay) == 1 || delay > 0 || g.probing(at)
	return g.registry.time(g.earliestStart(at)), oneByOne
}

// Reserve is like NextStart for a request that does not wait in Enter, but is made again at the time
// that Reserve returns. In a group with members, this time is one delay later with each call, so that
// not all of these requests are made at the same time.
func (h *Host) Reserve(now time.Time) (start time.Time, oneByOne bool) {
	start, oneByOne = h.NextStart(now)
	g, host := h.lock()
	defer g.mu.Unlock()
	if !g.hasMembers() || g.rules.Free || host.isPaused() {
		return start, oneByOne
	}
	return g.registry.time(g.reserve(g.registry.instant(now))), oneByOne
}

// LastStart estimates when the last of n requests starts, if n requests wait at now. n is at least 1.
// The estimate includes the hours and the delays of all schedules, and the time in which the total
// rate lets a number of requests start: those of all hosts that start until then.
func (h *Host) LastStart(now time.Time, n, total int) time.Time {
	g, _ := h.lock()
	defer g.mu.Unlock()
	at := g.registry.instant(now)
	return g.registry.time(max(g.lastStart(at, n), at.add(g.rateTime(at, total))))
}

// Count adds n to the counts in Stats, except Requests, Waited and GapOverDelay, which package pace
// measures.
func (h *Host) Count(n report.HostCounts) {
	g, host := h.lock()
	defer g.mu.Unlock()
	host.counters.add(n)
	if n.Retried+n.GivenUp != 0 {
		p := host.own.ensurePaced()
		p.retried += uint32(n.Retried)
		p.givenUp += uint32(n.GivenUp)
	}
}

// SetStatus records the status of a complaint for Stats.
func (h *Host) SetStatus(status int) {
	g, host := h.lock()
	defer g.mu.Unlock()
	host.status = uint16(status)
}

// Mark marks the host with a bit that the caller chooses, and reports whether the host did not have
// that mark before. A caller that reports something once for each host therefore needs no memory of
// its own.
func (h *Host) Mark(bit uint16) (isNew bool) {
	g, host := h.lock()
	defer g.mu.Unlock()
	isNew = host.marks&bit == 0
	host.marks |= bit
	return isNew
}

// MarkPace is like Mark for something that concerns the pace. If the host belongs to a group, it
// marks the group.
func (h *Host) MarkPace(bit uint16) (isNew bool) {
	g, host := h.lock()
	defer g.mu.Unlock()
	marks := &host.marks
	if g.hasMembers() {
		marks = &g.paced.members.marks
	}
	isNew = *marks&bit == 0
	*marks |= bit
	return isNew
}

// HasMark reports whether the host has a mark.
func (h *Host) HasMark(bit uint16) bool {
	g, host := h.lock()
	defer g.mu.Unlock()
	return host.marks&bit != 0
}

// forget marks h as forgotten if forgetting it at now changes nothing, and reports whether it did.
func (h *Host) forget(now instant) bool {
	g := h.group()
	if !g.mu.TryLock() {
		return false // another goroutine uses the group
	}
	defer g.mu.Unlock()
	switch {
	case g != h.group():
		return false // h has just moved to another group
	case g.hasMembers():
		return h.forgetMember(g)
	case !g.isForgettable(now) || g.paced != nil && !g.deserted(now):
		return false
	}
	for t := range g.inFlight.all {
		g.expire(now, t) // if its request still reaches the transport, it has to start again, at the next Host
	}
	g.isForgotten = true
	return true
}
