package judge

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/usage"
)

// A HostSettings holds the values of the options that may differ between hosts.
type HostSettings struct {
	Pace     pace.Rules
	Grouping exchange.Sharing // of PaceBy
	Reading
	IgnoreRobots bool
	LongDelays
	UsageSettings
	RuleSettings
	HostLimits
	Revalidation

	index int // the index in Settings.All of the first settings that read robots.txt alike
}

// A Reading says how robots.txt is read. Under equal Readings, the same rules apply to a crawler with
// the same user agent.
type Reading struct {
	Dialect         dialect.Dialect
	Tokens          []string // of ProductToken; nil if the option is not set
	HonorDelays     bool
	RobotsTxt       []byte        // of RobotsTxt; nil if the option is not set
	WhenUnreachable policy.Access // 0 if the option is not set
	WhenForbidden   policy.Access // 0 if the option is not set
}

// A LongDelays says what happens with hosts that ask for a long crawl delay.
type LongDelays struct {
	MaxCrawlDelay       time.Duration // 0 if the option is not set
	SkipCrawlDelayAbove time.Duration // 0 if the option is not set
}

// A UsageSettings holds the options about the use of the content.
type UsageSettings struct {
	Purpose      usage.Purpose // 0 if the option is not set
	EnforceUsage bool
	TDMRep       bool
}

// A HostLimits holds the options that react to the responses of a host, or limit their number.
type HostLimits struct {
	RetryThrottled    int // how often a page with status 429 or 503 is requested again
	StopAfterRefusals int // 0 if no host is stopped
	MaxPagesPerHost   int // 0 if there is no limit
}

// A Revalidation holds the option Revalidate.
type Revalidation struct {
	Revalidate bool
	SkipFresh  bool
	Listener   any // the function of Revalidation.OnUnchanged, which only the root knows; nil if there is none
}

// Skips reports whether a host with this crawl delay is skipped.
func (l *LongDelays) Skips(crawlDelay time.Duration) bool {
	return l.SkipCrawlDelayAbove > 0 && crawlDelay > l.SkipCrawlDelayAbove
}

// Caps reports whether a crawl delay is longer than MaxCrawlDelay.
func (l *LongDelays) Caps(crawlDelay time.Duration) bool {
	return l.MaxCrawlDelay > 0 && crawlDelay > l.MaxCrawlDelay
}

// longest returns the longest crawl delay that is kept, or 0 if there is no limit. A skipped host still
// gets requests for its robots.txt. These wait no longer than SkipCrawlDelayAbove.
func (l *LongDelays) longest() time.Duration {
	if l.MaxCrawlDelay == 0 || l.SkipCrawlDelayAbove == 0 {
		return max(l.MaxCrawlDelay, l.SkipCrawlDelayAbove)
	}
	return min(l.MaxCrawlDelay, l.SkipCrawlDelayAbove)
}

// ProductTokens returns the names that a crawler with this user agent looks for in robots.txt under
// d.
func (s *HostSettings) ProductTokens(d dialect.Dialect, userAgent string) []string {
	if s.Tokens != nil {
		return s.Tokens
	}
	if d == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks up the whole user agent
	}
	return []string{dialect.TokenOf(userAgent)}
}

// ByCollector reports whether robots.txt is read for the UserAgent of the collector, whatever user
// agent a request is sent with. Colly's built-in check does the same.
func (s *HostSettings) ByCollector() bool { return s.Tokens == nil && s.Dialect == dialect.Temoto() }

// A Settings holds the settings of all hosts.
type Settings struct {
	HostSettings            // applies to hosts that match no rule
	PerHost      []HostRule // the first rule that matches a host applies
}

// A HostRule holds the settings of the hosts that match the pattern of ForHosts.
type HostRule struct {
	Pattern string
	HostSettings
}

// Of returns the settings of a host.
func (s *Settings) Of(host string) *HostSettings {
	for i := range s.PerHost {
		if s.PerHost[i].matches(host) {
			return &s.PerHost[i].HostSettings
		}
	}
	return &s.HostSettings
}

// equals reports whether r and o are equal.
func (r *Reading) equals(o *Reading) bool {
	return r.Dialect == o.Dialect &&
		slices.Equal(r.Tokens, o.Tokens) &&
		r.HonorDelays == o.HonorDelays &&
		(r.RobotsTxt == nil) == (o.RobotsTxt == nil) &&
		bytes.Equal(r.RobotsTxt, o.RobotsTxt) &&
		r.WhenUnreachable == o.WhenUnreachable &&
		r.WhenForbidden == o.WhenForbidden
}

// ofSite returns the settings of the site of an authority, which may be one that a Host header
// names.
func (s *Settings) ofSite(a dialect.Authority) *HostSettings {
	site, _, _ := strings.Cut(a.Host, "@")
	return s.Of(site)
}

// All returns the settings of the hosts that match no rule, and then those of each rule.
func (s *Settings) All() []*HostSettings {
	all := []*HostSettings{&s.HostSettings}
	for i := range s.PerHost {
		all = append(all, &s.PerHost[i].HostSettings)
	}
	return all
}

// Complete sets the fields that follow from the others.
func (s *Settings) Complete(dryRun bool) {
	all := s.All()
	for _, s := range all {
		s.index = slices.IndexFunc(all, func(o *HostSettings) bool { return s.Reading.equals(&o.Reading) })
		s.Pace.Free = dryRun
		s.Pace.MaxCrawlDelay = s.longest()
		s.Pace.Shares = s.Grouping != exchange.Alone
	}
}

// matches reports whether the pattern matches a host, with or without its port.
func (h *HostRule) matches(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name = host[:i]
	}
	for _, s := range [...]string{host, name} {
		if ok, _ := path.Match(h.Pattern, s); ok {
			return true
		}
	}
	return false
}

// override returns the name of the option that decides in place of the robots.txt of pol, or in
// place of the dialect. It returns "" if there is none.
func (s *HostSettings) override(pol *policy.Policy) string {
	return pol.Override(s.WhenUnreachable, s.WhenForbidden)
}

// RobotsTxtWarnings calls warn if the dialect does not read every line of RobotsTxt as written.
func (s *HostSettings) RobotsTxtWarnings(warn func(what string, args ...any)) {
	if s.RobotsTxt == nil {
		return
	}
	issues := s.Dialect.Lint(s.RobotsTxt)
	if len(issues) > 0 {
		warn("RobotsTxt has lines that the dialect ignores or changes; the error is about the first",
			"error", issues[0].String(), "count", len(issues), "dialect", s.Dialect)
	}
}

// Groupings returns a function that returns the Grouping of a host. The function is nil if no hosts
// share their pace.
func (s *Settings) Groupings() func(host string) exchange.Sharing {
	if !s.IsForAny(func(s *HostSettings) bool { return s.Grouping != exchange.Alone }) {
		return nil
	}
	return func(host string) exchange.Sharing { return s.Of(host).Grouping }
}

// nameFor returns the name under which robots.txt is read for a request with a user agent, whose
// robots.txt f fetches.
func (s *HostSettings) nameFor(f *exchange.Fetcher, userAgent string) string {
	if name := f.Client.UserAgent(); name != nil && s.ByCollector() {
		return *name // which may be empty, as for the built-in check
	}
	return userAgent
}

// IsForAny reports whether an option is set for any host.
func (s *Settings) IsForAny(isSet func(*HostSettings) bool) bool {
	return slices.ContainsFunc(s.All(), isSet)
}

// Purposes returns the labels of what the crawl is for on any host, or "" without the option
// Purpose.
func (s *Settings) Purposes() string {
	var all usage.Purpose
	for _, host := range s.All() {
		all |= host.Purpose
	}
	return strings.ReplaceAll(all.String(), "|", ", ")
}

// CompliesEverywhere reports whether the robots.txt of every host is obeyed as RFC 9309 says.
func (s *Settings) CompliesEverywhere() bool {
	for _, host := range s.All() {
		if host.IgnoreRobots || host.Dialect != dialect.RFC9309() {
			return false
		}
	}
	return true
}

// Rate says how often a host is requested at most, or returns "" if no option limits that.
func (s *Settings) Rate() string {
	least := s.Pace.MinDelay
	for _, host := range s.PerHost {
		least = min(least, host.Pace.MinDelay)
	}
	if least == 0 {
		return ""
	}
	return fmt.Sprintf("at most one request to a host every %v", least)
}
