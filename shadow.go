package collyrobots

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// ShadowStats is how another dialect would have decided about the pages of this crawl.
type ShadowStats struct {
	Dialect  dialect.Dialect `json:"dialect"`
	Compared int             `json:"compared"` // pages that both have decided about
	Stricter int             `json:"stricter"` // of these: it would deny, and they were allowed
	Laxer    int             `json:"laxer"`    // of these: it would allow, and they were denied

	// Differences are the first 1,000 pages on which the two differ, in the order in which they
	// came.
	Differences []Difference `json:"differences,omitempty"`
}

// A Difference is a page that one dialect allows and the other denies.
type Difference struct {
	Enforced Decision `json:"enforced"`
	Shadow   Decision `json:"shadow"`
}

// maxDifferences bounds what a shadow remembers. It goes on counting.
const maxDifferences = 1000

// A shadow counts how another dialect differs.
type shadow struct {
	mu    sync.Mutex
	stats ShadowStats
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

func (s *shadow) statistics() ShadowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Differences = slices.Clone(stats.Differences)
	return stats
}

// shadows are those of one plugin, in the order in which the option names them.
type shadows []*shadow

func newShadows(dialects []dialect.Dialect) (all shadows) {
	for _, d := range dialects {
		all = append(all, &shadow{stats: ShadowStats{Dialect: d}})
	}
	return all
}

// compare asks the shadows about a page that was judged, unless robots.txt is ignored.
func (all shadows) compare(ctx context.Context, q *request) {
	v := q.verdict
	if len(all) == 0 || v.reader == nil {
		return
	}
	u := q.target.url
	if silent := (*policy.NoResponseError)(nil); errors.As(v.policy.Err(), &silent) {
		return // each of them would ask again
	}
	for i, cache := range v.reader.shadows {
		pol, err := v.reader.get(ctx, cache, v.policy.Authority, q.target.userAgent, q.fetcher)
		if err != nil {
			continue // the crawl is at its end
		}
		settings := *v.settings
		settings.dialect = all[i].stats.Dialect
		other := verdict{host: v.host, settings: &settings, policy: pol}
		other.reason, other.rule = read(pol, u)
		all[i].add(v, other, u)
	}
}
