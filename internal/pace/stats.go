package pace

import "time"

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
	Failed    int // the calls of CountFailure
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
	// Delay is the delay in force, without Rules.Jitter. It is the largest of BackOff, MinDelay, the delay that follows from
	// ResponseTime, CrawlDelay and the delays of schedules, where MaxDelay limits the last two. If the
	// host gets only requests that other sites have led to, MinDelay counts as at least one second.
	Delay time.Duration
	Cause Cause // the cause of NextStart, or of Delay if NextStart is zero
	Line  int   // of robots.txt, if that is the Cause
	// Opens is when the host opens again if it is closed, and Closes is when it closes next if it
	// is open. They are zero if no schedule closes the host.
	Opens        time.Time
	Closes       time.Time
	ResponseTime time.Duration // smoothed; 0 without Rules.Adaptive
	// MinGap is the shortest time between two requests that followed one another on the wire while a
	// delay was in force. It is zero if there were no two such requests.
	MinGap time.Duration
	// GapOverDelay is the smallest ratio of such a gap to the delay in force when the second
	// request started. It is zero if there were no two such requests, or if no delay is kept
	// (Rules.Free).
	GapOverDelay float64

	// RateWait is about how long a request that is made now waits for the total rate; see
	// Hosts.LimitRate.
	RateWait time.Duration

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
	s.Failed += o.Failed
	s.Refusals += o.Refusals
	s.Unchanged += o.Unchanged
	s.Waited += o.Waited
	s.GapOverDelay = smaller(s.GapOverDelay, o.GapOverDelay)
}

// Stats returns the counts so far and the parts of the delay at now. The counts and Waiting are
// those of h alone, and the others those of its group.
func (h *Host) Stats(now time.Time) Stats {
	g, host := h.lock()
	defer g.mu.Unlock()
	s := host.counts()
	s.Host = host.own.name
	s.Status = int(host.status)
	s.Marks = host.marks
	at := g.registry.instant(now)
	s.MinGap = g.gaps().smallest
	s.GapOverDelay = g.gaps().overDelay
	s.Cause, s.Line = g.nextCause(at)
	s.CrawlDelay = g.crawlDelay(at)
	s.BackOff = g.backOff(at)
	s.Delay = g.delay(at)
	if until := g.notBefore(at); until != 0 {
		s.NotBefore = g.registry.time(until)
	}
	next := g.nextStart(at)
	s.RateWait = g.rateWait(at)
	if until, waits := g.isInRateQueue(at); waits {
		next = max(next, until)
		s.Cause = MaxRate
		s.Line = 0
	}
	if next != 0 {
		s.NextStart = g.registry.time(next)
	}
	if g.paced == nil {
		s.Busy = g.busy(at)
		return s
	}
	s.ResponseTime = g.paced.responseTime
	s.Opens, s.Closes = g.openingTimes(at)
	if !g.hasMembers() {
		s.Waiting = g.countWaiting(at)
		s.Busy = g.busy(at) || s.Waiting > 0 || g.paced.urgent.front != nil
		return s
	}
	s.Waiting = g.countWaitingOf(at, host)
	s.Busy = g.isMemberBusy(at, host)
	s.Group = g.name
	s.Others = g.paced.members.count - 1
	s.GroupWaiting = g.countWaiting(at)
	return s
}

// countWaiting returns the number of tickets in Enter. A ticket that got the turn and never started
// does not count.
func (g *Group) countWaiting(now instant) int {
	if g.unusedTurn(now) != nil {
		return g.paced.queued - 1
	}
	return g.paced.queued
}

// countWaitingOf is like countWaiting for the tickets of a member.
func (g *Group) countWaitingOf(now instant, h *Host) int {
	n := h.member().queued
	if t := g.unusedTurn(now); t != nil && t.host.Load() == h {
		n--
	}
	return n
}

// unusedTurn returns the ticket that has had the turn and not started before its place expired, or
// nil.
func (g *Group) unusedTurn(now instant) *Ticket {
	front := g.paced.waiting.front
	if front != nil && front.state == admitted && front.expired(now) {
		return front
	}
	return nil
}

// isMemberBusy reports whether a request of h, a member of g, waits or is in flight.
func (g *Group) isMemberBusy(now instant, h *Host) bool {
	m := h.member()
	n := m.tickets - (m.queued - g.countWaitingOf(now, h))
	for t := range g.inFlight.all {
		if t.host.Load() == h && t.state != onWire && t.expired(now) {
			n--
		}
	}
	return n > 0
}

// counts returns the statistics that can be summed. The group of h is locked, or h is forgotten.
func (h *Host) counts() Stats {
	s := Stats{
		Requests:     int(h.requests),
		Throttled:    int(h.throttled),
		Pages:        int(h.pages),
		Denied:       int(h.denied),
		Failed:       int(h.failed),
		Refusals:     int(h.refusals),
		Unchanged:    int(h.unchanged),
		GapOverDelay: h.own.gaps().overDelay,
	}
	if h.own.paced != nil {
		s.Waited = h.own.paced.waited
	}
	return s
}
