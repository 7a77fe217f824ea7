package collyrobots

import (
	"context"
	"net/url"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// maxDifferences bounds report.ShadowStats.Differences. Further differences are only counted.
const maxDifferences = 1000

// A shadow compares another dialect with the one in force.
type shadow struct {
	// mu protects stats.
	mu    sync.Mutex
	stats report.ShadowStats
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
		s.stats.Differences = append(s.stats.Differences, report.Difference{Enforced: v.decision(u), Shadow: other.decision(u)})
	}
}

func (s *shadow) statistics() report.ShadowStats {
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
		all = append(all, &shadow{stats: report.ShadowStats{Dialect: d}})
	}
	return all
}

// compare compares the decision about q with those of the shadows, unless robots.txt is ignored.
func (all shadows) compare(ctx context.Context, q *request) {
	v := q.verdict
	if len(all) == 0 || v.reader == nil || v.reason == report.ReasonNofollow {
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
