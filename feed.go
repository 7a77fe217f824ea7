package collyrobots

import (
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A Feed says which pages of sitemaps are crawled, and how. The zero Feed crawls each page that is
// on the host of its sitemap and that its robots.txt allows. The colly.Context of such a page has
// the values CtxSitemap and CtxLastMod.
//
// A page that robots.txt denies never becomes a request, so OnDenied is not called for it. It is
// reported as an report.EventDenied, and counted in report.FeedStats.
//
// Sitemaps are read inside a hook of a request that is done, OnScraped or OnError. So
// Collector.Wait and Queue.Run return after the sitemaps are read. Callbacks of that hook that were
// registered after Attach run after the sitemaps are read. If DetectCharset does not find the
// character set of a page, Colly calls neither hook. Then the sitemaps are read at the end of
// [Collector.Visit], or ten seconds later if the collector is Async, and otherwise after the next
// page. Wait also waits for these ten seconds. If a Host header names a site at another address,
// the sitemaps of that site are not read.
//
// A robots.txt may name sitemaps on other sites. In 24 hours, a host may cause at most 200 requests
// to other sites, and to at most 10 other registrable domains. This includes sitemaps and redirects
// of sitemaps and of robots.txt. Files beyond these limits are left out. If a host gets no other
// requests, such requests to it start at least a second apart. No robots.txt of 194 real sites
// comes near these limits: the most is 80 sitemaps of 2 domains.
type Feed struct {
	// Window is the maximum number of sitemap pages in flight. If it is 0, the maximum is 64. If
	// the collector is not Async, one page is in flight.
	Window int

	// Since skips entries with an older lastmod. If it is the zero time, no entry is skipped.
	// Entries without a lastmod are never skipped.
	Since time.Time

	// Keep reports whether to feed a page. If nil, all pages are fed. Keep is called for pages in
	// Scope before robots.txt is applied, and not for duplicates. So a Keep that returns true and
	// calls Plugin.Check sees each page that robots.txt denies. For one site it is called from one
	// goroutine at a time. With Resume, each run calls it again for the pages that it has dropped.
	Keep func(sitemap.Entry) bool

	// Sink is called with each page instead of the collector's Visit. If nil, the collector visits
	// the page. To add the pages to a colly/queue, use its AddURL. If Sink returns an error, the
	// page counts as refused.
	Sink func(url string) error

	// MaxURLs is the maximum number of pages that are fed, from all sites together. If it is 0,
	// there is no limit. MaxURLs does not limit how many pages a site may list, which Limits does,
	// or the links that callbacks follow. Colly's MaxRequests limits all pages of a crawl.
	MaxURLs int

	// Scope says which pages a sitemap may list. The zero value is ScopeHost.
	Scope Scope

	// WellKnown looks for /sitemap.xml and then for /sitemap_index.xml if the robots.txt of a site
	// names no sitemap.
	WellKnown bool

	// NewestFirst reads all sitemaps of a site to their end and then feeds the pages with the
	// newest lastmod. If a page is listed several times, its newest lastmod counts. Pages without a
	// lastmod come last. NewestFirst needs MaxURLs, which limits the memory for the pages of a
	// site.
	NewestFirst bool

	// Resume continues where the last run with the same Store stopped. Files that have not changed
	// since all their pages were done are left out. If a file was interrupted, the pages that are
	// not done are fed. If it has changed, all of its pages are fed. A page that is done is also fed
	// again if a file that was not read before gives it a lastmod after the beginning of the run
	// that has fetched it.
	//
	// A page is done when its callbacks have run. A page with a 4xx status is also done, except for
	// 407, 408 and 429. A page that failed otherwise is tried again by the next runs, three times
	// in all. Pages that were denied, dropped by Keep, refused by the collector or aborted by a
	// callback are not done: each run tries again to feed them, and reads the files that list them.
	// A page that was passed to Sink is done when Sink has returned nil.
	//
	// When a run ends, or its context does, or the plugin is closed, all results are in the Store.
	// If the process is killed, no page is lost, but the next run feeds some pages again: at most
	// as many as Window, because that many pages are in flight or have a result that is not in the
	// Store yet. A Sink may be too fast for that. Then results are written so that writing takes a
	// tenth of the time, and at the latest for every 10,000 pages. So the next run passes the pages
	// that Sink was called with at that moment and up to 10,000 others again; a slow Sink gets a
	// quarter of Window. After a loss of power, this also holds if the Store is durable, as
	// store.Dir is.
	//
	// Resume needs the option Store. Only one run at a time may use that Store. The collector must
	// not remember which pages an earlier run has visited. Otherwise it refuses pages that were in
	// flight when that run ended, and these count as done.
	Resume bool

	// Limits bounds the cost of a sitemap. Fields that are zero have defaults. Limits.Time is the
	// time for all requests for one file together.
	Limits sitemap.Limits
}

// A Scope says on which hosts the pages of a sitemap may be. They are compared with the hosts of
// the sitemap: the host that serves the sitemap and the host of the site whose robots.txt names it
// (sitemaps.org, "Sitemaps & Cross Submits"). Pages under http and https are on the same host.
type Scope int

// Each scope contains the one before it.
const (
	ScopeHost Scope = iota // pages on the hosts of the sitemap
	ScopeWWW               // also on these hosts with or without "www."
	ScopeSite              // also on all hosts of the same registrable domain (publicsuffix.org)
	ScopeAny               // pages on all hosts
)

// The conversions between Scope and feed.Scope need constants with equal values.
var _ = [1]bool{}[ScopeAny-Scope(feed.ScopeAny)]

// String returns the name of the constant.
func (s Scope) String() string {
	if s < ScopeHost || s > ScopeAny {
		return fmt.Sprintf("Scope(%d)", int(s))
	}
	return feed.Scope(s).String()
}

// faults returns a text for each field with an invalid value.
func (f *Feed) faults() (faults []string) {
	if f.Window < 0 {
		faults = append(faults, fmt.Sprintf("Window %d is negative", f.Window))
	}
	if f.MaxURLs < 0 {
		faults = append(faults, fmt.Sprintf("MaxURLs %d is negative", f.MaxURLs))
	}
	if f.Scope < ScopeHost || f.Scope > ScopeAny {
		faults = append(faults, fmt.Sprintf("%v is not a valid Scope", f.Scope))
	}
	if f.NewestFirst && f.MaxURLs == 0 {
		faults = append(faults, "NewestFirst needs MaxURLs")
	}
	return faults
}

// feedStats returns the counts of f.
func feedStats(f *feed.Feed) report.FeedStats {
	return report.FeedStats{
		Files:          f.Count(feed.Files),
		FilesFailed:    f.Count(feed.FilesFailed),
		FilesCut:       f.Count(feed.FilesCut),
		FilesUnchanged: f.Count(feed.FilesUnchanged),
		Entries:        f.Count(feed.Entries),
		Resumed:        f.Count(feed.Resumed),
		Fed:            f.Count(feed.Fed),
		Old:            f.Count(feed.Old),
		Dropped:        f.Count(feed.Dropped),
		OutOfScope:     f.Count(feed.OutOfScope),
		Duplicate:      f.Count(feed.Duplicate),
		Denied:         f.Count(feed.Denied),
		Refused:        f.Count(feed.Refused),
		GivenUp:        f.Count(feed.GivenUp),
		Errors:         f.Count(feed.Errors),
	}
}

// notFed returns the first URLs that were not fed, by the JSON name of the count that they are in.
func notFed(f *feed.Feed) map[string][]string {
	var examples map[string][]string
	for name, what := range reasonsNotFed {
		if urls := f.Examples(what); len(urls) > 0 {
			if examples == nil {
				examples = make(map[string][]string)
			}
			examples[name] = urls
		}
	}
	return examples
}

var reasonsNotFed = map[string]feed.Outcome{
	"old": feed.Old, "dropped": feed.Dropped, "out_of_scope": feed.OutOfScope, "duplicate": feed.Duplicate, "denied": feed.Denied,
	"refused": feed.Refused, "given_up": feed.GivenUp, "errors": feed.Errors,
}
