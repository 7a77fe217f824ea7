package collyrobots

import (
	"path"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A regime is how robots.txt is read and obeyed, for all hosts or for some.
type regime struct {
	dialect         dialect.Dialect
	tokens          []string
	pacing          pacing
	maxDelay        time.Duration // 0: every delay is honoured
	over            Over
	honorCrawlDelay bool
	ignoreRobots    bool
}

// A hostRule is a regime for the hosts that match a pattern.
type hostRule struct {
	pattern string
	regime
}

// productTokens returns the names to look for in robots.txt, with userAgent as the crawler's first.
func (r *regime) productTokens(userAgent string) []string {
	if r.tokens != nil {
		return r.tokens
	}
	if r.dialect == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks the whole of it up
	}
	return []string{dialect.ProductToken(userAgent)}
}

// regimeOf returns what holds for a host.
func (c *config) regimeOf(host string) *regime {
	for i := range c.perHost {
		if c.perHost[i].matches(host) {
			return &c.perHost[i].regime
		}
	}
	return &c.regime
}

// regimes returns all of them.
func (c *config) regimes() []*regime {
	all := []*regime{&c.regime}
	for i := range c.perHost {
		all = append(all, &c.perHost[i].regime)
	}
	return all
}

// wish returns how a crawl delay is kept, and whether its host is to be skipped instead.
func (r *regime) wish(crawlDelay time.Duration) (w wish, skip bool) {
	if r.maxDelay == 0 || crawlDelay <= r.maxDelay {
		return wish{crawlDelay, crawlDelay}, false
	}
	return wish{crawlDelay, r.maxDelay}, r.over == Skip
}

// matches tells whether a host, or the name before its port, fits the pattern.
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
