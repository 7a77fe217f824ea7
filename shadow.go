package collyrobots

import (
	"context"
	"net/url"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// ShadowStats is how another dialect would have decided about the pages of this crawl.
type ShadowStats struct {
	Dialect  dialect.Dialect
	Compared int // pages that both have decided about
	Stricter int // of these: it would deny, and they were allowed
	Laxer    int // of these: it would allow, and they were denied
	// Differences are the first maxDifferences pages on which the two differ, in the order in which they came.
	Differences []Difference
}

// A Difference is a page on which two dialects differ.
type Difference struct{ Enforced, Shadow Decision }

// maxDifferences bounds what a shadow remembers. It goes on counting.
const maxDifferences = 1000

// A shadow reads along in another dialect.
type shadow struct {
	reader *policy.Cache
	mu     sync.Mutex
	stats  ShadowStats
}

// compare asks the shadows about a page that was judged.
func (rs *readers) compare(ctx context.Context, v verdict, u *url.URL, userAgent string, do policy.Doer) {
	for _, s := range rs.allShadows() {
		pol, err := s.reader.Get(ctx, u, userAgent, do)
		if err != nil {
			continue // the crawl is at its end
		}
		regime := *v.regime
		regime.dialect = s.stats.Dialect
		other := verdict{host: v.host, regime: &regime, policy: pol}
		other.reason, other.rule = read(pol, u)
		s.add(v, other, u)
	}
}

func (rs *readers) allShadows() []*shadow {
	if len(rs.config.shadows) == 0 {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.shadows
}

func (s *shadow) add(v, other verdict, u *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Compared++
	if v.rule.Allowed == other.rule.Allowed {
		return
	}
	if v.rule.Allowed {
		s.stats.Stricter++
	} else {
		s.stats.Laxer++
	}
	if len(s.stats.Differences) < maxDifferences {
		s.stats.Differences = append(s.stats.Differences, Difference{v.decision(u), other.decision(u)})
	}
}

// statistics returns what the shadows have counted.
func (rs *readers) statistics() []ShadowStats {
	var all []ShadowStats
	for _, s := range rs.allShadows() {
		s.mu.Lock()
		stats := s.stats
		stats.Differences = slices.Clone(stats.Differences)
		s.mu.Unlock()
		all = append(all, stats)
	}
	return all
}
