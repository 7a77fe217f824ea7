package figures

import (
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
)

// sampled are the figures that Stats has.
var sampled = []*Figure{
	{
		Name: "collyrobots.gap_over_delay", Unit: "1", Kind: Gauge,
		Help: "Shortest time between two requests to one host over the delay that was in force then, of all hosts: never less than 1 unless several requests may be on the wire at once",
		Read: func(s *Sample, _ string) (float64, bool) { return s.GapOverDelay, s.GapOverDelay > 0 },
	},
	{
		Name: "collyrobots.pages", Unit: "{page}",
		Help: "Responses of any status that have reached the collector, cached ones included",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Pages), true },
	},
	{
		Name: "collyrobots.decisions", Unit: "{decision}", Labels: []Label{reason},
		Help: "Requests and entries of sitemaps that were allowed or denied, by the reason",
		Read: func(s *Sample, label string) (float64, bool) {
			return float64(s.Decisions[collyrobots.Reason(label)]), true
		},
	},
	{
		Name: "collyrobots.waiting_pages", Unit: "{page}", Kind: Level,
		Help: "Pages that wait for their turn now",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Waiting), true },
	},
	{
		Name: "collyrobots.wait.time", Unit: "s",
		Help: "Time that all requests together have waited until they might start",
		Read: func(s *Sample, _ string) (float64, bool) { return s.Totals.Waited.Seconds(), true },
	},
	{
		Name: "collyrobots.hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts that are kept in memory",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Known), true },
	},
	{
		Name: "collyrobots.waiting_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts that pages wait for now",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Waiting), true },
	},
	{
		Name: "collyrobots.slowed_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts that are asked less often now because of a 429 or 503",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Slowed), true },
	},
	{
		Name: "collyrobots.policies", Unit: "{policy}", Kind: Level, Labels: []Label{robotsStatus},
		Help: "Readings of robots.txt that are kept now, by status",
		Read: func(s *Sample, label string) (float64, bool) {
			return float64(s.Policies[collyrobots.RobotsStatus(label)].Count), true
		},
	},
	{
		Name: "collyrobots.oldest_policy.timestamp", Unit: "s", Kind: Gauge, Labels: []Label{robotsStatus},
		Help: "Unix time at which the oldest reading of robots.txt that is kept was made, or the last try failed, by status",
		Read: func(s *Sample, label string) (float64, bool) {
			oldest := s.Policies[collyrobots.RobotsStatus(label)].Oldest
			return float64(oldest.UnixMilli()) / 1000, !oldest.IsZero()
		},
	},
	{
		Name: "collyrobots.sitemap.files", Unit: "{file}", Labels: []Label{file},
		Help: "Sitemaps and indexes, by what became of them",
		Read: func(s *Sample, label string) (float64, bool) { return float64(files(&s.Sitemaps, label)), true },
	},
	{
		Name: "collyrobots.sitemap.cut_files", Unit: "{file}",
		Help: "Sitemaps and indexes that were opened and have ended early or by a limit",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.FilesCut), true },
	},
	{
		Name: "collyrobots.sitemap.read_entries", Unit: "{entry}",
		Help: "Entries of sitemaps that were read",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.Entries), true },
	},
	{
		Name: "collyrobots.sitemap.entries", Unit: "{entry}", Labels: []Label{entry},
		Help: "Entries of sitemaps that were dealt with, by what became of them",
		Read: func(s *Sample, label string) (float64, bool) { return float64(entries(&s.Sitemaps, label)), true },
	},
	{
		Name: "collyrobots.sitemap.errors", Unit: "{error}",
		Help: "Sitemaps, parts of them and entries that could not be read",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.Errors), true },
	},
}

func files(s *collyrobots.FeedStats, outcome string) int {
	return map[string]int{"opened": s.Files, "failed": s.FilesFailed, "unchanged": s.FilesUnchanged}[outcome]
}

func entries(s *collyrobots.FeedStats, outcome string) int {
	return map[string]int{
		"fed": s.Fed, "resumed": s.Resumed, "old": s.Old, "dropped": s.Dropped, "out_of_scope": s.OutOfScope,
		"duplicate": s.Duplicate, "denied": s.Denied, "refused": s.Refused, "given_up": s.GivenUp,
	}[outcome]
}

// A Sample is what Stats has said: its sums, without its hosts. It is not to be changed.
type Sample struct {
	collyrobots.Stats     // without Hosts
	Known             int // hosts that Stats has named
	Waiting           int // of those, the ones that pages wait for
	Slowed            int // of those, the ones that have asked for less
}

// A Sampler reads Stats. Of many hosts that takes a while, so what was read is good for fifty times
// as long: whoever asks, and how often, it takes a fiftieth of one processor at most.
type Sampler struct {
	plugin *collyrobots.Plugin

	mu    sync.Mutex
	last  *Sample
	until time.Time
}

// share is how many times as long as reading it a sample is good for.
const share = 50

// NewSampler returns a Sampler of p, which may be nil or closed.
func NewSampler(p *collyrobots.Plugin) *Sampler { return &Sampler{plugin: p} }

// Read returns a sample. It may be called from any goroutine.
func (s *Sampler) Read() *Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if s.last != nil && began.Before(s.until) {
		return s.last
	}
	s.last = newSample(s.plugin.Stats(), s.last)
	s.until = time.Now().Add(share * time.Since(began))
	return s.last
}

// newSample sums up the hosts of stats. Stats reads them one after another, and one that is
// forgotten meanwhile may be missing for once: what only grows does not fall behind the sample
// before, or else it would be taken for a counter that has begun anew.
func newSample(stats collyrobots.Stats, before *Sample) *Sample {
	s := &Sample{Stats: stats, Known: len(stats.Hosts)}
	for i := range stats.Hosts {
		host := &stats.Hosts[i]
		if host.Waiting > 0 {
			s.Waiting++
		}
		if host.BackOff > 0 || !host.NotBefore.IsZero() {
			s.Slowed++
		}
	}
	s.Hosts, s.NotFed = nil, nil
	if before != nil {
		s.Totals.Pages = max(s.Totals.Pages, before.Totals.Pages)
		s.Totals.Waited = max(s.Totals.Waited, before.Totals.Waited)
		if gap := before.GapOverDelay; gap > 0 && (gap < s.GapOverDelay || s.GapOverDelay == 0) {
			s.GapOverDelay = gap
		}
	}
	return s
}
