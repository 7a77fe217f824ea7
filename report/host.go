package report

import (
	"math"
	"time"
)

// HostCounts has the statistics of a host that are also kept as a sum over hosts, when the hosts
// themselves are no longer kept. They are fields of HostStats, also in JSON.
type HostCounts struct {
	// Requests counts the requests that were sent: pages, redirects, robots.txt, sitemaps and
	// retries.
	Requests int `json:"requests"`
	// Throttled counts how often the host has throttled the crawl, with status 429 or 503. The
	// responses to requests that were already in flight at the first such response do not count. It
	// counts to 65,535.
	Throttled int `json:"throttled"`
	// Pages counts the responses that reached the collector, with any status. Responses from
	// Colly's cache are included.
	Pages int `json:"pages"`
	// Denied counts the requests that were denied with a Decision. They were not sent, except in a
	// dry run.
	Denied int `json:"denied"`
	// Failed counts the pages without a complete response of status 2xx or 304, except those that were
	// denied with a Decision, that redirect to a page that was requested before, whose host belongs to
	// another shard, or that the end of the crawl has cut off. An attempt that is repeated does not
	// count. Pages also counts the failed pages with a status.
	Failed int `json:"failed"`
	// Refusals counts the pages that the host has refused, to 65,535; see StopAfterRefusals.
	Refusals int `json:"refusals,omitempty"`
	// Retried counts the requests for pages that Retry or RetryThrottled has repeated, and GivenUp the pages
	// that failed although they were to be repeated. Failed also counts the pages that were given up.
	Retried int `json:"retried,omitempty"`
	GivenUp int `json:"given_up,omitempty"`
	// Unchanged counts the pages that have not changed since an earlier visit: those that were
	// answered with 304, and those that were not requested because of Revalidation.SkipFresh. They are not in
	// Pages. It is 0 without the option Revalidate.
	Unchanged int `json:"unchanged,omitempty"`
	// Waited is the time that all requests together have waited for the host.
	Waited time.Duration `json:"-"`
	// GapOverDelay is the smallest quotient of the time between the starts of two requests on the wire
	// and the delay that was in force then. If it is 1, the delay was kept exactly. It is 0 if there
	// were no two requests, and in a dry run.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`
}

// Add adds the counts and Waited of o to c. GapOverDelay becomes the smaller one that is not 0.
func (c *HostCounts) Add(o HostCounts) {
	c.Requests += o.Requests
	c.Throttled += o.Throttled
	c.Pages += o.Pages
	c.Denied += o.Denied
	c.Failed += o.Failed
	c.Refusals += o.Refusals
	c.Retried += o.Retried
	c.GivenUp += o.GivenUp
	c.Unchanged += o.Unchanged
	c.Waited += o.Waited
	if c.GapOverDelay == 0 || o.GapOverDelay != 0 && o.GapOverDelay < c.GapOverDelay {
		c.GapOverDelay = o.GapOverDelay
	}
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
	HostCounts
	// RefusalsInRow counts the refusals since the last success; see StopAfterRefusals.
	RefusalsInRow int `json:"refusals_in_row,omitempty"`
	// Stopped is the time when StopAfterRefusals stopped the host, and NextTry is the time when one of
	// its pages may be requested again. Both are zero if the host is not stopped.
	Stopped time.Time `json:"stopped,omitzero"`
	NextTry time.Time `json:"next_try,omitzero"`
	// PagesSent counts the pages that were sent or are about to be sent, as the option MaxPagesPerHost
	// counts them. MaxPagesPerHost is the limit. Both are 0 without the option.
	PagesSent       int `json:"pages_sent,omitempty"`
	MaxPagesPerHost int `json:"max_pages_per_host,omitempty"`
	// Ended says why the host gets no more requests. It is "" if pages of the host wait or are in
	// flight, or if it has had no pages. It is also "done" while the program makes a pause between
	// two pages.
	Ended Ending `json:"ended,omitempty"`
	// Waiting counts the pages that wait for the host now.
	Waiting int `json:"waiting"`
	// OnDisk counts the pages of the host that wait in the urlstore.Store of the option Frontier. In
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

	// ResponseTime is the smoothed response time under AdaptiveDelay. It is 0 before the first
	// response, and without the option.
	ResponseTime time.Duration `json:"-"`
	// Delay is the delay in force between the starts of two requests, or 0. It is the longest of
	// BackOff, MinDelay, the delay of AdaptiveDelay, and CrawlDelay and the Request-rate within the
	// limits of MaxCrawlDelay and SkipCrawlDelayAbove.
	Delay time.Duration `json:"-"`
	// MinGap is the shortest time between the starts of two requests on the wire since a delay has
	// been in force, or 0 if there were no two requests.
	MinGap time.Duration `json:"-"`
}

// TimeLeft estimates how long it takes, counted from now, until the last of the waiting pages of
// the host starts, which are Waiting and OnDisk. If the host belongs to a group, these are the
// GroupWaiting pages of the group. The estimate is the time until LastStart, which takes the hours
// of CrawlHours, Visit-time and Request-rate into account, and the turns of all hosts under MaxRate. If LastStart is zero, the estimate is
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
