package collyrobots

import (
	"bytes"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// An Access says how to treat a site with a robots.txt that could not be read. The zero Access is
// not valid.
type Access uint8

const (
	// DenyAll denies every page.
	DenyAll Access = iota + 1
	// AllowAll allows every page. If a robots.txt of the site was read before it became
	// unreachable, its rules still apply.
	AllowAll
)

// String returns "deny_all" or "allow_all".
func (a Access) String() string {
	if a == AllowAll {
		return "allow_all"
	}
	return "deny_all"
}

// accessFault returns the fault of an option with the Access a, or nil.
func accessFault(option string, a Access) error {
	return faultIf(a != DenyAll && a != AllowAll, option, "%d is not DenyAll or AllowAll", uint8(a))
}

// RobotsTxt uses body in place of the robots.txt of some hosts. It can only be used inside
// ForHosts. The robots.txt of these hosts is not requested, and one that is in the Store has no
// effect. body is read in the dialect and for the product tokens of the crawl. All of its lines
// apply: rules, Crawl-delay, and the other lines that the dialect defines. FollowSitemaps and Pages
// read the sitemaps that body lists, and not those that the sites list. The Store never contains
// body.
//
// Use it for hosts whose owner has sent you rules that differ from the published file. An empty
// body allows everything. A nil body is an error, because it is most likely a file that could not
// be read. Lines that the dialect ignores are logged.
//
// Decision.Option is "RobotsTxt" for such hosts, and an Event of kind report.EventRobots reports the first
// use of body for each site. If both RobotsTxt and IgnoreRobotsWithPermission are given, the later
// one applies.
func RobotsTxt(body []byte) Option {
	body = bytes.Clone(body)
	o := hostOption(policy.OptionRobotsTxt, func(s *hostSettings) {
		s.robotsTxt = body
		s.ignoreRobots = false
	}, faultIf(body == nil, policy.OptionRobotsTxt, "the file is nil; an empty file, []byte{}, allows everything"))
	o.onlyPerHost = true
	return o
}

// WhenUnreachable says how to treat a site with an unreachable robots.txt, in place of the dialect.
// A robots.txt is unreachable if the request for it gets no complete response, if the status is
// 5xx, 429 or one that HTTP does not define, or if a redirect cannot be followed (RFC 9309, section
// 2.3.1.4).
//
// Without the option, the dialects differ: RFC 9309 and Google deny everything at first and allow
// it after 30 days or 12 hours, and Coc Coc and Yandex allow everything at once if there is a
// response. With DenyAll, all pages are denied until the file can be read. With AllowAll, the last
// robots.txt that was read applies, or everything is allowed if there is none. AllowAll never
// denies more than the dialect.
//
// The option does not change when robots.txt is requested again. A host that answers 429 or 503
// still gets fewer requests. In most dialects, a site with too many redirects has no robots.txt, so
// the option does not affect it. Decision.Option is "WhenUnreachable" if this option has decided.
func WhenUnreachable(a Access) Option {
	return hostOption(policy.OptionWhenUnreachable, func(s *hostSettings) { s.whenUnreachable = a },
		accessFault(policy.OptionWhenUnreachable, a))
}

// WhenForbidden says how to treat a site that answers the request for robots.txt with status 401 or
// 403. Without the option, such a site has no robots.txt in all dialects, and everything is allowed
// (RFC 9309, section 2.3.1.3). The specification of 1996 recommended requesting nothing, as with
// DenyAll.
//
// The decision holds as long as that response may be cached: one day, unless Cache-Control shortens
// that. Decision.Option is "WhenForbidden" if this option has decided.
func WhenForbidden(a Access) Option {
	return hostOption(policy.OptionWhenForbidden, func(s *hostSettings) { s.whenForbidden = a },
		accessFault(policy.OptionWhenForbidden, a))
}

// override returns the name of the option that decides in place of the robots.txt of pol, or in
// place of the dialect. It returns "" if there is none.
func (s *hostSettings) override(pol *policy.Policy) string {
	return pol.Override(policy.Access(s.whenUnreachable), policy.Access(s.whenForbidden))
}

// fileOf returns the name of a robots.txt for the log.
func fileOf(pol *policy.Policy) string {
	if pol.Given() {
		return "option " + policy.OptionRobotsTxt
	}
	return pol.RobotsURL()
}

// robotsTxtWarnings calls warn if the dialect does not read every line of RobotsTxt as written.
func (s *hostSettings) robotsTxtWarnings(warn func(what string, args ...any)) {
	if s.robotsTxt == nil {
		return
	}
	issues := s.dialect.Lint(s.robotsTxt)
	if len(issues) > 0 {
		warn("RobotsTxt has lines that the dialect ignores or changes; the error is about the first",
			"error", issues[0].String(), "count", len(issues), "dialect", s.dialect)
	}
}
