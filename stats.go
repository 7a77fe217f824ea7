package collyrobots

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
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
	sorted := slices.SortedFunc(p.wire.Hosts.All(), func(a, b *pace.Host) int { return strings.Compare(a.Name(), b.Name()) })
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
	return p.statsOf(p.wire.Hosts.All(), visit)
}

// statsOf returns the Stats without Hosts, and calls visit for each of the hosts.
func (p *Plugin) statsOf(hosts iter.Seq[*pace.Host], visit func(report.HostStats)) Stats {
	forgotten := hostStats(p.wire.Hosts.Forgotten())
	s := Stats{
		Started:    p.started,
		Closed:     p.closed.Load(),
		ClosedAt:   p.closedAt(),
		Totals:     forgotten,
		NotSent:    p.unsent.statistics(),
		Decisions:  p.judge.Statistics(),
		Policies:   p.policies.Statistics(),
		Forgotten:  forgotten,
		RobotsTags: p.tagCounts.statistics(),
		Sitemaps:   p.sitemaps.statistics(),
		NotFed:     p.sitemaps.examples(),
		Frontier:   p.frontier.statistics(),
		Usage:      p.judge.Uses.Statistics(),

		Revalidation: p.revalidation.statistics(),
	}
	s.Signatures, s.LicenseRequired = p.wire.Statistics()
	now := time.Now()
	paused := p.frontier.isPaused()
	groups := p.wire.GroupsOnDisk(now)
	for host := range hosts {
		counted := host.Stats(now)
		stats := hostStats(counted)
		stats.OnDisk = p.wire.OnDisk(host)
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
	s.Shadows = p.shadows.Statistics()
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
	s.MaxPages = p.settings.Of(s.Host).MaxPages
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

// closedAt returns the time of the first Close, or zero before it.
func (p *Plugin) closedAt() time.Time {
	if at := p.ended.Load(); at != nil {
		return *at
	}
	return time.Time{}
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
