package collyrobots

import (
	"context"
	"net/url"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
)

// ShadowStats compares the decisions of another dialect with those of this crawl.
type ShadowStats struct {
	Dialect  dialect.Dialect `json:"dialect"`
	Compared int             `json:"compared"` // the number of pages with a decision of both dialects
	Stricter int             `json:"stricter"` // the pages that were allowed, and Dialect would deny
	Laxer    int             `json:"laxer"`    // the pages that were denied, and Dialect would allow

	// Differences are the first 1,000 pages with different decisions, in the order of the crawl.
	Differences []Difference `json:"differences,omitempty"`
}

// A Difference is a page that one dialect allows and the other denies.
type Difference struct {
	Enforced Decision `json:"enforced"`
	Shadow   Decision `json:"shadow"`
}

// maxDifferences bounds ShadowStats.Differences. Further differences are only counted.
const maxDifferences = 1000

// A shadow compares another dialect with the one in force.
type shadow struct {
	mu    sync.Mutex
	stats ShadowStats
}

// add counts the decisions about u: v, and the other one by the shadow's dialect.
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
		s.stats.Differences = append(s.stats.Differences, Difference{Enforced: v.decision(u), Shadow: other.decision(u)})
	}
}

func (s *shadow) statistics() ShadowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Differences = slices.Clone(stats.Differences)
	return stats
}

// shadows are the shadows of one plugin, in the order of the option.
type shadows []*shadow

func newShadows(dialects []dialect.Dialect) (all shadows) {
	for _, d := range dialects {
		all = append(all, &shadow{stats: ShadowStats{Dialect: d}})
	}
	return all
}

// compare compares the decision about q with those of the shadows, unless robots.txt is ignored.
func (all shadows) compare(ctx context.Context, q *request) {
	v := q.verdict
	if len(all) == 0 || v.reader == nil || v.reason == ReasonNofollow {
		return
	}
	u := q.target.url
	if isUnanswered(v.policy.Err()) {
		return // each shadow would fetch robots.txt again
	}
	for i, cache := range v.reader.shadows {
		pol, err := v.reader.get(ctx, cache, v.policy.Authority, q.target.userAgent, q.fetcher())
		if err != nil {
			continue // the plugin is closed, or the context has ended
		}
		settings := *v.settings
		settings.dialect = all[i].stats.Dialect
		other := verdict{host: v.host, settings: &settings, policy: pol, tdm: v.tdm}
		other.reason, other.rule = apply(pol, u)
		other.applyUsage(u)
		all[i].add(v, other, u)
	}
}
