package report

import (
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store/urlstore"
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
	// one before it. MaxInFlightPerHost allows that, and so does a back-off without a crawl delay.
	GapOverDelay float64 `json:"gap_over_delay,omitempty"`

	// Ended counts the hosts in Hosts by HostStats.Ended. It omits the hosts that have not ended.
	Ended map[Ending]int `json:"ended,omitempty"`

	// NotSent counts the pages that waited for their host and were not sent because the crawl has
	// ended: EndingCanceled if the context of the page has ended, EndingClosed because of Close.
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
	// Signatures counts the signed requests. It is nil without SignRequests.
	Signatures *SignatureStats `json:"signatures,omitempty"`
	// Sitemaps has the counts of sitemaps and of the pages that they list.
	Sitemaps FeedStats `json:"sitemaps"`
	// Frontier has the counts of the urlstore.Store of the option Frontier. It is nil without the option.
	Frontier *urlstore.Stats `json:"frontier,omitempty"`
	// Usage counts the pages by what their owners say about their use. It is nil without the option
	// Purpose, and before the first page.
	Usage *UsageStats `json:"usage,omitempty"`
	// Rate has the waits for the rate of MaxRate. It is nil without the option.
	Rate *RateStats `json:"rate,omitempty"`
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

// PolicyStats describes the robots.txt files with the same RobotsStatus. A file counts several
// times if it is read for several names.
type PolicyStats struct {
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"` // the earliest time at which one was read, or a fetch failed
}

// FeedStats has the counts of sitemaps and of the pages that they list.
type FeedStats struct {
	Files          int `json:"files"`           // sitemaps and indexes that were read
	FilesFailed    int `json:"files_failed"`    // files that could not be fetched, were disallowed, or are not sitemaps
	FilesCut       int `json:"files_cut"`       // files that ended early or exceeded a limit; the rest of them is lost
	FilesUnchanged int `json:"files_unchanged"` // files that Resume has left out

	Entries    int `json:"entries"`      // page entries that were read
	Resumed    int `json:"resumed"`      // skipped by Resume, because an earlier run has processed them
	Fed        int `json:"fed"`          // accepted by the collector or the Sink
	Old        int `json:"old"`          // skipped by Since
	Dropped    int `json:"dropped"`      // skipped by Keep
	OutOfScope int `json:"out_of_scope"` // skipped by Scope
	Duplicate  int `json:"duplicate"`    // listed before
	Denied     int `json:"denied"`       // disallowed by robots.txt
	Refused    int `json:"refused"`      // refused by the collector or the Sink: visited before, outside AllowedDomains, ...
	GivenUp    int `json:"given_up"`     // given up with Resume, because they have failed in three runs
	Errors     int `json:"errors"`       // entries, files and parts of files that could not be read; see the log
}

// RobotsTagStats counts the responses whose rules were read; see Plugin.RobotsTags. Rules in
// headers always count. Rules in meta elements count only under EnforceNofollow, because without
// it the plugin does not read the pages.
type RobotsTagStats struct {
	Pages    int `json:"pages"`    // pages with at least one rule for this crawler
	NoIndex  int `json:"noindex"`  // pages that must not be indexed
	NoFollow int `json:"nofollow"` // pages with links that must not be followed, except by rel=nofollow
}

// SignatureStats counts the signatures of SignRequests.
type SignatureStats struct {
	// Signed counts the requests that were signed: pages, robots.txt, sitemaps, redirects and
	// second attempts. A request that net/http sends again on another connection counts again.
	// Requests that the program has signed itself are included.
	Signed int `json:"signed"`
	// Failed counts the requests that could not be signed and were sent without a signature.
	Failed int `json:"failed"`
	// Asked counts the responses that have asked for a signature.
	Asked int `json:"asked"`
	// Hosts counts the hosts that have asked for signatures, if Signer.WhenAsked is set. Their
	// requests are signed.
	Hosts int `json:"hosts"`
}

// RateStats describes the waits for the rate of MaxRate. They are a part of the waits in HostStats.
type RateStats struct {
	// Waiting counts the hosts whose next request waits for the rate now.
	Waiting int `json:"waiting"`
	// Waited is the time that all requests together have waited for the rate.
	Waited time.Duration `json:"-"`
}

// UsageStats counts the fetched pages by the preferences for each use. The preferences are those of
// robots.txt, the TDMRep file and the response headers. Preferences in HTML do not count, and
// redirects are not counted.
type UsageStats struct {
	Search  UsageCounts `json:"search"`
	AIUse   UsageCounts `json:"ai-use"`
	TrainAI UsageCounts `json:"train-ai"`
}

// UsageCounts counts the pages by the preference for one use.
type UsageCounts struct {
	Allowed    int `json:"allowed"`
	Disallowed int `json:"disallowed"`
	Unknown    int `json:"unknown"`
}

// RevalidationStats has the counts of the option Revalidate. HostStats.Unchanged counts the pages
// that have not changed.
type RevalidationStats struct {
	Conditional int `json:"conditional"` // requests that were conditional
	Fresh       int `json:"fresh"`       // pages that were not requested because of Revalidation.SkipFresh
	Recorded    int `json:"recorded"`    // records that were written
	Unusable    int `json:"unusable"`    // responses with a malformed, too long or repeated validator
	Failed      int `json:"failed"`      // reads and writes of records that have failed
}

// ShadowStats compares the decisions of another dialect with those of this crawl.
type ShadowStats struct {
	Dialect  dialect.Dialect `json:"dialect"`
	Compared int             `json:"compared"` // the number of pages with a decision of both dialects
	Stricter int             `json:"stricter"` // the pages that were allowed, and Dialect would deny
	Laxer    int             `json:"laxer"`    // the pages that were denied, and Dialect would allow

	// Differences are the first 1,000 pages with different decisions, in the order of the crawl.
	Differences []Difference `json:"differences,omitempty"`
}

// A Difference is a page that one dialect allows and the other denies.
type Difference struct {
	Enforced Decision `json:"enforced"`
	Shadow   Decision `json:"shadow"`
}
