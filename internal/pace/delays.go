package pace

import (
	"slices"
	"time"
)

// A Source is a robots.txt as one crawler reads it: it may ask for a crawl delay.
type Source struct {
	Scheme string // "http" or "https"
	Reader string // whose name it is read under; crawlers with several names have several
	Line   int    // of it that asks; 0: not known. It is not what makes two sources differ
}

// is reports whether s and o are the same, wherever they ask.
func (s *Source) is(o *Source) bool { return s.Scheme == o.Scheme && s.Reader == o.Reader }

// A crawlDelay is the delay that a source asks for.
//
// It holds until a newer file of its source says otherwise, as long as that source is in use: until
// its file has to be read again, for one delay after that and after each request that obeys it, and
// as long as such a request waits or is on the wire. After that it has lapsed, so that the file of a
// scheme or a name that is no longer used does not slow its host down forever.
type crawlDelay struct {
	source  Source
	written time.Duration // 0: none, or it has lapsed
	until   instant       // when it lapses, unless a request obeys it then
}

// leastGrace is how long a crawl delay is in use after its file or its last request, at least: the
// time for the steps between reading a file and obeying it.
const leastGrace = time.Minute

// grace returns how long after its file or its last request d is in use.
func (l *limiter) grace(d *crawlDelay) time.Duration { return max(l.kept(d.written), leastGrace) }

// setCrawlDelay records the delay that a source asks for, 0 for none, in a file that has to be read
// again at a time. It reports whether the delay has changed.
func (l *limiter) setCrawlDelay(now instant, source Source, written time.Duration, until instant) (changed bool) {
	written = max(written, 0)
	if l.paced == nil && written == 0 {
		return false
	}
	p := l.slowed()
	d := p.crawlDelayOf(&source)
	if d == nil {
		if written == 0 {
			return false
		}
		d = new(crawlDelay)
		p.crawlDelays = slices.DeleteFunc(p.crawlDelays, func(d *crawlDelay) bool { return !l.holds(now, d) })
		p.crawlDelays = append(p.crawlDelays, d)
	}
	before := time.Duration(0)
	if l.holds(now, d) {
		before = d.written
	}
	d.source = source
	d.written = written
	d.until = max(until, now).add(l.grace(d))
	return written != before
}

// crawlDelayOf returns what a source asks for, or nil if it has never asked for a delay.
func (p *paced) crawlDelayOf(source *Source) *crawlDelay {
	for _, d := range p.crawlDelays {
		if d.source.is(source) {
			return d
		}
	}
	return nil
}

// holds reports whether d is in force at now. If not, it has lapsed for good.
func (l *limiter) holds(now instant, d *crawlDelay) bool {
	if d.written == 0 {
		return false
	}
	if d.until >= now {
		return true
	}
	if !l.isObeyed(now, d) {
		d.written = 0
		return false
	}
	d.until = now.add(l.grace(d))
	return true
}

// isObeyed reports whether a request that obeys d waits or is on the wire.
func (l *limiter) isObeyed(now instant, d *crawlDelay) bool {
	p := l.paced
	for _, tickets := range [...]*list{&l.inFlight, &p.urgent, &p.waiting} {
		for t := range tickets.all {
			if t.obeys(d) && (t.state == waiting || t.state == urgent || !t.lapsed(now)) {
				return true
			}
		}
	}
	return false
}

// used notes that t, which has started, is a use of the delays that it obeys.
func (l *limiter) used(now instant, t *Ticket) {
	if l.paced == nil {
		return
	}
	for _, d := range l.paced.crawlDelays {
		if d.written > 0 && t.obeys(d) {
			d.until = max(d.until, now.add(l.grace(d)))
		}
	}
}

// crawlDelay returns what is asked for at now, as written: the most of all sources.
func (l *limiter) crawlDelay(now instant) time.Duration {
	most, _ := l.longestCrawlDelay(now)
	return most
}

// longestCrawlDelay is crawlDelay with the line that asks for it.
func (l *limiter) longestCrawlDelay(now instant) (most time.Duration, line int) {
	if l.paced == nil {
		return 0, 0
	}
	for _, d := range l.paced.crawlDelays {
		if l.holds(now, d) && d.written > most {
			most, line = d.written, d.source.Line
		}
	}
	return most, line
}

// A Cause is where a delay comes from.
type Cause string

// The causes of a delay; "" is that of none.
const (
	CrawlDelay Cause = "crawl_delay"
	MinDelay   Cause = "min_delay"
	BackOff    Cause = "back_off"
	RetryAfter Cause = "retry_after"
)

// cause returns where a delay that is in force at now comes from, with the line of a crawl delay.
// Of two that ask for the same, robots.txt is named first.
func (l *limiter) cause(now instant, delay time.Duration) (Cause, int) {
	crawlDelay, line := l.longestCrawlDelay(now)
	switch {
	case delay <= 0:
		return "", 0
	case l.kept(crawlDelay) == delay:
		return CrawlDelay, line
	case l.least() == delay:
		return MinDelay, 0
	}
	return BackOff, 0
}

// nextCause returns what the next start waits for.
func (l *limiter) nextCause(now instant) (Cause, int) {
	if until := l.notBefore(now); until != 0 && until == l.nextStart(now) {
		return RetryAfter, 0
	}
	return l.cause(now, l.delay(now))
}
