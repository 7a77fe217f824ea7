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

// A crawlDelay is what a source asks for.
type crawlDelay struct {
	source  Source
	written time.Duration
	until   instant // when it lapses
}

// setCrawlDelay records what a source asks for until a time, 0 for nothing, and reports whether
// that has changed.
func (l *limiter) setCrawlDelay(now instant, source Source, written time.Duration, until instant) (changed bool) {
	written = max(written, 0)
	if l.paced == nil && written == 0 {
		return false
	}
	p := l.slowed()
	i := slices.IndexFunc(p.crawlDelays, func(d crawlDelay) bool { return d.source.is(&source) })
	if i >= 0 && p.crawlDelays[i].written == written && p.crawlDelays[i].until >= now {
		p.crawlDelays[i].until, p.crawlDelays[i].source.Line = until, source.Line
		return false
	}
	p.crawlDelays = slices.DeleteFunc(p.crawlDelays, func(d crawlDelay) bool {
		changed = changed || d.source.is(&source) && d.until >= now
		return d.source.is(&source) || d.until < now
	})
	if written > 0 {
		p.crawlDelays = append(p.crawlDelays, crawlDelay{source, written, until})
		changed = true
	}
	return changed
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
	for i := range l.paced.crawlDelays {
		if d := &l.paced.crawlDelays[i]; d.until >= now && d.written > most {
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
	case l.rules.MinDelay == delay:
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
