package figures

import (
	"reflect"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// sampled are the figures that are read from Stats.
var sampled = []*Figure{
	{
		Name: "collyrobots.gap_over_delay", Unit: "1", Kind: Gauge,
		Help: "Minimum over all hosts of the time between two requests to a host divided by the delay in force; never less than 1 unless several requests may be in flight at once",
		Read: func(s *Sample, _ string) (float64, bool) { return s.GapOverDelay, s.GapOverDelay > 0 },
	},
	{
		Name: "collyrobots.pages", Unit: "{page}",
		Help: "Responses of any status that have reached the collector, including cached ones",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Pages), true },
	},
	{
		Name: "collyrobots.failed_pages", Unit: "{page}",
		Help: "Pages that have failed, as Stats counts them",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Failed), true },
	},
	{
		Name: "collyrobots.given_up_pages", Unit: "{page}",
		Help: "Pages that have failed although they were to be repeated, by Retry or RetryThrottled",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.GivenUp), true },
	},
	{
		Name: "collyrobots.refusals", Unit: "{page}",
		Help: "Pages that a host has refused: status 401, 403 or 451, a challenge, or a connection that was reset",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Refusals), true },
	},
	{
		Name: "collyrobots.unchanged_pages", Unit: "{page}",
		Help: "Pages that have not changed since an earlier visit, so that no response has reached the collector",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Unchanged), true },
	},
	{
		Name: "collyrobots.decisions", Unit: "{decision}", Labels: []Label{reason},
		Help: "Requests and sitemap entries that were allowed or denied, by reason",
		Read: func(s *Sample, label string) (float64, bool) {
			return float64(s.Decisions[report.Reason(label)]), true
		},
	},
	{
		Name: "collyrobots.waiting_pages", Unit: "{page}", Kind: Level,
		Help: "Pages that are waiting to be requested",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Totals.Waiting), true },
	},
	{
		Name: "collyrobots.frontier.pages", Unit: "{page}", Kind: Level, Labels: []Label{pageState},
		Help: "Pages in the urlstore.Store of the option Frontier, by state",
		Read: func(s *Sample, label string) (float64, bool) { return float64(frontierPages(s.Frontier, label)), true },
	},
	{
		Name: "collyrobots.wait.time", Unit: "s",
		Help: "Total time that requests have waited for their start",
		Read: func(s *Sample, _ string) (float64, bool) { return s.Totals.Waited.Seconds(), true },
	},
	{
		Name: "collyrobots.rate.wait.time", Unit: "s",
		Help: "Part of the wait time that requests have waited for the rate of MaxRate",
		Read: func(s *Sample, _ string) (float64, bool) { return rateOf(s).Waited.Seconds(), true },
	},
	{
		Name: "collyrobots.rate.waiting_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts whose next request waits for the rate of MaxRate",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(rateOf(s).Waiting), true },
	},
	{
		Name: "collyrobots.hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts in memory",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Known), true },
	},
	{
		Name: "collyrobots.waiting_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts with waiting pages",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Waiting), true },
	},
	{
		Name: "collyrobots.slowed_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts that have slowed the crawl down with a 429 or 503; of a group of PaceBy, those that have begun it",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Slowed), true },
	},
	{
		Name: "collyrobots.stopped_hosts", Unit: "{host}", Kind: Level,
		Help: "Hosts that get no pages because they have refused too many in a row",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Stopped), true },
	},
	{
		Name: "collyrobots.policies", Unit: "{policy}", Kind: Level, Labels: []Label{robotsStatus},
		Help: "Policies (robots.txt files) in memory, by status",
		Read: func(s *Sample, label string) (float64, bool) {
			return float64(s.Policies[report.RobotsStatus(label)].Count), true
		},
	},
	{
		Name: "collyrobots.oldest_policy.timestamp", Unit: "s", Kind: Gauge, Labels: []Label{robotsStatus},
		Help: "Unix time when the oldest policy in memory was fetched, or when its last fetch failed, by status",
		Read: func(s *Sample, label string) (float64, bool) {
			oldest := s.Policies[report.RobotsStatus(label)].Oldest
			return float64(oldest.UnixMilli()) / 1000, !oldest.IsZero()
		},
	},
	{
		Name: "collyrobots.sitemap.files", Unit: "{file}", Labels: []Label{file},
		Help: "Sitemaps and sitemap indexes, by outcome",
		Read: func(s *Sample, label string) (float64, bool) { return float64(files(&s.Sitemaps, label)), true },
	},
	{
		Name: "collyrobots.sitemap.cut_files", Unit: "{file}",
		Help: "Sitemaps and sitemap indexes that ended early or were cut off at a limit",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.FilesCut), true },
	},
	{
		Name: "collyrobots.sitemap.read_entries", Unit: "{entry}",
		Help: "Sitemap entries read",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.Entries), true },
	},
	{
		Name: "collyrobots.sitemap.entries", Unit: "{entry}", Labels: []Label{entry},
		Help: "Sitemap entries processed, by outcome",
		Read: func(s *Sample, label string) (float64, bool) { return float64(entries(&s.Sitemaps, label)), true },
	},
	{
		Name: "collyrobots.sitemap.errors", Unit: "{error}",
		Help: "Sitemaps, parts of sitemaps and entries that could not be read",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.Sitemaps.Errors), true },
	},
	{
		Name: "collyrobots.disallowed_uses", Unit: "{page}", Labels: []Label{use},
		Help: "Fetched pages whose owner disallows a use of their content, by use; needs the option Purpose",
		Read: func(s *Sample, label string) (float64, bool) { return float64(disallowed(s.Usage, label)), true },
	},
	{
		Name: "collyrobots.licenses_required", Unit: "{response}",
		Help: "Responses with status 401 that ask for a license",
		Read: func(s *Sample, _ string) (float64, bool) { return float64(s.LicenseRequired), true },
	},
	{
		Name: "collyrobots.tagged_pages", Unit: "{page}", Labels: []Label{rule},
		Help: "Pages that must not be indexed, and pages with links that must not be followed, by rule",
		Read: func(s *Sample, label string) (float64, bool) { return float64(tagged(s.RobotsTags, label)), true },
	},
	{
		Name: "collyrobots.signatures", Unit: "{request}", Labels: []Label{signature},
		Help: "Requests that were signed, or could not be signed, by outcome",
		Read: func(s *Sample, label string) (float64, bool) { return float64(signatures(s.Signatures, label)), true },
	},
}

// disallowed returns the number of pages with an owner that disallows a use, or 0 without the
// option Purpose.
func disallowed(s *report.UsageStats, use string) int {
	if s == nil {
		return 0
	}
	return map[string]int{"search": s.Search.Disallowed, "ai-use": s.AIUse.Disallowed, "train-ai": s.TrainAI.Disallowed}[use]
}

func tagged(s report.RobotsTagStats, rule string) int {
	return map[string]int{"noindex": s.NoIndex, "nofollow": s.NoFollow}[rule]
}

// signatures returns the number of requests with an outcome, or 0 if no request is signed.
func signatures(s *report.SignatureStats, outcome string) int {
	if s == nil {
		return 0
	}
	return map[string]int{"signed": s.Signed, "failed": s.Failed}[outcome]
}

// frontierPages returns the number of pages in a state, or 0 without the option Frontier.
func frontierPages(s *urlstore.Stats, state string) int {
	if s == nil {
		return 0
	}
	return map[string]int{
		"waiting": s.Waiting, "out": s.Out, "done": s.Done, "denied": s.Denied, "failed": s.Failed,
		"over_budget": s.OverBudget, "unrecorded": s.Unrecorded,
	}[state]
}

func files(s *report.FeedStats, outcome string) int {
	return map[string]int{"opened": s.Files, "failed": s.FilesFailed, "unchanged": s.FilesUnchanged}[outcome]
}

func entries(s *report.FeedStats, outcome string) int {
	return map[string]int{
		"fed": s.Fed, "resumed": s.Resumed, "old": s.Old, "dropped": s.Dropped, "out_of_scope": s.OutOfScope,
		"duplicate": s.Duplicate, "denied": s.Denied, "refused": s.Refused, "given_up": s.GivenUp,
	}[outcome]
}

// A Sample is a result of Stats with totals instead of hosts. It must not be changed.
type Sample struct {
	report.Stats     // without Hosts
	Known        int // the number of hosts
	Waiting      int // the number of hosts with waiting pages
	Slowed       int // the number of hosts that the crawl slows down for
	Stopped      int // the number of hosts that StopAfterRefusals has stopped
}

// A Sampler reads Stats. With many hosts this takes a while, so a sample is used for fifty times as
// long as it took to read. However often Read is called, reading uses at most a fiftieth of one
// processor.
type Sampler struct {
	read func(visit func(report.HostStats)) report.Stats // Plugin.StatsFunc

	// mu protects the fields below it. It is held while a sample is read, so that only one is read
	// at a time.
	mu    sync.Mutex
	last  *Sample
	until time.Time
}

// share is the ratio of two times: how long a sample is used, and how long it took to read it.
const share = 50

// NewSampler returns a Sampler of c. If c is nil, the samples are zero.
func NewSampler(c report.Source) *Sampler {
	if c == nil {
		return &Sampler{read: func(func(report.HostStats)) report.Stats { return report.Stats{} }}
	}
	return &Sampler{read: c.StatsFunc}
}

// Listen calls f for each event of c until stop is called. If c is nil, there are no events.
func Listen(c report.Source, f func(*report.Event)) (stop func()) {
	if c == nil {
		return func() {}
	}
	return c.Listen(f)
}

// Read returns a sample. It is safe for concurrent use.
func (s *Sampler) Read() *Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if s.last != nil && began.Before(s.until) {
		return s.last
	}
	fresh := new(Sample)
	fresh.Stats = s.read(fresh.count)
	fresh.NotFed = nil
	fresh.raise(s.last)
	s.last = fresh
	s.until = time.Now().Add(share * time.Since(began))
	return s.last
}

// count counts a host.
func (s *Sample) count(host report.HostStats) {
	s.Known++
	if host.Waiting > 0 {
		s.Waiting++
	}
	if isSlowed(host) {
		s.Slowed++
	}
	if !host.Stopped.IsZero() {
		s.Stopped++
	}
}

// isSlowed reports whether a host has slowed the crawl down. All hosts of a group of PaceBy have
// the back-off of the group, but only some of them have asked for fewer requests.
func isSlowed(host report.HostStats) bool {
	slow := host.BackOff > 0 || !host.NotBefore.IsZero()
	return slow && (host.Group == "" || host.Throttled > 0)
}

// raise sets each counter to at least its value in the previous sample, which may be nil. Stats
// reads the hosts one after another, so a host that is dropped from memory at the same time may be
// missing once. A metrics system would take a lower value for a restart of the counter.
func (s *Sample) raise(before *Sample) {
	if before == nil {
		return
	}
	counts := reflect.ValueOf(&s.Totals.HostCounts).Elem()
	countsBefore := reflect.ValueOf(before.Totals.HostCounts)
	for i := range counts.NumField() {
		if count := counts.Field(i); count.CanInt() {
			count.SetInt(max(count.Int(), countsBefore.Field(i).Int()))
		}
	}
	if gap := before.GapOverDelay; gap > 0 && (gap < s.GapOverDelay || s.GapOverDelay == 0) {
		s.GapOverDelay = gap
	}
}

// rateOf returns the waits for the rate of MaxRate, which are zero without the option.
func rateOf(s *Sample) report.RateStats {
	if s.Rate == nil {
		return report.RateStats{}
	}
	return *s.Rate
}
