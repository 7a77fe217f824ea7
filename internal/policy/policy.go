// Package policy knows what each site's robots.txt says at the moment: it fetches the file, decides
// what the response means under a dialect, keeps that for as long as the dialect allows, and falls
// back on the last good copy when the file cannot be read.
//
// What a fetch brings is the same for every dialect; what it means is that dialect's table of
// access results (RFC 9309, section 2.3.1). So it can be kept in a store and read by another
// dialect, another process or a later run.
package policy

import (
	"encoding/hex"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Policy is what governs the pages of one authority at the time it was asked for. It is
// immutable, so any number of goroutines may use it, and small, since a cache keeps very many: what
// can be derived is a method. A Policy made from Authority and RobotsStatus alone has no rules, no times
// and no error.
type Policy struct {
	Authority    dialect.Authority
	RobotsStatus RobotsStatus

	expires instant
	copy    *goodCopy // what the next fetch builds on; nil: there is none
	failure *failure  // why copy could not be renewed; nil: it was
}

// RobotsURL returns where the robots.txt is.
func (p *Policy) RobotsURL() string { return p.Authority.RobotsURL() }

// Group returns the rules that apply. It is never nil, and has no rules unless RobotsStatus is Rules.
func (p *Policy) Group() *dialect.Group {
	if r := p.rules(); r != nil {
		return r.group
	}
	return noRules
}

var noRules = dialect.RFC9309().Parse(nil).Group()

// Sitemaps returns the sitemaps that the file lists, as it lists them. They are shared: the caller
// must not change them.
func (p *Policy) Sitemaps() []string {
	if r := p.rules(); r != nil {
		return r.sitemaps
	}
	return nil
}

// CrawlDelay returns the group's Crawl-delay as the dialect reads it; 0: it has none, or asks for
// none.
func (p *Policy) CrawlDelay() time.Duration {
	d, _ := p.crawlDelay()
	return d
}

// CrawlDelayLine returns the line that CrawlDelay comes from; 0: there is none, or it is not known.
func (p *Policy) CrawlDelayLine() int {
	if _, ok := p.crawlDelay(); !ok {
		return 0
	}
	return p.rules().group.DelayLine()
}

// LastCrawlDelay returns the Crawl-delay of the last file that could be read, and its line. Unlike
// CrawlDelay, it still does while the file cannot be read. It reports false if no file is known.
func (p *Policy) LastCrawlDelay() (delay time.Duration, line int, known bool) {
	if p.failure == nil {
		return p.CrawlDelay(), p.CrawlDelayLine(), true
	}
	if p.copy == nil {
		return 0, 0, false
	}
	if p.copy.reading == nil {
		return 0, 0, true
	}
	delay, _ = p.copy.reading.crawlDelay()
	return delay, p.copy.reading.group.DelayLine(), true
}

// HasCrawlDelay reports whether the group has a Crawl-delay, which may be 0.
func (p *Policy) HasCrawlDelay() bool {
	_, ok := p.crawlDelay()
	return ok
}

func (p *Policy) crawlDelay() (time.Duration, bool) {
	if r := p.rules(); r != nil {
		return r.crawlDelay()
	}
	return 0, false
}

// rules returns the text in force, nil if none is.
func (p *Policy) rules() *reading {
	if p.RobotsStatus != Rules || p.copy == nil {
		return nil
	}
	return p.copy.reading
}

// Sum returns the first 32 hexadecimal digits of the SHA-256 of the rules' text; "": there are no
// rules.
func (p *Policy) Sum() string {
	r := p.rules()
	if r == nil {
		return ""
	}
	s := r.sum
	if s == (sum{}) {
		s = sumOf(nil) // the text is empty
	}
	return hex.EncodeToString(s[:])
}

// Status returns the status of the last response to GET /robots.txt, redirects followed; 0: there
// was none.
func (p *Policy) Status() int {
	switch {
	case p.failure != nil:
		return p.failure.status
	case p.copy != nil:
		return int(p.copy.status)
	}
	return 0
}

// Err returns why the file could not be read at the last try: a *StatusError, *RedirectError,
// *NoResponseError, *CodingError or *PanicError, or a Doer's error that wraps ErrForbidden. It is
// nil when the file was read, or is known not to be there.
func (p *Policy) Err() error {
	switch {
	case p.failure != nil:
		return p.failure.err
	case p.copy != nil && p.copy.class == tooManyRedirects:
		return &RedirectError{Status: int(p.copy.status), Hops: int(p.copy.hops) - 1}
	}
	return nil
}

// Fetched returns when the copy in force was fetched or confirmed; without one, when the last try
// ended. It is the zero time if nothing was ever asked for.
func (p *Policy) Fetched() time.Time {
	switch {
	case p.failure != nil && (p.copy == nil || p.RobotsStatus != Rules):
		return p.failure.last.time()
	case p.copy != nil:
		return p.copy.fetched.time()
	}
	return time.Time{}
}

// Expires returns when robots.txt is asked for again; the zero time if nothing was ever asked for.
func (p *Policy) Expires() time.Time { return p.expires.time() }

// Fresh reports whether p still holds at now. A nil Policy does not.
func (p *Policy) Fresh(now time.Time) bool { return p != nil && instantOf(now) < p.expires }

// MayDecide reports whether p, which has expired, may still be used at now for a request to a host
// with a delay. It may for the first request after the file was read. That one starts a delay later,
// and would never start if the file, which costs a delay too, had to be read again first.
func (p *Policy) MayDecide(now time.Time, delay time.Duration) bool {
	return p != nil && delay > 0 && p.RobotsStatus >= NoRobots && instantOf(now) < p.tried().add(delay).add(FetchLimit)
}

// tried returns when the file was asked for last.
func (p *Policy) tried() instant {
	switch {
	case p.failure != nil:
		return p.failure.last
	case p.copy != nil:
		return p.copy.fetched
	}
	return 0
}

// Failing reports whether the file could not be read at the last try. Only then
// [Policy.SiteAnswered] has something to note.
func (p *Policy) Failing() bool { return p.failure != nil }

// Forbidden reports whether a [Doer] refused to ask for the file where it should be. That says
// something about who asked, and nothing about the site: such a policy is for those who waited for
// that fetch, and is not kept.
func (p *Policy) Forbidden() bool { return p.failure.forbidden() }

// Stale reports whether the rules in force are an older copy, because the file could not be read at
// the last try; Err returns why.
func (p *Policy) Stale() bool { return p.RobotsStatus == Rules && p.Failing() }

// differs reports whether p means something else than old: another meaning, or another text of the
// rules.
func (p *Policy) differs(old *Policy) bool {
	return p.RobotsStatus != old.RobotsStatus || p.RobotsStatus == Rules && p.copy.reading.sum != old.copy.reading.sum
}
