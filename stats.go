package collyrobots

import (
	"iter"
	"slices"
	"strings"
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
	sorted := slices.SortedFunc(p.judge.Wire.Hosts.All(), func(a, b *pace.Host) int { return strings.Compare(a.Name(), b.Name()) })
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
	return p.statsOf(p.judge.Wire.Hosts.All(), visit)
}

// statsOf returns the Stats without Hosts, and calls visit for each of the hosts.
func (p *Plugin) statsOf(hosts iter.Seq[*pace.Host], visit func(report.HostStats)) Stats {
	forgotten := report.HostStats{HostCounts: p.judge.Wire.Hosts.Forgotten()}
	s := Stats{
		Started:    p.started,
		Closed:     p.closed.Load(),
		ClosedAt:   p.closedAt(),
		Totals:     forgotten,
		NotSent:    p.unsent.Statistics(),
		Decisions:  p.judge.Statistics(),
		Policies:   p.judge.Policies.Statistics(),
		Forgotten:  forgotten,
		RobotsTags: p.tagCounts.statistics(),
		Sitemaps:   p.sitemaps.statistics(),
		NotFed:     p.sitemaps.examples(),
		Frontier:   p.frontier.statistics(),
		Usage:      p.judge.Uses.Statistics(),

		Revalidation: p.revalidation.Statistics(),
	}
	s.Signatures, s.LicenseRequired = p.judge.Wire.Statistics()
	now := time.Now()
	s.Rate = reporter.RateStats(now, p.judge.Wire.Hosts)
	paused := p.frontier.isPaused()
	groups := p.judge.Wire.GroupsOnDisk(now)
	turns := p.turnsOf(now, s.Rate != nil, groups)
	for host := range hosts {
		counted := host.Stats(now)
		stats := p.hostStats(host, counted, groups)
		if waiting := waitingOf(&stats); waiting > 0 {
			stats.LastStart = host.LastStart(now, waiting, turns.until(waiting))
		}
		p.addLimits(&stats)
		stats.Ended = reporter.EndingOf(counted, stats.OnDisk, s.Closed, paused)
		reporter.CountEnding(&s, stats.Ended)
		reporter.AddHost(&s.Totals, stats)
		visit(stats)
	}
	s.GapOverDelay = s.Totals.GapOverDelay
	s.Shadows = p.gate.Shadows.Statistics()
	return s
}

// hostStats returns what package pace knows about a host, and the pages that wait in a Frontier.
func (p *Plugin) hostStats(host *pace.Host, counted pace.Stats, groups map[string]int) report.HostStats {
	stats := counted.HostStats
	stats.OnDisk = p.judge.Wire.OnDisk(host)
	stats.GroupWaiting += groups[stats.Group]
	return stats
}

// waitingOf returns how many pages wait for the pace of a host or of its group.
func waitingOf(s *report.HostStats) int {
	waiting := s.Waiting + s.OnDisk
	if waiting == 0 {
		return 0
	}
	return max(waiting, s.GroupWaiting)
}

// turns has the numbers of pages that wait for each pace, in ascending order, and their sums. Under
// MaxRate the hosts take turns, so the last page of a host also waits for pages of the other hosts. A
// host needs 16 bytes.
type turns struct {
	waiting []int
	sums    []int // sums[i] is the sum of waiting[:i]
}

// turnsOf returns the turns of all hosts. They are empty if there is no MaxRate.
func (p *Plugin) turnsOf(now time.Time, isLimited bool, groups map[string]int) (t turns) {
	if !isLimited {
		return t
	}
	grouped := make(map[string]bool)
	for host := range p.judge.Wire.Hosts.All() {
		stats := p.hostStats(host, host.Stats(now), groups)
		if n := waitingOf(&stats); n > 0 && !grouped[stats.Group] {
			t.waiting = append(t.waiting, n)
			grouped[stats.Group] = stats.Group != ""
		}
	}
	slices.Sort(t.waiting)
	t.sums = make([]int, 1, len(t.waiting)+1)
	for i, n := range t.waiting {
		t.sums = append(t.sums, t.sums[i]+n)
	}
	return t
}

// until returns the number of pages of all hosts that start until the last of n pages of one host does.
func (t turns) until(n int) int {
	if len(t.waiting) == 0 {
		return n
	}
	i, _ := slices.BinarySearch(t.waiting, n)
	return max(n, t.sums[i]+n*(len(t.waiting)-i))
}

// addLimits sets the fields of StopAfterRefusals and MaxPagesPerHost.
func (p *Plugin) addLimits(s *report.HostStats) {
	refusals := p.gate.Refusals(s.Host)
	s.RefusalsInRow = refusals.InRow
	s.Stopped = refusals.Since
	s.NextTry = refusals.Until
	s.MaxPagesPerHost = p.judge.Settings.Of(s.Host).MaxPagesPerHost
	if s.MaxPagesPerHost > 0 {
		s.PagesSent = p.gate.PagesSent(s.Host)
	}
}

// closedAt returns the time of the first Close, or zero before it.
func (p *Plugin) closedAt() time.Time {
	if at := p.ended.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
