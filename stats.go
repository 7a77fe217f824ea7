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
	Started time.Time `json:"started,omitzero"` // when New made the plugin
	Closed  bool      `json:"closed,omitempty"` // Close was called: all requests are denied with ErrClosed

	// Totals is the sum of Hosts and Forgotten: its counts, Waiting and Waited.
	Totals HostStats `json:"totals"`
	// GapOverDelay is the shortest time between two requests to one host divided by the delay that
	// was in force then, of all hosts. It is never less than 1, unless several may be under way
	// (MaxInFlight, or a back-off without a crawl delay) and one catches up with the one before it.
	// 0: there were no two, or it is a dry run.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`

	// Decisions are how often robots.txt allowed or denied a request, or an entry of a sitemap, by
	// the reason. One that is decided about again, because its robots.txt has changed while it
	// waited, counts again.
	Decisions map[Reason]int `json:"decisions"`
	// Policies counts the robots.txt files that are kept now, by their RobotsStatus.
	Policies map[RobotsStatus]PolicyStats `json:"policies"`

	Hosts     []HostStats   `json:"hosts"`     // sorted by name
	Forgotten HostStats     `json:"forgotten"` // the sum of hosts no longer kept: of very many, those not asked in a while
	Sitemaps  FeedStats     `json:"sitemaps"`
	Shadows   []ShadowStats `json:"shadows,omitempty"` // in the order in which Shadow names them

	// NotFed are the first URLs that sitemaps list and that were not fed, by the name of their
	// count in FeedStats as JSON: "out_of_scope".
	NotFed map[string][]string `json:"not_fed,omitempty"`
}

// HostStats is what happened with one host. http and https of a host are one; another port is
// another host.
type HostStats struct {
	Host      string `json:"host,omitempty"` // as in a URL, with the port unless it is the default one
	Requests  int    `json:"requests"`       // sent: pages, redirect hops, robots.txt, sitemaps
	Throttled int    `json:"throttled"`      // times it asked for less: 429 or 503, each incident once
	Pages     int    `json:"pages"`          // responses that reached the collector, of any status, cached ones included
	Denied    int    `json:"denied"`         // requests not sent because of robots.txt, or that would not have been in a dry run
	Waiting   int    `json:"waiting"`        // pages that wait for their turn now

	CrawlDelay time.Duration `json:"-"`                   // what robots.txt asks for; of several delays the longest
	BackOff    time.Duration `json:"-"`                   // the delay that 429 and 503 have brought
	NotBefore  time.Time     `json:"not_before,omitzero"` // until when a Retry-After holds everything; zero: it does not
	NextStart  time.Time     `json:"next_start,omitzero"` // before when no request starts; zero: one may at once

	// Source is what keeps the next request back until NextStart or, if nothing does, where Delay
	// comes from. Line is the line of robots.txt if that is a crawl delay; 0: not known.
	Source DelaySource `json:"source,omitempty"`
	Line   int         `json:"line,omitempty"`

	LastStatus int           `json:"last_status,omitempty"` // of the last answer; 0: there was none
	Waited     time.Duration `json:"-"`                     // by all requests together until they might start

	// Delay is kept between the starts of two requests: the longest of BackOff, MinDelay, and
	// CrawlDelay within MaxDelay and SkipAbove. 0: none.
	Delay time.Duration `json:"-"`
	// MinGap is the shortest time between two requests on the wire since a delay has been in force;
	// 0: there were no two.
	MinGap time.Duration `json:"-"`
	// GapOverDelay is the shortest such time divided by the delay that was in force then: 1 is
	// exactly as asked. 0: there were no two, or it is a dry run.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`
}

// Stats returns the counts so far. It may be called at any time. The hosts are read one after
// another.
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
		Started:   p.started,
		Closed:    p.closed.Load(),
		Totals:    forgotten,
		Decisions: p.decided.counts(),
		Policies:  p.policies.statistics(),
		Forgotten: forgotten,
		Sitemaps:  p.sitemaps.statistics(),
		NotFed:    p.sitemaps.examples(),
	}
	now := time.Now()
	for host := range hosts {
		stats := hostStats(host.Stats(now))
		s.Totals.add(stats)
		visit(stats)
	}
	s.GapOverDelay = s.Totals.GapOverDelay
	for _, shadow := range p.shadows {
		s.Shadows = append(s.Shadows, shadow.statistics())
	}
	return s
}

// hostStats publishes what the pace knows of a host.
func hostStats(s pace.Stats) HostStats {
	return HostStats{
		Host: s.Host, Requests: s.Requests, Throttled: s.Throttled, Pages: s.Pages, Denied: s.Denied, Waiting: s.Waiting,
		CrawlDelay: s.CrawlDelay, BackOff: s.BackOff, NotBefore: s.NotBefore, NextStart: s.NextStart,
		Delay: s.Delay, Source: DelaySource(s.Cause), Line: s.Line,
		MinGap: s.MinGap, GapOverDelay: s.GapOverDelay, Waited: s.Waited, LastStatus: s.Status,
	}
}

// add sums what can be summed. GapOverDelay becomes the smaller of both.
func (s *HostStats) add(o HostStats) {
	s.Requests += o.Requests
	s.Throttled += o.Throttled
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Waiting += o.Waiting
	s.Waited += o.Waited
	if s.GapOverDelay == 0 || o.GapOverDelay != 0 && o.GapOverDelay < s.GapOverDelay {
		s.GapOverDelay = o.GapOverDelay
	}
}

// TimeLeft estimates how long it takes, counted from now, until the last of the waiting pages of the
// host starts. The estimate is the time until NextStart, plus Delay for each waiting page after the
// first. TimeLeft returns 0 if no page waits, and the longest Duration if the estimate overflows.
func (s HostStats) TimeLeft(now time.Time) time.Duration {
	if s.Waiting <= 0 {
		return 0
	}
	until := max(0, s.NextStart.Sub(now)) // the zero time is long past
	others := time.Duration(s.Waiting - 1)
	if others > 0 && s.Delay > (math.MaxInt64-until)/others {
		return math.MaxInt64
	}
	return until + s.Delay*others
}
