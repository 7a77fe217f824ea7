package collyrobots

import (
	"path"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/pace"
)

// hostSettings are how robots.txt is read and obeyed, for all hosts or for some.
type hostSettings struct {
	pace            pace.Rules
	dialect         dialect.Dialect
	tokens          []string
	maxDelay        time.Duration // longer crawl delays are capped; 0: none are
	skipAbove       time.Duration // hosts that ask for more are skipped; 0: none are
	honorCrawlDelay bool
	ignoreRobots    bool
	retryThrottled  int // how often a page is asked for again that was answered 429 or 503
	index           int // its place in settings.all
}

// skips reports whether a host with this crawl delay is skipped.
func (s *hostSettings) skips(crawlDelay time.Duration) bool {
	return s.skipAbove > 0 && crawlDelay > s.skipAbove
}

// caps reports whether a crawl delay is longer than MaxDelay.
func (s *hostSettings) caps(crawlDelay time.Duration) bool {
	return s.maxDelay > 0 && crawlDelay > s.maxDelay
}

// longestDelay returns the longest crawl delay that is kept, 0 if all are. A host that is skipped
// still gets requests for its robots.txt, which wait no longer than SkipAbove.
func (s *hostSettings) longestDelay() time.Duration {
	if s.maxDelay == 0 || s.skipAbove == 0 {
		return max(s.maxDelay, s.skipAbove)
	}
	return min(s.maxDelay, s.skipAbove)
}

// productTokens returns the names to look for in robots.txt as d reads it, for a crawler with this
// user agent.
func (s *hostSettings) productTokens(d dialect.Dialect, userAgent string) []string {
	if s.tokens != nil {
		return s.tokens
	}
	if d == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks the whole of it up
	}
	return []string{dialect.ProductToken(userAgent)}
}

// byCollector reports whether the crawler goes by the collector's UserAgent, as to Colly's built-in
// check, whatever user agent a request is sent with.
func (s *hostSettings) byCollector() bool { return s.tokens == nil && s.dialect == dialect.Temoto() }

// settings are what the options say of hosts.
type settings struct {
	hostSettings            // what holds where nothing else does
	perHost      []hostRule // the first that matches a host holds instead
}

// A hostRule is the settings of the hosts that match a pattern.
type hostRule struct {
	pattern string
	hostSettings
}

// of returns what holds for a host.
func (s *settings) of(host string) *hostSettings {
	for i := range s.perHost {
		if s.perHost[i].matches(host) {
			return &s.perHost[i].hostSettings
		}
	}
	return &s.hostSettings
}

// all returns the settings of all hosts and of each pattern.
func (s *settings) all() []*hostSettings {
	all := []*hostSettings{&s.hostSettings}
	for i := range s.perHost {
		all = append(all, &s.perHost[i].hostSettings)
	}
	return all
}

// matches reports whether a host, or the name before its port, fits the pattern.
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
