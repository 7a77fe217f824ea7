package policy

import (
	"cmp"
	"net/http"
)

// An Access replaces what a dialect says about a robots.txt that could not be read.
type Access uint8

const (
	ByDialect Access = iota // the dialect decides
	DenyAll                 // nothing is allowed
	AllowAll                // the last good copy applies; without one, there is no restriction
)

// The options of the root package that decide in place of a robots.txt or of the dialect.
const (
	OptionRobotsTxt       = "RobotsTxt"
	OptionWhenUnreachable = "WhenUnreachable"
	OptionWhenForbidden   = "WhenForbidden"
)

// Override returns the name of the option that decides about p. It returns "" if the robots.txt of
// the site or the dialect decides.
func (p *Policy) Override(whenUnreachable, whenForbidden Access) string {
	switch {
	case p.Given():
		return OptionRobotsTxt
	case whenUnreachable != ByDialect && p.Failing():
		return OptionWhenUnreachable
	case whenForbidden != ByDialect && p.Refused():
		return OptionWhenForbidden
	}
	return ""
}

// status returns the RobotsStatus of a file that is answered with status 401 or 403.
func (a Access) status() RobotsStatus {
	if a == DenyAll {
		return Unreachable
	}
	return NoRobots
}

// isForbidden reports whether s is the response that the crawler may not read the file.
func (s *goodCopy) isForbidden() bool {
	return s.status == http.StatusUnauthorized || s.status == http.StatusForbidden
}

// tableFor returns the table of the dialect of o, as the options change it.
func tableFor(o Options) *accessTable {
	t := tableOf(o.Dialect)
	if o.WhenUnreachable == ByDialect && o.WhenForbidden == ByDialect {
		return t
	}
	changed := *t
	changed.forbidden = o.WhenForbidden
	if o.WhenUnreachable != ByDialect {
		changed.setUnreachable(o.WhenUnreachable)
	}
	return &changed
}

// unreachable are the classes of responses that leave the content of the file unknown. These are
// all classes that are not definite.
var unreachable = [...]class{noResponse, undefined, throttled, serverError}

// setUnreachable makes t treat an unreachable file as a requires, during the whole outage. AllowAll
// does not change responses that the dialect itself treats as no restriction.
//
// The times of the next fetches remain those of t. Some dialects have no such times, because they
// have no rule for an outage or fetch the file for each page. They get the times of RFC 9309.
func (t *accessTable) setUnreachable(a Access) {
	then := stop
	if a == AllowAll {
		then = copyElseOpen
	}
	t.stages = []stage{{from: 0, then: then}}
	for _, c := range unreachable {
		if a == DenyAll || t.on[c] != open {
			t.on[c] = outage
		}
	}
	t.retry = cmp.Or(t.retry, rfc9309.retry)
	t.retryUnreadable = cmp.Or(t.retryUnreadable, rfc9309.retryUnreadable)
	t.retryUnanswered = cmp.Or(t.retryUnanswered, rfc9309.retryUnanswered)
}
