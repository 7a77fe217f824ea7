// Package policy provides the robots.txt that is in force for each site. It fetches the file,
// decides under a dialect which rules the response puts in force, keeps the result for as long as
// the dialect allows, and uses the last good copy while the file cannot be read.
//
// The result of a fetch does not depend on the dialect. Each dialect interprets it by its own table
// of access results (RFC 9309, section 2.3.1). Therefore a stored result can be read under another
// dialect, by another process or in a later run.
package policy

import (
	"encoding/hex"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A Policy says which rules apply to the pages of one authority. It is immutable, so any number of
// goroutines may use it. It is small, because a cache keeps very many policies: values that can be
// derived are methods. A Policy that is made from Authority and RobotsStatus alone has no rules, no
// times and no error.
type Policy struct {
	Authority    dialect.Authority
	RobotsStatus RobotsStatus

	expires instant
	copy    *goodCopy // the last good copy, which the next fetch builds on; nil if there is none
	failure *failure  // why copy could not be renewed; nil if the last fetch succeeded
}

// IgnoredUntil returns the policy of an authority whose robots.txt is ignored. It expires at until.
func IgnoredUntil(until time.Time, a dialect.Authority) *Policy {
	return &Policy{Authority: a, RobotsStatus: NoRobots, expires: instantOf(until)}
}

// RobotsURL returns the URL of the robots.txt.
func (p *Policy) RobotsURL() string { return p.Authority.RobotsURL() }

// Group returns the rules that apply. It is never nil, and has no rules unless RobotsStatus is
// Rules.
func (p *Policy) Group() *dialect.Group {
	if f := p.rules(); f != nil {
		return f.group
	}
	return noRules
}

var noRules = dialect.RFC9309().Parse(nil).Group()

// Sitemaps returns the sitemaps that the file lists, as they are written. The slice is shared: the
// caller must not change it.
func (p *Policy) Sitemaps() []string {
	if f := p.rules(); f != nil {
		return f.sitemaps
	}
	return nil
}

// CrawlDelay returns the crawl delay of the group as the dialect reads it. It returns 0 if the
// group has none.
func (p *Policy) CrawlDelay() time.Duration {
	f := p.rules()
	if f == nil {
		return 0
	}
	delay, _ := f.crawlDelay()
	return delay
}

// LastCrawlDelay returns the crawl delay of the last file that could be read, and its line. Unlike
// CrawlDelay, it does so also while the file cannot be read. It reports false if no file is known.
func (p *Policy) LastCrawlDelay() (delay time.Duration, line int, known bool) {
	f := p.rules()
	if p.failure != nil {
		if p.copy == nil {
			return 0, 0, false
		}
		f = p.copy.parsed
	}
	if f == nil {
		return 0, 0, true
	}
	delay, line = f.crawlDelay()
	return delay, line, true
}

// LastSchedule returns the Request-rate and Visit-time lines of the group in the last file that
// could be read. It returns nil if there are none.
func (p *Policy) LastSchedule() *dialect.Schedule {
	f := p.rules()
	if p.failure != nil && p.copy != nil {
		f = p.copy.parsed
	}
	if f == nil {
		return nil
	}
	return f.others.schedule
}

// CleanParams returns the query parameters that do not change a page, as the dialect reads them. It
// returns nil if there are none.
func (p *Policy) CleanParams() dialect.CleanParams {
	if f := p.rules(); f != nil {
		return f.others.cleanParams
	}
	return nil
}

// Usage returns what the file says about the use of content. It returns nil if that is nothing.
func (p *Policy) Usage() *usage.RobotsTxt {
	if f := p.rules(); f != nil {
		return f.others.usage
	}
	return nil
}

// rules returns the file whose rules apply, or nil if no rules apply.
func (p *Policy) rules() *parsedFile {
	if p.RobotsStatus != Rules || p.copy == nil {
		return nil
	}
	return p.copy.parsed
}

// Sum returns the first 32 hexadecimal digits of the SHA-256 of the file whose rules apply. It
// returns "" if no rules apply.
func (p *Policy) Sum() string {
	f := p.rules()
	if f == nil {
		return ""
	}
	var digits [2 * len(f.sum)]byte
	hex.Encode(digits[:], f.sum[:])
	return string(digits[:])
}

// Status returns the status of the last response to GET /robots.txt, after redirects. It returns 0
// if there was no response, or if nothing was requested.
func (p *Policy) Status() int {
	switch {
	case p.failure != nil:
		return p.failure.status
	case p.copy != nil:
		return int(p.copy.status)
	}
	return 0
}

// Err returns why the last fetch could not read the file: a *StatusError, *RedirectError,
// *NoResponseError, *CodingError or *PanicError, or a Doer's error that wraps ErrForbidden. It is
// nil if the file was read or does not exist. A file that was answered with status 401 or 403
// counts as one that does not exist, unless Options.WhenForbidden is DenyAll.
func (p *Policy) Err() error {
	switch {
	case p.failure != nil:
		return p.failure.err
	case p.copy != nil && p.copy.class == tooManyRedirects:
		return &RedirectError{
			Status:   int(p.copy.status),
			TooMany:  true,
			Followed: int(p.copy.redirects) - 1,
		}
	case p.copy != nil && p.copy.isForbidden() && p.RobotsStatus == Unreachable:
		return &StatusError{Status: int(p.copy.status)}
	}
	return nil
}

// Given reports whether p is Options.Given and not the file of the site.
func (p *Policy) Given() bool { return p.copy != nil && p.copy.given }

// Refused reports whether the last response was status 401 or 403, so that Options.WhenForbidden
// applies.
func (p *Policy) Refused() bool { return p.failure == nil && p.copy != nil && p.copy.isForbidden() }

// Fetched returns when the copy in force was fetched or confirmed. If no copy is in force, it
// returns when the last fetch ended. It is the zero time if the file was never requested.
func (p *Policy) Fetched() time.Time {
	if p.failure != nil && p.copy != nil && p.RobotsStatus == Rules {
		return p.copy.fetched.time()
	}
	return p.tried().time()
}

// tried returns when the last fetch ended. It is 0 if the file was never requested.
func (p *Policy) tried() instant {
	switch {
	case p.failure != nil:
		return p.failure.last
	case p.copy != nil:
		return p.copy.fetched
	}
	return 0
}

// Expires returns when robots.txt is fetched again. It is the zero time if the file was never
// requested.
func (p *Policy) Expires() time.Time { return p.expires.time() }

// Fresh reports whether p has not expired at now. A nil Policy is not fresh.
func (p *Policy) Fresh(now time.Time) bool { return p != nil && instantOf(now) < p.expires }

// MayServe reports whether p, which has expired, may still be used at now while another caller
// fetches the file again. The period is as long as a fetch may take, so that no caller uses an old
// copy for long. A policy that allows nothing is not used: the caller should wait for the fetch
// instead. MayServe reports false if p is nil, or if no file was read for it, as for IgnoredUntil.
func (p *Policy) MayServe(now time.Time) bool {
	return p != nil && p.tried() != 0 && p.RobotsStatus >= NoRobots && instantOf(now) < p.expires.add(FetchLimit)
}

// MayDecide reports whether p, which has expired, may still be used at now for a request to a host
// with a delay. It may be used for the first request after the file was read. This request starts
// one delay after the fetch. If the file had to be read again first, which also takes one delay,
// the request would never start. MayDecide reports false if p is nil.
func (p *Policy) MayDecide(now time.Time, delay time.Duration) bool {
	return p != nil && delay > 0 && p.RobotsStatus >= NoRobots && instantOf(now) < p.tried().add(delay).add(FetchLimit)
}

// ReadSince reports whether p is the result of a fetch that ended at since or later, and holds for all
// ways of fetching. It reports false if p is nil or since is zero.
func (p *Policy) ReadSince(since time.Time) bool {
	return p != nil && !since.IsZero() && !p.unanswered() && p.tried() >= instantOf(since)
}

// SiteAnswered records that a page of the policy's authority was answered, which shows that the
// site is available although its robots.txt is not. It does nothing unless p is Failing.
func (p *Policy) SiteAnswered() {
	if p.failure != nil {
		p.failure.answered.set(now())
	}
}

// Failing reports whether the last fetch could not read the file. Only then is a call of
// [Policy.SiteAnswered] of use.
func (p *Policy) Failing() bool { return p.failure != nil }

// Forbidden reports whether a [Doer] refused to send the request for the file. The reason is the
// caller's and not the site's. Therefore only the callers that waited for that fetch get such a
// policy, and the cache does not keep it.
func (p *Policy) Forbidden() bool { return p.failure.forbidden() }

// Stale reports whether the rules in force are those of an older copy, because the last fetch could
// not read the file. Err returns the reason.
func (p *Policy) Stale() bool { return p.RobotsStatus == Rules && p.Failing() }

// differs reports whether p has another RobotsStatus than old, or the rules of another text.
func (p *Policy) differs(old *Policy) bool {
	return p.RobotsStatus != old.RobotsStatus || p.RobotsStatus == Rules && p.copy.parsed.sum != old.copy.parsed.sum
}
