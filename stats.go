package collyrobots

import (
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// Stats describes what a Plugin has done so far. In JSON, durations are numbers of seconds, such as
// 1.5. Stats that are read back from JSON are the same.
type Stats struct {
	// Started is the time of New.
	Started time.Time `json:"started,omitzero"`
	// Closed reports whether Close was called. All requests are then denied with ErrClosed.
	Closed bool `json:"closed,omitempty"`
	// ClosedAt is the time of the first call of Close, or zero before it.
	ClosedAt time.Time `json:"closed_at,omitzero"`

	// Totals has the sums of Hosts and Forgotten, for the counts and Waited.
	Totals HostStats `json:"totals"`
	// GapOverDelay is the smallest GapOverDelay of all hosts, or 0 if none has one. It is never
	// less than 1, unless several requests to a host may be in flight and one catches up with the
	// one before it. MaxInFlight allows that, and so does a back-off without a crawl delay.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`

	// Ended counts the hosts in Hosts by HostStats.Ended. It omits the hosts that have not ended.
	Ended map[Ending]int `json:"ended,omitempty"`

	// NotSent counts the pages that waited for their host and were not sent because the crawl has
	// ended: EndingCancelled if the context of the page has ended, EndingClosed because of Close.
	NotSent map[Ending]int `json:"not_sent,omitempty"`

	// Decisions counts the decisions about requests and entries of sitemaps, by their reasons. A
	// request counts again if its robots.txt changes while it waits.
	Decisions map[Reason]int `json:"decisions"`
	// Policies counts the robots.txt files that are kept now, by their RobotsStatus.
	Policies map[RobotsStatus]PolicyStats `json:"policies"`

	// Hosts is sorted by name.
	Hosts []HostStats `json:"hosts"`
	// Forgotten has the sums of the hosts that are no longer kept. If there are very many hosts,
	// these are hosts without recent requests.
	Forgotten HostStats `json:"forgotten"`
	// RobotsTags counts the pages with rules such as noindex in headers or meta elements.
	RobotsTags RobotsTagStats `json:"robots_tags"`
	// Signatures counts the signed requests. It is nil without SignRequests and SignWhenAsked.
	Signatures *SignatureStats `json:"signatures,omitempty"`
	// Sitemaps has the counts of sitemaps and of the pages that they list.
	Sitemaps FeedStats `json:"sitemaps"`
	// Frontier has the counts of the URLStore of the option Frontier. It is nil without the option.
	Frontier *FrontierStats `json:"frontier,omitempty"`
	// Usage counts the pages by what their owners say about their use. It is nil without the option
	// Purpose, and before the first page.
	Usage *UsageStats `json:"usage,omitempty"`
	// LicenseRequired counts the responses with status 401 that ask for a license (RSL 1.0).
	LicenseRequired int `json:"license_required,omitempty"`
	// Revalidation has the counts of the option Revalidate. It is nil without the option.
	Revalidation *RevalidationStats `json:"revalidation,omitempty"`
	// Shadows has the dialects in the order of the option Shadow.
	Shadows []ShadowStats `json:"shadows,omitempty"`

	// NotFed has the first URLs of sitemaps that were not fed, for each reason. The keys are the
	// JSON names of the counts in FeedStats, such as "out_of_scope".
	NotFed map[string][]string `json:"not_fed,omitempty"`
}

// HostStats has the statistics of one host. The schemes http and https have the same host; each
// other port is a host of its own.
type HostStats struct {
	// Host is the name as in a URL, with the port unless it is the default one.
	Host string `json:"host,omitempty"`
	// Group is the name of the group that shares one pace with this host, according to PaceBy: an
	// IP address or a registrable domain. It is empty if the host has its own pace. In a group, the
	// fields from CrawlDelay to Line, and Delay, MinGap and GapOverDelay, are those of the group.
	// All other fields are those of the host.
	Group string `json:"group,omitempty"`
	// SharedWith is the number of other hosts in the group.
	SharedWith int `json:"shared_with,omitempty"`
	// GroupWaiting is the sum of Waiting and OnDisk of all hosts in the group. It is 0 if Group is
	// empty.
	GroupWaiting int `json:"group_waiting,omitempty"`
	// Requests counts the requests that were sent: pages, redirects, robots.txt, sitemaps and
	// retries.
	Requests int `json:"requests"`
	// Throttled counts how often the host has throttled the crawl, with status 429 or 503. The
	// responses to requests that were already in flight at the first such response do not count.
	Throttled int `json:"throttled"`
	// Pages counts the responses that reached the collector, with any status. Responses from
	// Colly's cache are included.
	Pages int `json:"pages"`
	// Denied counts the requests that were denied with a Decision. They were not sent, except in a
	// dry run.
	Denied int `json:"denied"`
	// Refusals counts the pages that the host has refused; see StopRefused.
	Refusals int `json:"refusals,omitempty"`
	// RefusalsInRow counts the refusals since the last success; see StopRefused.
	RefusalsInRow int `json:"refusals_in_row,omitempty"`
	// Stopped is the time when StopRefused stopped the host, and NextTry is the time when one of
	// its pages may be requested again. Both are zero if the host is not stopped.
	Stopped time.Time `json:"stopped,omitzero"`
	NextTry time.Time `json:"next_try,omitzero"`
	// PagesSent counts the pages that were sent or are about to be sent, as the option MaxPages
	// counts them. MaxPages is the limit. Both are 0 without the option.
	PagesSent int `json:"pages_sent,omitempty"`
	MaxPages  int `json:"max_pages,omitempty"`
	// Ended says why the host gets no more requests. It is "" if pages of the host wait or are in
	// flight, or if it has had no pages. It is also "done" while the program makes a pause between
	// two pages.
	Ended Ending `json:"ended,omitempty"`
	// Unchanged counts the pages that have not changed since an earlier visit: those that were
	// answered with 304, and those that were not requested because of SkipFresh. They are not in
	// Pages. It is 0 without the option Revalidate.
	Unchanged int `json:"unchanged,omitempty"`
	// Waiting counts the pages that wait for the host now.
	Waiting int `json:"waiting"`
	// OnDisk counts the pages of the host that wait in the URLStore of the option Frontier. In
	// Totals it counts those of the hosts in Hosts; Stats.Frontier counts those of all hosts.
	OnDisk int `json:"on_disk,omitempty"`

	// CrawlDelay is the delay that robots.txt asks for. If several apply, it is the longest.
	CrawlDelay time.Duration `json:"-"`
	// BackOff is the delay that responses with status 429 and 503 have caused.
	BackOff time.Duration `json:"-"`
	// NotBefore is the time until which a Retry-After holds back all requests. It is zero if there
	// is no Retry-After.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NextStart is the time before which no request starts. It is zero if a request may start at
	// once.
	NextStart time.Time `json:"next_start,omitzero"`

	// Opens is the time when the host opens again, if CrawlHours or Visit-time close it now. Closes
	// is the time when it closes next, if it is open now. Both are zero if neither applies to the
	// host.
	Opens  time.Time `json:"opens,omitzero"`
	Closes time.Time `json:"closes,omitzero"`
	// LastStart is the estimated time when the last of the waiting pages starts. It is zero if no
	// page waits. See TimeLeft.
	LastStart time.Time `json:"last_start,omitzero"`

	// Source says what holds back the next request until NextStart. If nothing does, it says where
	// Delay comes from.
	Source DelaySource `json:"source,omitempty"`
	// Line is the line of robots.txt if Source is SourceCrawlDelay, SourceRequestRate or
	// SourceVisitTime. It is 0 if it is not known.
	Line int `json:"line,omitempty"`

	// LastStatus is the status of the last response, or 0 if there was none.
	LastStatus int `json:"last_status,omitempty"`
	// Waited is the time that all requests together have waited for the host.
	Waited time.Duration `json:"-"`

	// ResponseTime is the smoothed response time under AdaptiveDelay. It is 0 before the first
	// response, and without the option.
	ResponseTime time.Duration `json:"-"`
	// Delay is the delay in force between the starts of two requests, or 0. It is the longest of
	// BackOff, MinDelay, the delay of AdaptiveDelay, and CrawlDelay and the Request-rate within the
	// limits of MaxDelay and SkipAbove.
	Delay time.Duration `json:"-"`
	// MinGap is the shortest time between the starts of two requests on the wire since a delay has
	// been in force, or 0 if there were no two requests.
	MinGap time.Duration `json:"-"`
	// GapOverDelay is the smallest quotient of such a time and the delay that was in force then. If
	// it is 1, the delay was kept exactly. It is 0 if there were no two requests, and in a dry run.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`
}

// Stats returns the counts so far. It may be called at any time. The hosts are read one after
// another, so their counts may belong to slightly different times.
//
// Stats needs time and memory for all hosts and sorts them: for 100,000 hosts, about 50 ms and
// 23 MB. Use StatsFunc if only some hosts or the sums are needed.
func (p *Plugin) Stats() Stats {
	if p == nil || p.core == nil {
		return Stats{}
	}
	// Sorting pointers is faster than sorting the large HostStats.
	sorted := slices.SortedFunc(p.limiter.hosts.All(), func(a, b *pace.Host) int { return strings.Compare(a.Name(), b.Name()) })
	hosts := make([]HostStats, 0, len(sorted))
	s := p.statsOf(slices.Values(sorted), func(host HostStats) { hosts = append(hosts, host) })
	s.Hosts = hosts
	return s
}

// StatsFunc is like Stats, but it leaves Hosts nil and calls visit for each host instead, in no
// particular order. It is faster and needs no memory for the hosts. For example, visit can count
// the hosts with waiting pages, or keep the ten hosts with the most.
//
// StatsFunc holds no lock when it calls visit.
func (p *Plugin) StatsFunc(visit func(host HostStats)) Stats {
	if p == nil || p.core == nil {
		return Stats{}
	}
	return p.statsOf(p.limiter.hosts.All(), visit)
}

// statsOf returns the Stats without Hosts, and calls visit for each of the hosts.
func (p *Plugin) statsOf(hosts iter.Seq[*pace.Host], visit func(HostStats)) Stats {
	forgotten := hostStats(p.limiter.hosts.Forgotten())
	s := Stats{
		Started:    p.started,
		Closed:     p.closed.Load(),
		ClosedAt:   p.closedAt(),
		Totals:     forgotten,
		NotSent:    p.report.unsent.statistics(),
		Decisions:  p.decided.counts(),
		Policies:   p.policies.statistics(),
		Forgotten:  forgotten,
		RobotsTags: p.tagCounts.statistics(),
		Signatures: p.limiter.signatures.statistics(),
		Sitemaps:   p.sitemaps.statistics(),
		NotFed:     p.sitemaps.examples(),
		Frontier:   p.frontier.statistics(),
		Usage:      p.uses.statistics(),

		LicenseRequired: int(p.report.licenses.Load()),

		Revalidation: p.revalidation.statistics(),
	}
	now := time.Now()
	paused := p.frontier.isPaused()
	groups := p.limiter.groupsOnDisk(now)
	for host := range hosts {
		counted := host.Stats(now)
		stats := hostStats(counted)
		stats.OnDisk = p.limiter.onDisk(host)
		stats.GroupWaiting += groups[stats.Group]
		if waiting := stats.Waiting + stats.OnDisk; waiting > 0 {
			stats.LastStart = host.LastStart(now, max(waiting, stats.GroupWaiting))
		}
		p.addLimits(&stats)
		stats.Ended = endingOf(counted, stats.OnDisk, s.Closed, paused)
		s.countEnding(stats.Ended)
		s.Totals.add(stats)
		visit(stats)
	}
	s.GapOverDelay = s.Totals.GapOverDelay
	for _, shadow := range p.shadows {
		s.Shadows = append(s.Shadows, shadow.statistics())
	}
	return s
}

// countEnding counts a host by its Ending. It ignores a host that has not ended.
func (s *Stats) countEnding(e Ending) {
	if e == "" {
		return
	}
	if s.Ended == nil {
		s.Ended = make(map[Ending]int)
	}
	s.Ended[e]++
}

// addLimits sets the fields of StopRefused and MaxPages.
func (p *Plugin) addLimits(s *HostStats) {
	refusals := p.stops.Status(s.Host)
	s.RefusalsInRow = refusals.InRow
	s.Stopped = refusals.Since
	s.NextTry = refusals.Until
	s.MaxPages = p.settings.of(s.Host).maxPages
	if s.MaxPages > 0 {
		s.PagesSent = p.sent.Used(s.Host)
	}
}

// hostStats converts the Stats of package pace.
func hostStats(s pace.Stats) HostStats {
	return HostStats{
		Host:         s.Host,
		Group:        s.Group,
		SharedWith:   s.Others,
		GroupWaiting: s.GroupWaiting,
		Requests:     s.Requests,
		Throttled:    s.Throttled,
		Pages:        s.Pages,
		Denied:       s.Denied,
		Refusals:     s.Refusals,
		Unchanged:    s.Unchanged,
		Waiting:      s.Waiting,
		CrawlDelay:   s.CrawlDelay,
		BackOff:      s.BackOff,
		NotBefore:    s.NotBefore,
		NextStart:    s.NextStart,
		Opens:        s.Opens,
		Closes:       s.Closes,
		Source:       DelaySource(s.Cause),
		Line:         s.Line,
		LastStatus:   s.Status,
		Waited:       s.Waited,
		ResponseTime: s.ResponseTime,
		Delay:        s.Delay,
		MinGap:       s.MinGap,
		GapOverDelay: s.GapOverDelay,
	}
}

// add adds the counts and Waited of o. GapOverDelay becomes the smaller one of both.
func (s *HostStats) add(o HostStats) {
	s.Requests += o.Requests
	s.Throttled += o.Throttled
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Refusals += o.Refusals
	s.PagesSent += o.PagesSent
	s.Unchanged += o.Unchanged
	s.Waiting += o.Waiting
	s.OnDisk += o.OnDisk
	s.Waited += o.Waited
	if s.GapOverDelay == 0 || o.GapOverDelay != 0 && o.GapOverDelay < s.GapOverDelay {
		s.GapOverDelay = o.GapOverDelay
	}
}

// TimeLeft estimates how long it takes, counted from now, until the last of the waiting pages of
// the host starts, which are Waiting and OnDisk. If the host belongs to a group, these are the
// GroupWaiting pages of the group. The estimate is the time until LastStart, which takes the hours
// of CrawlHours, Visit-time and Request-rate into account. If LastStart is zero, the estimate is
// the time until NextStart, plus Delay for each waiting page after the first. TimeLeft returns 0 if
// no page waits, and the longest Duration if the estimate overflows.
func (s HostStats) TimeLeft(now time.Time) time.Duration {
	waiting := s.Waiting + s.OnDisk
	if waiting <= 0 {
		return 0
	}
	if !s.LastStart.IsZero() {
		return max(0, s.LastStart.Sub(now))
	}
	waiting = max(waiting, s.GroupWaiting)
	until := max(0, s.NextStart.Sub(now)) // the zero time is in the past
	others := time.Duration(waiting - 1)
	if others > 0 && s.Delay > (math.MaxInt64-until)/others {
		return math.MaxInt64
	}
	return until + s.Delay*others
}
