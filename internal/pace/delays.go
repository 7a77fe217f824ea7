package pace

import (
	"slices"
	"time"
)

// A Source is a robots.txt as one crawler reads it: it may ask for a crawl delay.
type Source struct {
	Scheme string // "http" or "https"
	Reader string // whose name it is read under; crawlers with several names have several
}

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
	i := slices.IndexFunc(p.crawlDelays, func(d crawlDelay) bool { return d.source == source })
	if i >= 0 && p.crawlDelays[i].written == written && p.crawlDelays[i].until >= now {
		p.crawlDelays[i].until = until
		return false
	}
	p.crawlDelays = slices.DeleteFunc(p.crawlDelays, func(d crawlDelay) bool {
		changed = changed || d.source == source && d.until >= now
		return d.source == source || d.until < now
	})
	if written > 0 {
		p.crawlDelays = append(p.crawlDelays, crawlDelay{source, written, until})
		changed = true
	}
	return changed
}

// crawlDelay returns what is asked for at now, as written: the most of all sources.
func (l *limiter) crawlDelay(now instant) (most time.Duration) {
	if l.paced == nil {
		return 0
	}
	for _, d := range l.paced.crawlDelays {
		if d.until >= now {
			most = max(most, d.written)
		}
	}
	return most
}
