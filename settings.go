package collyrobots

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/usage"
)

// A hostSettings holds the values of the options that may differ between hosts.
type hostSettings struct {
	pace            pace.Rules
	dialect         dialect.Dialect
	tokens          []string      // of ProductToken; nil if the option is not set
	maxDelay        time.Duration // of MaxDelay; 0 if the option is not set
	skipAbove       time.Duration // of SkipAbove; 0 if the option is not set
	honorCrawlDelay bool
	honorRate       bool // of HonorRequestRate
	ignoreRobots    bool
	grouping        Grouping      // of PaceBy
	robotsTxt       []byte        // of RobotsTxt; nil if the option is not set
	whenUnreachable Access        // 0 if the option is not set
	whenForbidden   Access        // 0 if the option is not set
	purpose         usage.Purpose // of Purpose; 0 if the option is not set
	enforceUsage    bool
	tdmRep          bool // of TDMRep
	enforceTags     bool // of EnforceRobotsTags
	retryThrottled  int  // how often a page with status 429 or 503 is requested again
	revalidate      bool
	skipFresh       bool // of SkipFresh; only with revalidate
	index           int  // the index in settings.all of the first settings that read robots.txt alike
	stopRefused     int  // of StopRefused; 0 if no host is stopped
	maxPages        int  // of MaxPages; 0 if there is no limit
}

// skips reports whether a host with this crawl delay is skipped.
func (s *hostSettings) skips(crawlDelay time.Duration) bool {
	return s.skipAbove > 0 && crawlDelay > s.skipAbove
}

// caps reports whether a crawl delay is longer than MaxDelay.
func (s *hostSettings) caps(crawlDelay time.Duration) bool {
	return s.maxDelay > 0 && crawlDelay > s.maxDelay
}

// longestDelay returns the longest crawl delay that is kept, or 0 if there is no limit. A skipped
// host still gets requests for its robots.txt. These wait no longer than SkipAbove.
func (s *hostSettings) longestDelay() time.Duration {
	if s.maxDelay == 0 || s.skipAbove == 0 {
		return max(s.maxDelay, s.skipAbove)
	}
	return min(s.maxDelay, s.skipAbove)
}

// productTokens returns the names that a crawler with this user agent looks for in robots.txt under
// d.
func (s *hostSettings) productTokens(d dialect.Dialect, userAgent string) []string {
	if s.tokens != nil {
		return s.tokens
	}
	if d == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks up the whole user agent
	}
	return []string{dialect.ProductToken(userAgent)}
}

// byCollector reports whether robots.txt is read for the UserAgent of the collector, whatever user
// agent a request is sent with. Colly's built-in check does the same.
func (s *hostSettings) byCollector() bool { return s.tokens == nil && s.dialect == dialect.Temoto() }

// A settings holds the settings of all hosts.
type settings struct {
	hostSettings            // applies to hosts that match no rule
	perHost      []hostRule // the first rule that matches a host applies
}

// A hostRule holds the settings of the hosts that match the pattern of ForHosts.
type hostRule struct {
	pattern string
	hostSettings
}

// of returns the settings of a host.
func (s *settings) of(host string) *hostSettings {
	for i := range s.perHost {
		if s.perHost[i].matches(host) {
			return &s.perHost[i].hostSettings
		}
	}
	return &s.hostSettings
}

// readsLike reports whether s and o read robots.txt alike: the same rules apply under both to a
// crawler with the same user agent.
func (s *hostSettings) readsLike(o *hostSettings) bool {
	return s.dialect == o.dialect &&
		slices.Equal(s.tokens, o.tokens) &&
		s.honorCrawlDelay == o.honorCrawlDelay &&
		s.honorRate == o.honorRate &&
		(s.robotsTxt == nil) == (o.robotsTxt == nil) &&
		bytes.Equal(s.robotsTxt, o.robotsTxt) &&
		s.whenUnreachable == o.whenUnreachable &&
		s.whenForbidden == o.whenForbidden
}

// ofSite returns the settings of the site of an authority, which may be one that a Host header
// names.
func (s *settings) ofSite(a dialect.Authority) *hostSettings {
	site, _, _ := strings.Cut(a.Host, "@")
	return s.of(site)
}

// all returns the settings of the hosts that match no rule, and then those of each rule.
func (s *settings) all() []*hostSettings {
	all := []*hostSettings{&s.hostSettings}
	for i := range s.perHost {
		all = append(all, &s.perHost[i].hostSettings)
	}
	return all
}

// matches reports whether the pattern matches a host, with or without its port.
func (h *hostRule) matches(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name = host[:i]
	}
	for _, s := range [...]string{host, name} {
		if ok, _ := path.Match(h.pattern, s); ok {
			return true
		}
	}
	return false
}
