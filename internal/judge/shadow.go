package judge

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/policy"
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
func (s *shadow) add(v, other Verdict, u *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Compared++
	if v.Rule.Allowed == other.Rule.Allowed {
		return
	}
	if v.Rule.Allowed {
		s.stats.Stricter++
	} else {
		s.stats.Laxer++
	}
	if len(s.stats.Differences) < maxDifferences {
		s.stats.Differences = append(s.stats.Differences, report.Difference{Enforced: v.Decision(u), Shadow: other.Decision(u)})
	}
}

func (s *shadow) statistics() report.ShadowStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Differences = slices.Clone(stats.Differences)
	return stats
}

// Shadows are the shadows of one plugin, in the order of the option.
type Shadows []*shadow

func NewShadows(dialects []dialect.Dialect) (all Shadows) {
	for _, d := range dialects {
		all = append(all, &shadow{stats: report.ShadowStats{Dialect: d}})
	}
	return all
}

// Statistics returns the statistics of all shadows.
func (all Shadows) Statistics() (stats []report.ShadowStats) {
	for _, shadow := range all {
		stats = append(stats, shadow.statistics())
	}
	return stats
}

// InUse reports whether there is a shadow.
func (all Shadows) InUse() bool { return len(all) > 0 }

// Compare compares v, the decision about t at now, with those of the shadows, unless robots.txt is
// ignored. f fetches robots.txt for t.
func (all Shadows) Compare(ctx context.Context, now time.Time, v *Verdict, t *Target, f exchange.Fetcher) {
	if v.Reader == nil || v.Reason == report.ReasonNofollow {
		return
	}
	if policy.IsUnanswered(v.Policy.Err()) {
		return // each shadow would fetch robots.txt again
	}
	for i, cache := range v.Reader.shadows {
		pol := known(ctx, cache, now, v.Policy.Authority, v.Host, f.Turn)
		if pol == nil {
			var err error
			pol, err = v.Reader.get(ctx, cache, v.Policy.Authority, t.UserAgent, f)
			if err != nil {
				continue // the plugin is closed, or the context has ended
			}
		}
		settings := *v.Settings
		settings.Dialect = all[i].stats.Dialect
		other := Verdict{Host: v.Host, Settings: &settings, Policy: pol, tdm: v.tdm}
		other.Reason, other.Rule = apply(pol, t.URL)
		if other.Rule.Allowed {
			if d := (usageRule{}).Judge(now, CandidateOf(&other, t)); d != nil {
				other.Deny(d)
			}
		}
		all[i].add(*v, other, t.URL)
	}
}
