package collyrobots

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/metatags"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// Purpose declares what the crawl is for: one or several of usage.Search, usage.AIUse and
// usage.TrainAI. It is experimental; see package usage.
//
// Stats.Usage then counts the pages by what their owners say about their use. Only EnforceUsage
// denies pages. What TDMRep files say counts only with the option TDMRep.
//
// Purpose may be given inside ForHosts. It has no effect under IgnoreRobotsWithPermission.
func Purpose(p ...usage.Purpose) Option {
	var all usage.Purpose
	for _, one := range p {
		all |= one
	}
	const known = usage.Search | usage.AIUse | usage.TrainAI
	return hostOption("Purpose", func(s *hostSettings) { s.purpose = all },
		faultIf(all == 0, "Purpose", "names no purpose"),
		faultIf(all&^known != 0, "Purpose", "%v is not a purpose of package usage", all))
}

// EnforceUsage denies a page with report.ReasonUsage if its owner disallows the Purpose of the crawl. It
// needs the option Purpose. If Purpose names several uses, the page is denied if one of them is
// disallowed. A use is not disallowed if nothing is known about it. It is experimental; see package
// usage.
//
// EnforceUsage knows what robots.txt says and, with the option TDMRep, the TDMRep file. What the response says, in its
// headers or in HTML, is not known before the page is fetched. Such a page reaches the callbacks of
// the spider. They must call Plugin.Usage and discard the page if it disallows the use.
//
// EnforceUsage does not affect the requests for robots.txt, sitemaps and TDMRep files. EnforceUsage
// may be given inside ForHosts.
func EnforceUsage() Option {
	return hostOption("EnforceUsage", func(s *hostSettings) { s.enforceUsage = true })
}

// TDMRep requests the TDMRep file of each site, /.well-known/tdmrep.json, before the first page of
// the site, and adds what it says to Decision.Usage, Plugin.Usage and the preferences that
// EnforceUsage enforces. By default, only TDMRep headers and meta elements are read. It is
// experimental; see package usage.
//
// The request keeps the delay of the host and obeys robots.txt, so the first page starts one delay
// later. The result is kept for a day. In a survey of a million domains, 37 had the file. TDMRep
// may be given inside ForHosts. It has no effect under IgnoreRobotsWithPermission.
func TDMRep() Option {
	return hostOption("TDMRep", func(s *hostSettings) { s.tdmRep = true })
}

// usageFaults returns a fault for each EnforceUsage without a Purpose.
func (c *config) usageFaults() (faults []error) {
	missing := fault("EnforceUsage", "needs the option Purpose")
	if c.enforceUsage && c.purpose == 0 {
		return []error{missing}
	}
	for _, h := range c.perHost {
		if h.enforceUsage && h.purpose == 0 {
			faults = append(faults, insideForHosts(h.pattern, missing))
		}
	}
	return faults
}

// considerUsage finds the TDMRep file of the site of t, which v allows, if the option is set. If EnforceUsage is set and
// the owner of t disallows the purpose of the crawl, it changes v to a denial.
func (j *judge) considerUsage(ctx context.Context, v *verdict, t target, f fetcher) error {
	err := j.findTDM(ctx, v, t, f)
	if err != nil {
		return err
	}
	v.applyUsage(t.url)
	return nil
}

// applyUsage changes v to a denial if EnforceUsage is set and the owner of u disallows the purpose
// of the crawl. A denial stays as it is.
func (v *verdict) applyUsage(u *url.URL) {
	if !v.settings.enforceUsage || !v.rule.Allowed {
		return
	}
	if v.preferences(u).Of(v.settings.purpose).Preference == usage.Disallowed {
		v.deny(report.ReasonUsage)
	}
}

// preferences returns the preferences for u that are known before it is fetched, without the hashes
// of their sources. Only a page that may be crawled has preferences.
func (v *verdict) preferences(u *url.URL) usage.Preferences {
	if !v.rule.Allowed && v.reason != report.ReasonUsage {
		return usage.Preferences{}
	}
	s := v.sources()
	if s.Robots == nil && s.TDMFile == nil {
		return usage.Preferences{}
	}
	p := s.Terms(u).Preferences
	p.Search.Hash = ""
	p.AIUse.Hash = ""
	p.TrainAI.Hash = ""
	return p
}

// sources returns the sources of preferences that are known before a page is fetched.
func (v *verdict) sources() usage.Sources {
	return usage.Sources{Robots: v.policy.Usage(), TDMFile: v.tdm}
}

// Usage returns what is known about the use of the content of r: the preferences in robots.txt, in
// the TDMRep file, in the headers of the response, and in the meta elements of its HTML. The TDMRep
// file is known only with the option TDMRep. Usage may be called in every callback that has a
// response, also if the response comes from CacheDir. It sends no requests and may be called from
// any goroutine. It is experimental; see package usage.
//
// If a Purpose is set, Usage uses the robots.txt that was in force when r was requested. Without a
// Purpose, or if more than 4,096 responses have arrived since then, it uses the current one. If
// that robots.txt denies r, it says nothing about the use of r.
//
// Usage evaluates the sources in each call. It returns the zero Terms if r is nil or has no
// Request.
func (p *Plugin) Usage(r *colly.Response) usage.Terms {
	if p == nil || p.core == nil || r == nil || r.Request == nil || r.Request.URL == nil {
		return usage.Terms{}
	}
	s := p.sourcesOf(r.Request)
	s.Status = r.StatusCode
	if r.Headers != nil {
		s.Header = *r.Headers
	}
	if isHTML(s.Header, r.Body) {
		s.Meta = metatags.Read(r.Body).Content
	}
	return s.Terms(r.Request.URL)
}

// sourcesOf returns the files that were in force when r was requested or, if that is not known, the
// ones that are in force now.
func (p *Plugin) sourcesOf(r *colly.Request) usage.Sources {
	v, known := p.uses.find(r.URL)
	if !known {
		var err error
		v, err = p.verdictNow(r)
		if err != nil {
			return usage.Sources{}
		}
	}
	if !v.rule.Allowed {
		return usage.Sources{}
	}
	s := v.sources()
	s.RobotsHash = v.policy.Sum()
	return s
}

// verdictNow returns the verdict on r by the files that are known now.
func (p *Plugin) verdictNow(r *colly.Request) (verdict, error) {
	var header http.Header
	if r.Headers != nil {
		header = *r.Headers
	}
	_, _, f := p.own(context.Background())
	return p.recall(targetOf(r.URL, r.Host, header), f)
}

// isHTML reports whether a response is an HTML page. Like Colly, it looks at the body if there is
// no Content-Type.
func isHTML(h http.Header, body []byte) bool {
	kind := h.Get("Content-Type")
	if kind == "" {
		kind = http.DetectContentType(body)
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	kind = strings.TrimSpace(kind)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// recordUse counts a page that v allows, and keeps v for Plugin.Usage.
func (j *judge) recordUse(v verdict, resp *http.Response) {
	u := resp.Request.URL
	s := v.sources()
	if !v.rule.Allowed { // in a dry run
		s = usage.Sources{}
	}
	s.Header = resp.Header
	j.uses.add(u, v, s.Terms(u).Preferences)
}

// uses keeps the counts of Stats.Usage, and the verdicts on recent pages for Plugin.Usage.
type uses struct {
	// mu protects the fields below it.
	mu     sync.Mutex
	stats  *report.UsageStats // nil if no page with a Purpose was fetched
	recent map[*url.URL]verdict
	order  []*url.URL // the keys of recent
	oldest int        // the index in order that is replaced next, if there are maxRecent keys
}

// maxRecent is the number of responses whose verdicts are kept for Plugin.Usage.
const maxRecent = 4096

// add counts a page, and keeps the verdict on it.
func (s *uses) add(u *url.URL, v verdict, p usage.Preferences) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats == nil {
		s.stats = new(report.UsageStats)
		s.recent = make(map[*url.URL]verdict)
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

// find returns the verdict on a page that was requested with this URL.
func (s *uses) find(u *url.URL) (v verdict, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, known = s.recent[u]
	return v, known
}

// statistics returns the counts so far, or nil if there are none.
func (s *uses) statistics() *report.UsageStats {
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
