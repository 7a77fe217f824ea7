package collyrobots

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// These types are part of package report. They have names here because most programs use them.
type (
	// A Decision says whether a URL may be fetched, and why.
	Decision = report.Decision
	// An Event reports something that happened on the wire, or that a request was not sent.
	Event = report.Event
	// Stats describes what a Plugin has done so far.
	Stats = report.Stats
)

// Stats returns the counts so far. It may be called at any time. The hosts are read one after
// another, so their counts may belong to slightly different times.
//
// Stats needs time and memory for all hosts and sorts them: for 100,000 hosts, about 50 ms and
// 23 MB. Use StatsFunc if only some hosts or the sums are needed.
func (p *Plugin) Stats() Stats {
	if p == nil || p.core == nil {
		return Stats{}
	}
	// Sorting pointers is faster than sorting the large report.HostStats.
	sorted := slices.SortedFunc(p.limiter.Hosts.All(), func(a, b *pace.Host) int { return strings.Compare(a.Name(), b.Name()) })
	hosts := make([]report.HostStats, 0, len(sorted))
	s := p.statsOf(slices.Values(sorted), func(host report.HostStats) { hosts = append(hosts, host) })
	s.Hosts = hosts
	return s
}

// StatsFunc is like Stats, but it leaves Hosts nil and calls visit for each host instead, in no
// particular order. It is faster and needs no memory for the hosts. For example, visit can count
// the hosts with waiting pages, or keep the ten hosts with the most.
//
// StatsFunc holds no lock when it calls visit.
func (p *Plugin) StatsFunc(visit func(host report.HostStats)) Stats {
	if p == nil || p.core == nil {
		return Stats{}
	}
	return p.statsOf(p.limiter.Hosts.All(), visit)
}

// statsOf returns the Stats without Hosts, and calls visit for each of the hosts.
func (p *Plugin) statsOf(hosts iter.Seq[*pace.Host], visit func(report.HostStats)) Stats {
	forgotten := hostStats(p.limiter.Hosts.Forgotten())
	s := Stats{
		Started:    p.started,
		Closed:     p.closed.Load(),
		ClosedAt:   p.closedAt(),
		Totals:     forgotten,
		NotSent:    p.unsent.statistics(),
		Decisions:  p.judge.statistics(),
		Policies:   p.policies.statistics(),
		Forgotten:  forgotten,
		RobotsTags: p.tagCounts.statistics(),
		Sitemaps:   p.sitemaps.statistics(),
		NotFed:     p.sitemaps.examples(),
		Frontier:   p.frontier.statistics(),
		Usage:      p.judge.uses.statistics(),

		Revalidation: p.revalidation.statistics(),
	}
	s.Signatures, s.LicenseRequired = p.limiter.Statistics()
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
		countEnding(&s, stats.Ended)
		addHost(&s.Totals, stats)
		visit(stats)
	}
	s.GapOverDelay = s.Totals.GapOverDelay
	s.Shadows = p.shadows.statistics()
	return s
}

// countEnding counts a host by its Ending. It ignores a host that has not ended.
func countEnding(s *Stats, e report.Ending) {
	if e == "" {
		return
	}
	if s.Ended == nil {
		s.Ended = make(map[report.Ending]int)
	}
	s.Ended[e]++
}

// addLimits sets the fields of StopRefused and MaxPages.
func (p *Plugin) addLimits(s *report.HostStats) {
	refusals := p.gate.refusals.hosts.Status(s.Host)
	s.RefusalsInRow = refusals.InRow
	s.Stopped = refusals.Since
	s.NextTry = refusals.Until
	s.MaxPages = p.settings.of(s.Host).maxPages
	if s.MaxPages > 0 {
		s.PagesSent = p.gate.pageLimit.sent.Used(s.Host)
	}
}

// hostStats converts the Stats of package pace.
func hostStats(s pace.Stats) report.HostStats {
	return report.HostStats{
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
		Source:       report.DelaySource(s.Cause),
		Line:         s.Line,
		LastStatus:   s.Status,
		Waited:       s.Waited,
		ResponseTime: s.ResponseTime,
		Delay:        s.Delay,
		MinGap:       s.MinGap,
		GapOverDelay: s.GapOverDelay,
	}
}

// addHost adds the counts and Waited of o to s. GapOverDelay becomes the smaller one of both.
func addHost(s *report.HostStats, o report.HostStats) {
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

// A decisions counts the decisions by their reasons.
type decisions struct {
	known  map[report.Reason]*atomic.Int64 // by each Reason that newDecisions names; not changed after it
	others sync.Map                        // *atomic.Int64 by each other Reason
}

func newDecisions() *decisions {
	d := &decisions{known: make(map[report.Reason]*atomic.Int64)}
	for _, r := range []report.Reason{report.ReasonRule, report.ReasonNoRule, report.ReasonNoRobots, report.ReasonUnreachable, report.ReasonSiteDown, report.ReasonDelay, report.ReasonUsage, report.ReasonIgnored, report.ReasonNofollow, report.ReasonRefused, report.ReasonBudget} {
		d.known[r] = new(atomic.Int64)
	}
	return d
}

// add counts a decision.
func (d *decisions) add(r report.Reason) {
	count := d.known[r]
	if count == nil {
		other, _ := d.others.LoadOrStore(r, new(atomic.Int64))
		count = other.(*atomic.Int64)
	}
	count.Add(1)
}

// counts returns the counts that are not zero.
func (d *decisions) counts() map[report.Reason]int {
	counts := make(map[report.Reason]int)
	for r, count := range d.known {
		if n := count.Load(); n > 0 {
			counts[r] = int(n)
		}
	}
	for r, count := range d.others.Range {
		counts[r.(report.Reason)] = int(count.(*atomic.Int64).Load())
	}
	return counts
}

// closedAt returns the time of the first Close, or zero before it.
func (p *Plugin) closedAt() time.Time {
	if at := p.ended.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// markDenied records that a page of a host was denied for a reason.
func markDenied(host *pace.Host, why report.Reason) {
	switch why {
	case report.ReasonBudget:
		host.Mark(reporter.LeftByBudget)
	case report.ReasonRefused:
		host.Mark(reporter.LeftByRefusals)
	}
}

// markEnded records that a page of a host was not sent or not finished because the Plugin was closed
// or, if closed is false, because the context of the page has ended.
func markEnded(host *pace.Host, closed bool) {
	if closed {
		host.Mark(reporter.LeftByClose)
		return
	}
	host.Mark(reporter.LeftByCancel)
}

// unsentCounts counts the pages that waited for their host when the crawl ended.
type unsentCounts struct{ cancelled, closed atomic.Int64 }

// add counts a page that is not sent because the Plugin was closed or, if closed is false, because
// the context of the page has ended.
func (c *unsentCounts) add(closed bool) {
	if closed {
		c.closed.Add(1)
		return
	}
	c.cancelled.Add(1)
}

// statistics returns the counts for Stats.NotSent, or nil if all of them are 0.
func (c *unsentCounts) statistics() map[report.Ending]int {
	counts := make(map[report.Ending]int)
	if n := c.closed.Load(); n > 0 {
		counts[report.EndingClosed] = int(n)
	}
	if n := c.cancelled.Load(); n > 0 {
		counts[report.EndingCancelled] = int(n)
	}
	if len(counts) == 0 {
		return nil
	}
	return counts
}

// isCancelled reports whether the context of q has ended. If the request is that of an http.Client,
// an expired deadline does not count: it is often the timeout of the client, and does not affect
// other requests.
func (q *request) isCancelled() bool {
	if q.ctx == nil || q.ctx.Err() == nil {
		return false
	}
	return q.entry != nil || q.ctx.Err() == context.Canceled
}

// endingOf returns the Ending of a host. onDisk is the number of its pages that wait in a urlstore.Store.
// paused reports whether these pages are not handed out, because the crawl has ended. A host that
// has reached a limit ended because of the limit: its pages on disk wait for a later run.
func endingOf(s pace.Stats, onDisk int, closed, paused bool) report.Ending {
	switch {
	case s.Busy, s.Requests+s.Pages+s.Denied == 0:
		return ""
	case s.Marks&reporter.LeftByClose != 0:
		return report.EndingClosed
	case s.Marks&reporter.LeftByCancel != 0:
		return report.EndingCancelled
	case onDisk > 0 && !closed && !paused:
		return ""
	case s.Marks&reporter.LeftByRefusals != 0:
		return report.EndingRefused
	case s.Marks&reporter.LeftByBudget != 0:
		return report.EndingBudget
	case onDisk > 0 && closed:
		return report.EndingClosed
	case onDisk > 0:
		return report.EndingCancelled
	}
	return report.EndingDone
}

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

// statistics returns the statistics of all shadows.
func (all shadows) statistics() (stats []report.ShadowStats) {
	for _, shadow := range all {
		stats = append(stats, shadow.statistics())
	}
	return stats
}

// inUse reports whether there is a shadow.
func (all shadows) inUse() bool { return len(all) > 0 }

// compare compares v, the decision about t at now, with those of the shadows, unless robots.txt is
// ignored. f fetches robots.txt for t.
func (all shadows) compare(ctx context.Context, now time.Time, v *verdict, t *target, f exchange.Fetcher) {
	if v.reader == nil || v.reason == report.ReasonNofollow {
		return
	}
	if policy.IsUnanswered(v.policy.Err()) {
		return // each shadow would fetch robots.txt again
	}
	for i, cache := range v.reader.shadows {
		pol, err := v.reader.get(ctx, cache, v.policy.Authority, t.userAgent, f)
		if err != nil {
			continue // the plugin is closed, or the context has ended
		}
		settings := *v.settings
		settings.dialect = all[i].stats.Dialect
		other := verdict{host: v.host, settings: &settings, policy: pol, tdm: v.tdm}
		other.reason, other.rule = apply(pol, t.url)
		if other.rule.Allowed {
			if d := (usageRule{}).judge(now, candidateOf(&other, t)); d != nil {
				other.deny(d)
			}
		}
		all[i].add(*v, other, t.url)
	}
}
