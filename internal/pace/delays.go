package pace

import (
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A Source is a robots.txt as one crawler reads it. It can request a crawl delay.
type Source struct {
	Scheme string // "http" or "https"
	Reader string // the product token it is read under; a crawler with several names has several sources
	Line   int    // the line with the crawl delay; 0 if unknown; not a part of the identity

	by *member // the host of the robots.txt, if it may share its pace; otherwise nil
}

// of returns s as a source of a host.
func (s Source) of(h *Host) Source {
	s.by = h.member()
	return s
}

// is reports whether s and o are the same source. It ignores the line.
func (s *Source) is(o *Source) bool {
	return s.Scheme == o.Scheme && s.Reader == o.Reader && s.by == o.by
}

// A crawlDelay is the delay and the schedule that a source requests.
//
// It is in force until a newer file of the source replaces it, or until it expires. It expires one
// grace period after the time when the file has to be read again, or one grace period after the last
// request that obeys it, whichever is later. It does not expire while such a request waits or is on
// the wire. If it never expired, the file of a scheme or a name that is no longer used would slow the
// host down forever.
type crawlDelay struct {
	source  Source
	written time.Duration // 0 if the source requests none or the delay has expired
	until   instant       // when the delay expires, unless a request obeys it at that time

	schedule *hostSchedule // nil if the source requests none or it has expired
}

// leastGrace is the shortest grace period of a crawl delay. It is longer than the time between the
// moment when a file is read and the moment when a request obeys its delay.
const leastGrace = time.Minute

// grace returns the grace period of d, which is the delay itself but at least leastGrace.
func (l *limiter) grace(now instant, d *crawlDelay) time.Duration {
	return max(l.limited(d.delay(now)), leastGrace)
}

// delay returns the delay that d requests at now, as written.
func (d *crawlDelay) delay(now instant) time.Duration {
	if d.schedule == nil {
		return d.written
	}
	return max(d.written, d.schedule.At(d.schedule.registry.time(now)).Delay)
}

// setCrawlDelay records the delay that a source requests, or 0 for none. until is when the file has
// to be read again. It reports whether the delay has changed.
func (l *limiter) setCrawlDelay(now instant, source Source, written time.Duration, until instant) (changed bool) {
	written = max(written, 0)
	if l.paced == nil && written == 0 {
		return false
	}
	p := l.ensurePaced()
	d := p.crawlDelayOf(&source)
	if d == nil {
		if written == 0 {
			return false
		}
		d = new(crawlDelay)
		l.addCrawlDelay(now, d, source.by)
	}
	before := time.Duration(0)
	if l.inForce(now, d) {
		before = d.written
	}
	d.source = source
	d.written = written
	d.until = max(until, now).add(l.grace(now, d))
	if written != before {
		p.longest = nil
	}
	return written != before
}

// addCrawlDelay adds d, a crawl delay of the host by. by is nil if the host cannot share its pace. From
// time to time, addCrawlDelay removes the crawl delays that are no longer in force.
func (l *limiter) addCrawlDelay(now instant, d *crawlDelay, by *member) {
	p := l.paced
	if len(p.crawlDelays) == cap(p.crawlDelays) {
		p.crawlDelays = slices.DeleteFunc(p.crawlDelays, func(d *crawlDelay) bool { return !l.inForce(now, d) })
	}
	p.crawlDelays = append(p.crawlDelays, d)
	if by != nil {
		by.crawlDelays = slices.DeleteFunc(by.crawlDelays, func(d *crawlDelay) bool { return !l.inForce(now, d) })
		by.crawlDelays = append(by.crawlDelays, d)
	}
}

// crawlDelayOf returns the crawl delay of a source, or nil if the source has never requested one.
func (p *paced) crawlDelayOf(source *Source) *crawlDelay {
	for _, d := range p.crawlDelaysOf(source.by) {
		if d.source.is(source) {
			return d
		}
	}
	return nil
}

// crawlDelaysOf returns the crawl delays of a member, or all if m is nil.
func (p *paced) crawlDelaysOf(m *member) []*crawlDelay {
	if m == nil {
		return p.crawlDelays
	}
	return m.crawlDelays
}

// inForce reports whether d is in force at now. If it is not, d has expired and only a newer file can
// set it again.
func (l *limiter) inForce(now instant, d *crawlDelay) bool {
	if d.written == 0 && d.schedule == nil {
		return false
	}
	if d.until >= now {
		return true
	}
	if !l.isObeyed(now, d) {
		d.written = 0
		d.schedule = nil
		return false
	}
	d.until = now.add(l.grace(now, d))
	return true
}

// isObeyed reports whether a request that obeys d waits or is on the wire.
func (l *limiter) isObeyed(now instant, d *crawlDelay) bool {
	p := l.paced
	by := d.source.by
	if p.members != nil && (by == nil || by.tickets == 0) {
		return false
	}
	lists := [...]*list{&l.inFlight, &p.urgent, &p.waiting, nil}
	if by != nil {
		lists[3] = &by.backlog
	}
	for _, tickets := range lists {
		for t := range tickets.all {
			if t.obeys(d) && (p.members == nil || l.memberOf(t) == by) && (t.state == waiting || t.state == urgent || !t.expired(now)) {
				return true
			}
		}
	}
	return false
}

// extend records that t, which has started, obeys its crawl delays at now. This extends the time for
// which they hold.
func (l *limiter) extend(now instant, t *Ticket) {
	if l.paced == nil {
		return
	}
	for _, d := range l.paced.crawlDelaysOf(l.memberOf(t)) {
		if (d.written > 0 || d.schedule != nil) && t.obeys(d) {
			d.until = max(d.until, now.add(l.grace(now, d)))
		}
	}
}

// crawlDelay returns the longest delay that any source requests at now, as written.
func (l *limiter) crawlDelay(now instant) time.Duration {
	most, _ := l.longestCrawlDelay(now)
	return most
}

// longestCrawlDelay is like crawlDelay and also returns the line that requests the delay.
func (l *limiter) longestCrawlDelay(now instant) (most time.Duration, line int) {
	p := l.paced
	if p == nil || len(p.crawlDelays) == 0 {
		return 0, 0
	}
	if p.longest == nil || p.longest != noCrawlDelay && !l.inForce(now, p.longest) {
		p.longest = l.findLongest(now)
	}
	return p.longest.written, p.longest.source.Line
}

// noCrawlDelay is the longest crawl delay if none is in force. It is never changed.
var noCrawlDelay = new(crawlDelay)

// findLongest returns the longest crawl delay that is in force at now. If several have the same length,
// it returns the one that expires last. A group may have thousands of crawl delays, so
// longestCrawlDelay keeps the result.
func (l *limiter) findLongest(now instant) *crawlDelay {
	longest := noCrawlDelay
	for _, d := range l.paced.crawlDelays {
		if !l.inForce(now, d) || d.written == 0 {
			continue
		}
		if d.written > longest.written || d.written == longest.written && d.until > longest.until {
			longest = d
		}
	}
	return longest
}

// cause returns where a delay that is in force at now comes from, and the line if that is
// robots.txt. If robots.txt and another cause request the same delay, it returns
// SourceCrawlDelay or SourceRequestRate.
func (l *limiter) cause(now instant, delay time.Duration) (report.DelaySource, int) {
	crawlDelay, line := l.longestCrawlDelay(now)
	slot := l.slot(now, now)
	switch {
	case delay <= 0:
		return "", 0
	case l.limited(crawlDelay) == delay:
		return report.SourceCrawlDelay, line
	case slot.delay == delay:
		return report.SourceRequestRate, slot.delayLine
	case l.minDelay() == delay:
		return report.SourceMinDelay, 0
	case l.rules.Adaptive > 0 && l.backOff(now) != delay:
		return report.SourceAdaptive, 0
	}
	return report.SourceBackOff, 0
}

// nextCause returns the cause that keeps the next request from starting.
func (l *limiter) nextCause(now instant) (report.DelaySource, int) {
	next := l.nextStart(now)
	if until := l.notBefore(now); until != 0 && until == next {
		return report.SourceRetryAfter, 0
	}
	if next > now {
		if slot := l.slot(now, next-1); slot.closed { // the request starts when the host opens
			return slot.closedBy, slot.openLine
		}
	}
	return l.cause(now, l.delay(now))
}
