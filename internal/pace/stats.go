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
	s.MinGap = h.gaps().smallest
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
	s.Waiting = h.countWaiting(at, self)
	if h != self {
		s.Busy = h.isMemberBusy(at, self)
		s.Group = h.name
		s.Others = h.paced.members.count - 1
		s.GroupWaiting = h.countWaiting(at, h)
	} else {
		s.Busy = h.busy(at) || s.Waiting > 0 || h.paced.urgent.front != nil
	}
	s.Opens, s.Closes = h.openingTimes(at)
	return s
}

// countWaiting returns the number of tickets in Enter, those of self if that is a member of the group h,
// and otherwise all. A ticket that got the turn and never started does not count.
func (h *Host) countWaiting(now instant, self *Host) int {
	n := h.paced.queued
	if self != h {
		n = self.paced.member.queued
	}
	front := h.paced.waiting.front
	if front != nil && front.state == admitted && front.expired(now) && (self == h || front.host.Load() == self) {
		n--
	}
	return n
}

// isMemberBusy reports whether a request of self, a member of the group h, waits or is in flight.
func (h *Host) isMemberBusy(now instant, self *Host) bool {
	m := self.paced.member
	n := m.tickets - (m.queued - h.countWaiting(now, self))
	for t := range h.inFlight.all {
		if t.host.Load() == self && t.state != onWire && t.expired(now) {
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
