package judge

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// purposeKey is the key of the purpose in a context of WithPurpose.
type purposeKey struct{}

// WithPurpose returns a context with the purpose of a request.
func WithPurpose(ctx context.Context, p usage.Purpose) context.Context {
	return context.WithValue(ctx, purposeKey{}, p)
}

// PurposeOf returns the purpose in a context, or 0.
func PurposeOf(ctx context.Context) usage.Purpose {
	p, _ := ctx.Value(purposeKey{}).(usage.Purpose)
	return p
}

// A usageRule is the rule of the option EnforceUsage and of WithPurpose. It denies pages whose owner
// disallows the purpose of the crawl or of the request.
type usageRule struct{}

// usageDisallowed is the denial of a usageRule.
var usageDisallowed = &Denial{Reason: report.ReasonUsage}

func (usageRule) Judge(now time.Time, c Candidate) *Denial {
	purpose := c.purpose
	if c.Settings.EnforceUsage {
		purpose |= c.Settings.Purpose
	}
	if purpose == 0 || c.Settings.IgnoresRobots(now) || c.IsFile {
		return nil
	}
	p := preferencesFor(c.URL, usage.Sources{Robots: c.policy.Usage(), TDMFile: c.tdm})
	if p.Of(purpose).Preference != usage.Disallowed {
		return nil
	}
	return usageDisallowed
}

// preferences returns the preferences for u that are known before it is fetched, without the hashes
// of their sources. Only a page that may be crawled has preferences.
func (v *Verdict) preferences(u *url.URL) usage.Preferences {
	if !v.Rule.Allowed && v.Reason != report.ReasonUsage {
		return usage.Preferences{}
	}
	return preferencesFor(u, v.Sources())
}

// preferencesFor returns the preferences for u in some sources, without the hashes of the sources.
func preferencesFor(u *url.URL, s usage.Sources) usage.Preferences {
	if s.Robots == nil && s.TDMFile == nil {
		return usage.Preferences{}
	}
	p := s.Terms(u).Preferences
	p.Search.Hash = ""
	p.AIUse.Hash = ""
	p.TrainAI.Hash = ""
	return p
}

// Sources returns the sources of preferences that are known before a page is fetched.
func (v *Verdict) Sources() usage.Sources {
	return usage.Sources{Robots: v.Policy.Usage(), TDMFile: v.tdm}
}

// RecordUse counts a page that v allows, and keeps v for Plugin.Usage.
func (j *Judge) RecordUse(v Verdict, resp *http.Response) {
	u := resp.Request.URL
	s := v.Sources()
	if !v.Rule.Allowed { // in a dry run
		s = usage.Sources{}
	}
	s.Header = resp.Header
	j.Uses.add(u, v, s.Terms(u).Preferences)
}

// Uses keeps the counts of Stats.Usage, and the verdicts on recent pages for Plugin.Usage.
type Uses struct {
	// mu protects the fields below it.
	mu     sync.Mutex
	stats  *report.UsageStats // nil if no page with a Purpose was fetched
	recent map[*url.URL]Verdict
	order  []*url.URL // the keys of recent
	oldest int        // the index in order that is replaced next, if there are maxRecent keys
}

// maxRecent is the number of responses whose verdicts are kept for Plugin.Usage.
const maxRecent = 4096

// add counts a page, and keeps the verdict on it.
func (s *Uses) add(u *url.URL, v Verdict, p usage.Preferences) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats == nil {
		s.stats = new(report.UsageStats)
		s.recent = make(map[*url.URL]Verdict)
	}
	countUse(&s.stats.Search, p.Search)
	countUse(&s.stats.AIUse, p.AIUse)
	countUse(&s.stats.TrainAI, p.TrainAI)
	_, known := s.recent[u]
	s.recent[u] = v
	switch {
	case known:
	case len(s.order) < maxRecent:
		s.order = append(s.order, u)
	default:
		delete(s.recent, s.order[s.oldest])
		s.order[s.oldest] = u
		s.oldest = (s.oldest + 1) % maxRecent
	}
}

// Find returns the verdict on a page that was requested with this URL.
func (s *Uses) Find(u *url.URL) (v Verdict, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, known = s.recent[u]
	return v, known
}

// Statistics returns the counts so far, or nil if there are none.
func (s *Uses) Statistics() *report.UsageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats == nil {
		return nil
	}
	stats := *s.stats
	return &stats
}

// countUse counts one page.
func countUse(c *report.UsageCounts, s usage.Statement) {
	switch s.Preference {
	case usage.Allowed:
		c.Allowed++
	case usage.Disallowed:
		c.Disallowed++
	default:
		c.Unknown++
	}
}
