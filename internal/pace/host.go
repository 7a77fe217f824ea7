package pace

import (
	"context"
	"sync"
	"time"
)

// Rules are the settings for a host. They hold whatever the host requests. They must not change
// after they are returned to the registry. With the zero Rules, every request starts at once until
// robots.txt or a 429 response says otherwise.
type Rules struct {
	MinDelay time.Duration // shortest delay between two starts
	MaxDelay time.Duration // longer crawl delays are reduced to this; 0 means no limit
	// MaxInFlight is the largest number of requests in flight. If 0, one request may be in flight
	// while a crawl delay or MinDelay is in force, and otherwise any number.
	MaxInFlight int
	FromEnd     bool // the delay counts from the end of a response; one request in flight
	Free        bool // a dry run: every request starts at once and is only counted
	Shares      bool // the host may share the pace of other hosts, see Host.Join

	// MaxBackOff is the longest delay that 429 and 503 responses cause. It does not shorten a
	// Retry-After. If 0, it is five minutes. If negative, there is no back-off, even after a
	// Retry-After has passed.
	MaxBackOff time.Duration

	// Hours says when requests other than those for robots.txt may start. If nil, they may start at
	// any time. A delay of its slots also applies.
	Hours Schedule
	// Adaptive makes the delay at least Adaptive times the response time of the host, see
	// adaptiveDelay. If 0, the response time does not matter.
	Adaptive float64
}

// A Host schedules the requests to one host. Get one from Hosts.At. All methods may be called from
// any goroutine. A Host may be kept: if the registry forgets it, its methods act on the Host that
// has replaced it.
//
// Each request waits in the goroutine of its caller. Only the request whose turn comes next sleeps
// on a timer.
type Host struct {
	// mu protects the fields below it, except hosts, name, asked and next, and the tickets of the host.
	// If the host belongs to a group, the lock of the group protects its pace. See lockPace and lockSelf.
	mu    sync.Mutex
	hosts *Hosts
	name  string
	limiter
	pages     uint32
	denied    uint32
	refusals  uint32
	unchanged uint32
	asked     int32  // when At last returned it, in seconds; guarded by the lock of its shard
	marks     uint16 // the bits that were passed to Mark
	status    uint16 // of the last response
	next      *Host  // the next host in the ring of its shard; guarded by the same lock
}

// Stats are the statistics of one host. The sum of the Stats of several hosts has only the counts.
type Stats struct {
	Host string
	// Requests is the number of requests that started, except those that were NotSent. It includes
	// pages, redirects, robots.txt and sitemaps.
	Requests int
	// Throttled is the number of incidents when the host asked for fewer requests. All 429 and 503
	// responses of one incident count once.
	Throttled int
	Pages     int // passed to Count
	Denied    int // passed to Count
	Refusals  int // calls of CountRefusal
	Unchanged int // calls of CountUnchanged
	Waiting   int // requests that wait in Enter now
	// Busy reports whether a request waits or is in flight.
	Busy  bool
	Marks uint16 // the bits that were passed to Mark

	CrawlDelay time.Duration // the longest crawl delay of all sources, as written
	BackOff    time.Duration // the delay that 429 and 503 responses cause now
	NotBefore  time.Time     // the end of the last Retry-After; zero if none is in force
	// NextStart is the time before which no request starts. If zero, a request may start now unless
	// too many are in flight.
	NextStart time.Time
	// Delay is the delay in force: the largest of BackOff, MinDelay, the delay that follows from
	// ResponseTime, and CrawlDelay and the delays of schedules limited to MaxDelay. For a host that
	// gets only requests that other sites have led to, it is at least one second, with the cause
	// MinDelay.
	Delay time.Duration
	Cause Cause // the cause of NextStart, or of Delay if NextStart is zero
	Line  int   // of robots.txt, if that is the Cause
	// Opens is when the host opens again if it is closed, and Closes is when it closes next if it
	// is open. They are zero if no schedule closes the host.
	Opens        time.Time
	Closes       time.Time
	ResponseTime time.Duration // smoothed; 0 without Rules.Adaptive
	// MinGap is the shortest time between the moments at which two requests reached the wire while
	// a delay was in force. It is zero if there were no two such requests.
	MinGap time.Duration
	// GapOverDelay is the smallest ratio of such a gap to the delay in force when the second
	// request started. It is zero if there were no two such requests, or if no delay is kept
	// (Rules.Free).
	GapOverDelay float64

	Waited time.Duration // the total time that requests have waited in Enter and Start
	Status int           // of the last response

	Group        string // the name of the group that h belongs to; "" if there is none
	Others       int    // the number of other hosts in the group
	GroupWaiting int    // the sum of Waiting of the hosts in the group
}

// add adds the counts of o. GapOverDelay becomes the smaller of the two.
func (s *Stats) add(o Stats) {
	s.Requests += o.Requests
	s.Throttled += o.Throttled
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Refusals += o.Refusals
	s.Unchanged += o.Unchanged
	s.Waited += o.Waited
	s.GapOverDelay = smaller(s.GapOverDelay, o.GapOverDelay)
}

// An admitted ticket that has not started is kept for at least minLease, even if the delay is
// shorter.
const minLease = 100 * time.Millisecond

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
	changed = h.setCrawlDelay(h.hosts.instant(now), source.of(self), written, h.hosts.lapses(until))
	if changed {
		h.lookAgain()
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
	if !h.shared() && (h.paced == nil && h.unpaced(0) || h.unpaced(h.hosts.now())) {
		h.mu.Unlock()
		return nil
	}
	p := h.slowed()
	t.state = waiting
	p.enqueue(t, h.memberOf(t))
	return h.await(ctx, t)
}

// MayEnter reports whether Enter can be omitted for t, because nothing has ever kept the requests
// of the host apart. It costs less than Enter.
func (h *Host) MayEnter(t *Ticket) bool {
	return h.plain() && t.host.Load() == nil && h.hosts.closed() == nil
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
		h.slowed()
	}
	return h.startOrWait(ctx, t, true)
}

// visit records a request that no other site has led to. The caller must hold the lock.
func (h *Host) visit() {
	h.visited = true
	if h.led {
		h.led = false
		h.lookAgain()
	}
}

// startOrWait is the part of Start that needs the lock. It is called with the lock held and returns
// without it.
func (h *Host) startOrWait(ctx context.Context, t *Ticket, direct bool) error {
	if _, ok := h.startNow(h.hosts.now(), t, direct); ok {
		h.unlock()
		return nil
	}
	t.state = urgent
	h.slowed().urgent.push(t)
	h.hold(t, 1)
	if t.renews && h.paced.scheduled {
		h.paced.urgent.front = t // a request that waits until the host opens must not keep robots.txt waiting
	}
	return h.await(ctx, t)
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

// startNow is StartNow with the lock held.
func (h *Host) startNow(now instant, t *Ticket, direct bool) (wait time.Duration, ok bool) {
	lent := t.keep()
	h.leave(t)
	t.held = lent
	t.direct = direct
	if h.paced != nil && h.paced.urgent.front != nil || !h.claim(now, t) {
		return 0, false
	}
	wait, ok = h.start(now, t)
	if ok {
		h.dispatched(t)
		h.lookAgain()
	}
	return wait, ok
}

// admitting locks and returns the Host that keeps the pace of h, and moves t to the current Host of
// h's name. If ctx or the registry has ended, it ends t and returns the error instead, without the
// lock.
func (h *Host) admitting(ctx context.Context, t *Ticket) (*Host, error) {
	err := h.hosts.closed()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		t.End()
		return nil, err
	}
	if h.rules.Shares {
		h.settle(h.hosts.now())
	}
	h, self := h.lockPace()
	if at := t.host.Load(); at != self {
		if at != nil {
			h.mu.Unlock()
			t.End()
			h, self = self.lockPace()
		}
		t.host.Store(self)
	}
	return h, nil
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

// await waits until t has had its turn. On error, t has left its list. await is called with the
// lock held and returns without it.
func (h *Host) await(ctx context.Context, t *Ticket) error {
	began := h.hosts.now()
	defer func() {
		h.addWait(t, h.hosts.now().since(began))
		h.unlock()
	}()
	for state := t.state; ; {
		now := h.hosts.now()
		err := t.stopsWaiting()
		switch d, ok := h.mayPass(now, t); {
		case err != nil:
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

// sleep is like Ticket.sleep. It is called with the lock held and releases it while it sleeps.
func (h *Host) sleep(ctx context.Context, t *Ticket, d time.Duration) error {
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	if h.paced.scheduled {
		d = min(d, maxSleep)
	}
	h.yield(t)
	h.unlock()
	defer h.mu.Lock()
	return t.sleep(ctx, h.hosts, d)
}

// mayPass reports whether t, which waits in Enter or Start, may go on. If not, it returns the time
// after which to look again, or 0 if t should wait until it is woken.
func (h *Host) mayPass(now instant, t *Ticket) (time.Duration, bool) {
	p := h.paced
	if t.state == urgent {
		if p.urgent.front != t {
			return 0, false
		}
		return h.ready(now, t)
	}
	if front := p.waiting.front; front != t && front.next == t && front.state == admitted {
		if !front.lapsed(now) {
			return front.lease.since(now), false
		}
		// The request of front got the turn and never started. Either a later callback aborted it,
		// or it still waits for something else. In the second case it will start without the turn,
		// and Start still keeps the delay.
		h.leave(front)
	}
	if p.waiting.front != t || p.urgent.front != nil {
		return 0, false
	}
	return h.ready(now, t)
}

// take lets t, which waits in Enter or Start, go on. The caller must know that it may.
func (h *Host) take(now instant, t *Ticket) {
	switch {
	case t.state == urgent:
		h.leaveUrgent(t)
		h.start(now, t)
		h.dispatched(t)
	case t.held != nil && t.held.until == 0 && h.unpaced(now):
		h.paced.dequeue(t, h.memberOf(t)) // no request has to wait for t, here or in another process
		t.state = idle
	default:
		d := max(h.delay(now), minLease)
		t.state = admitted
		t.lease = now.add(d)
		h.paced.advance(t, h.memberOf(t))
		if t.held != nil {
			h.lapseAfter(d, t.held)
		}
	}
	h.lookAgain()
}

// leave removes t from its list. Afterwards t holds nothing.
func (h *Host) leave(t *Ticket) {
	if t.held != nil {
		h.free(t)
	}
	switch t.state {
	case idle:
		return
	case waiting, admitted:
		h.paced.dequeue(t, h.memberOf(t))
		t.state = idle
	case urgent:
		h.leaveUrgent(t)
		t.state = idle
	default:
		h.end(h.hosts.now(), t)
	}
	if h.paced != nil && h.asksFor(t) {
		h.paced.sharing.cancel(ErrEnded)
	}
	t.look() // wakes the goroutine of t, which finds that t was ended
	h.lookAgain()
}

// lookAgain wakes the tickets whose turn it may be now: the first ticket in Start, or, if there is
// none, the first two tickets in Enter. The second of these watches whether the first one expires.
func (h *Host) lookAgain() {
	p := h.paced
	switch {
	case p == nil:
	case p.urgent.front != nil:
		p.urgent.front.look()
	case p.waiting.front != nil:
		p.waiting.front.look()
		if second := h.second(); second != nil {
			second.look()
		}
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
	recovered = h.accepted(now, t)
	if recovered || measured {
		h.lookAgain()
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
	h.lookAgain()
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
	h.lookAgain()
	return slower
}

// lockFor is like lock. It also returns t if t was last used with this host, and nil otherwise.
func (h *Host) lockFor(t *Ticket) (*Host, *Ticket) {
	h, self := h.lockPace()
	if t == nil || t.host.Load() != self {
		return h, nil
	}
	return h, t
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

// Stats returns the counts so far and the parts of the delay at now. The counts and Waiting are
// those of h alone, and the others those of its group.
func (h *Host) Stats(now time.Time) Stats {
	self := h.lockSelf()
	s := self.counts()
	s.Host = self.name
	s.Status = int(self.status)
	s.Marks = self.marks
	self.mu.Unlock()
	h, self = self.lockPace()
	defer h.mu.Unlock()
	at := h.hosts.instant(now)
	s.MinGap = h.gaps().least
	s.GapOverDelay = h.gaps().overDelay
	s.Cause, s.Line = h.nextCause(at)
	s.CrawlDelay = h.crawlDelay(at)
	s.BackOff = h.backOff(at)
	s.Delay = h.delay(at)
	if until := h.notBefore(at); until != 0 {
		s.NotBefore = h.hosts.time(until)
	}
	if next := h.nextStart(at); next != 0 {
		s.NextStart = h.hosts.time(next)
	}
	if h.paced == nil {
		s.Busy = h.busy(at)
		return s
	}
	s.ResponseTime = h.paced.responseTime
	s.Waiting = h.queued(at, self)
	if h != self {
		s.Busy = h.isMemberBusy(at, self)
		s.Group = h.name
		s.Others = h.paced.group.members - 1
		s.GroupWaiting = h.queued(at, h)
	} else {
		s.Busy = h.busy(at) || s.Waiting > 0 || h.paced.urgent.front != nil
	}
	s.Opens, s.Closes = h.hours(at)
	return s
}

// queued returns the number of tickets in Enter, those of self if that is a member of the group h,
// and otherwise all. A ticket that got the turn and never started does not count.
func (h *Host) queued(now instant, self *Host) int {
	n := h.paced.queued
	if self != h {
		n = self.paced.member.queued
	}
	front := h.paced.waiting.front
	if front != nil && front.state == admitted && front.lapsed(now) && (self == h || front.host.Load() == self) {
		n--
	}
	return n
}

// isMemberBusy reports whether a request of self, a member of the group h, waits or is in flight.
func (h *Host) isMemberBusy(now instant, self *Host) bool {
	m := self.paced.member
	n := m.tickets - (m.queued - h.queued(now, self))
	for t := range h.inFlight.all {
		if t.host.Load() == self && t.state != onWire && t.lapsed(now) {
			n--
		}
	}
	return n > 0
}

// counts returns the statistics that can be summed. The lock of h itself must be held.
func (h *Host) counts() Stats {
	s := Stats{Requests: h.requests, Pages: int(h.pages), Denied: int(h.denied), Refusals: int(h.refusals), Unchanged: int(h.unchanged), GapOverDelay: h.gaps().overDelay}
	if h.paced == nil {
		return s
	}
	s.Throttled = h.paced.throttled
	s.Waited = h.paced.waited
	if m := h.paced.member; m != nil {
		s.Requests += int(m.requests.Load())
		s.Throttled += int(m.throttled.Load())
		s.Waited += time.Duration(m.waited.Load())
	}
	return s
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
	h.gone = h.idle(now) && (h.paced == nil || h.deserted(now))
	if h.gone {
		for t := range h.inFlight.all {
			h.lapse(now, t) // if its request still reaches the transport, it has to start again, at the next Host
		}
	}
	return h.gone
}

// deserted reports whether no request waits. A ticket that got the turn and never started does not
// count, unless it has a lease, which the timer of the lease gives back soon.
func (h *Host) deserted(now instant) bool {
	if front := h.paced.waiting.front; front != nil && front.state == admitted && front.lapsed(now) && front.held == nil {
		h.leave(front)
	}
	return h.paced.waiting.front == nil && h.paced.urgent.front == nil
}
