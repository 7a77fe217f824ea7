package judge

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A HostSettings holds the values of the options that may differ between hosts.
type HostSettings struct {
	Pace     pace.Rules
	Grouping exchange.Sharing // of PaceBy
	Reading
	Permission report.Permission // of IgnoreRobots; zero if the option is not set
	LongDelays
	UsageSettings
	RuleSettings
	HostLimits
	Revalidation

	// Err is the fault of the options that HostOptions has returned for the host. No request is sent to it.
	Err error

	alike *alike // shared by the settings that read robots.txt alike
}

// An alike is shared by the settings that read robots.txt alike.
type alike struct {
	Reading
	number int
	last   atomic.Pointer[Reader] // the reader that was last used
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
	Retries           *Retries // nil if nothing is repeated
	StopAfterRefusals int      // 0 if no host is stopped
	MaxPagesPerHost   int      // 0 if there is no limit
}

// A Revalidation holds the option Revalidate.
type Revalidation struct {
	Revalidate bool
	SkipFresh  bool
	Listener   any // the function of Revalidation.OnUnchanged, which only the root knows; nil if there is none
}

// IgnoresRobots reports whether robots.txt is ignored at now.
func (s *HostSettings) IgnoresRobots(now time.Time) bool { return now.Before(s.Permission.Until) }

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

// A Settings holds the settings of all hosts. The settings of a host are made when they are first needed.
type Settings struct {
	HostSettings            // of the hosts that no rule concerns
	Rules        []HostRule // each that concerns a host applies, in this order

	dryRun bool
	mu     sync.RWMutex // protects the fields below it
	alikes []*alike
	known  map[[sha256.Size]byte]*alike // alikes by the sum of their Reading
	made   map[step]*HostSettings
	byHost int // the number of keys of made with a host
}

// A HostRule changes the settings of some hosts.
type HostRule struct {
	Pattern string // of ForHosts; "" if the rule concerns all hosts
	ByHost  bool   // whether Apply depends on the host
	// Apply changes the settings of a host. It reports whether there is anything to change.
	Apply func(host string, s *HostSettings) (changes bool, err error)
}

// A step leads from some settings to those of a host that a rule concerns.
type step struct {
	from *HostSettings
	rule int
	host string // "" unless the rule depends on it
}

// maxByHost bounds the memory for settings that depend on the host. When there are more, they are made
// again.
const maxByHost = 100_000

// Of returns the settings of a host.
func (s *Settings) Of(host string) *HostSettings {
	found := &s.HostSettings
	for i := range s.Rules {
		if s.Rules[i].matches(host) {
			found = s.changed(found, i, host)
		}
	}
	return found
}

// changed returns the settings that a rule makes of others for a host.
func (s *Settings) changed(from *HostSettings, rule int, host string) *HostSettings {
	r := &s.Rules[rule]
	next := step{from: from, rule: rule}
	if r.ByHost {
		next.host = host
	}
	s.mu.RLock()
	found := s.made[next]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	settings := *from
	changes, err := r.Apply(host, &settings)
	settings.Err = cmp.Or(err, settings.Err)
	s.mu.Lock()
	defer s.mu.Unlock()
	found = s.made[next]
	if found != nil {
		return found
	}
	found = from
	if changes || err != nil {
		found = &settings
		s.complete(found)
	}
	s.keep(next, found)
	return found
}

// keep remembers where a step leads to. s.mu is held.
func (s *Settings) keep(next step, found *HostSettings) {
	if next.host != "" {
		next.host = strings.Clone(next.host)
		s.byHost++
	}
	if s.byHost > maxByHost {
		clear(s.made)
		s.byHost = 1
	}
	s.made[next] = found
}

// complete sets the fields of h that follow from the others. s.mu is held.
func (s *Settings) complete(h *HostSettings) {
	h.Pace.Free = s.dryRun
	h.Pace.MaxCrawlDelay = h.longest()
	h.Pace.Shares = h.Grouping != exchange.Alone
	sum := h.Reading.sum()
	h.alike = s.known[sum]
	if h.alike == nil {
		h.alike = &alike{Reading: h.Reading, number: len(s.alikes)}
		s.alikes = append(s.alikes, h.alike)
		s.known[sum] = h.alike
	}
}

// Complete must be called when all settings and rules are known, before the other methods.
func (s *Settings) Complete(dryRun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dryRun = dryRun
	s.made = make(map[step]*HostSettings)
	s.known = make(map[[sha256.Size]byte]*alike)
	s.complete(&s.HostSettings)
}

// sum returns a checksum, which is the same for equal readings.
func (r *Reading) sum() [sha256.Size]byte {
	facts := fmt.Appendf(nil, "%v %q %v %v %v %v ", r.Dialect, r.Tokens, r.HonorDelays, r.RobotsTxt == nil, r.WhenUnreachable, r.WhenForbidden)
	return sha256.Sum256(append(facts, r.RobotsTxt...))
}

// ofSite returns the settings of the site of an authority, which may be one that a Host header
// names.
func (s *Settings) ofSite(a dialect.Authority) *HostSettings {
	site, _, _ := strings.Cut(a.Host, "@")
	return s.Of(site)
}

// All returns the settings of the hosts that no rule concerns, and those of the hosts that exactly one
// rule concerns, except for rules that depend on the host.
func (s *Settings) All() []*HostSettings {
	all := []*HostSettings{&s.HostSettings}
	for i := range s.Rules {
		if !s.Rules[i].ByHost {
			all = append(all, s.changed(&s.HostSettings, i, ""))
		}
	}
	return all
}

// DependOnHost reports whether a rule depends on the host, so that All lacks settings.
func (s *Settings) DependOnHost() bool {
	return slices.ContainsFunc(s.Rules, func(r HostRule) bool { return r.ByHost })
}

// readings returns the ways in which robots.txt is read so far.
func (s *Settings) readings() []*alike {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.alikes[:len(s.alikes):len(s.alikes)]
}

// matches reports whether the rule concerns a host: its pattern matches the host with or without the port.
func (h *HostRule) matches(host string) bool {
	if h.Pattern == "" {
		return true
	}
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

// IsForAny reports whether an option may be set for any host.
func (s *Settings) IsForAny(isSet func(*HostSettings) bool) bool {
	return s.DependOnHost() || slices.ContainsFunc(s.All(), isSet)
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

// CompliesEverywhere reports whether the robots.txt of every host is obeyed as RFC 9309 says. It reports
// false if that is not known.
func (s *Settings) CompliesEverywhere() bool {
	if s.DependOnHost() {
		return false
	}
	for _, host := range s.All() {
		if !host.Permission.Until.IsZero() || host.Dialect != dialect.RFC9309() {
			return false
		}
	}
	return true
}

// Rate says how often a host is requested at most, or returns "" if no option limits that, or if the
// limits are not known.
func (s *Settings) Rate() string {
	least := s.Pace.MinDelay
	for _, host := range s.All() {
		least = min(least, host.Pace.MinDelay)
	}
	if least == 0 || s.DependOnHost() {
		return ""
	}
	return fmt.Sprintf("at most one request to a host every %v", least)
}
