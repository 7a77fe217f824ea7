package collyrobots

import (
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A Feed says what becomes of the pages that sitemaps list. The zero Feed visits all of them.
//
// Sitemaps are read inside a hook of a page's request (OnScraped or OnError), once that request is
// done, so that Collector.Wait and Queue.Run cover them; callbacks of that hook which were
// registered after Attach run when the reading is done. Colly calls neither hook for a page whose
// character set DetectCharset does not find: then they are read ten seconds later if the collector
// is Async, which Wait waits for, at the end of a [Collector.Visit], or else after the next page.
// The sitemaps of a site that a Host header asks for at another address are not read.
//
// Sitemaps may be on other sites than the host whose robots.txt names them. A host may cause 200
// requests to other sites and to 10 other registrable domains in 24 hours, by sitemaps and by redirects
// of sitemaps and of robots.txt. The files beyond that are left out. Such requests to a host that gets
// no others start at least a second apart.
//
// A page is fed if it is in Scope and its robots.txt allows it. The context of a fed request has
// CtxSitemap and CtxLastMod.
type Feed struct {
	// Window is the maximum number of sitemap pages in flight; 0 means 64. A collector that is not
	// Async has one.
	Window int

	// Since skips entries whose lastmod is known and older; the zero time skips none.
	Since time.Time

	// Keep reports whether to feed a page; nil keeps all. For one site it is called from one
	// goroutine at a time. With Resume, each run calls it again for the pages that it has dropped.
	Keep func(sitemap.Entry) bool

	// Sink gets each page instead of the collector; nil: the collector visits it. For colly/queue
	// it is q.AddURL. After an error the page counts as refused.
	Sink func(url string) error

	// MaxURLs is how many pages of sitemaps are handed on at most, by all sites together; 0: no
	// limit. It bounds nothing else: not what a site's sitemaps may list, which Limits do, nor the
	// links that callbacks follow. Colly's MaxRequests bounds all pages of a crawl.
	MaxURLs int

	// Scope says which pages a sitemap may list. The zero value is ScopeHost.
	Scope Scope

	// Denied is called for each page that is not handed on because of robots.txt, on the goroutine
	// that reads the sitemap; if nil, it is not called. OnDenied is not called for such a page, which
	// never becomes a request. An EventDenied reports it as well, but a slow listener may miss that.
	Denied func(Decision)

	// WellKnown looks for /sitemap.xml and then /sitemap_index.xml on a site whose robots.txt names
	// no sitemap.
	WellKnown bool

	// NewestFirst reads all sitemaps of a site to their end and then hands the newest of its pages
	// on, by lastmod. A page that is listed several times has its newest lastmod, and pages without
	// one come last. It needs MaxURLs, which bounds what is kept meanwhile.
	NewestFirst bool

	// Resume continues where the last run with the same Store stopped. Files that have not changed
	// since all their pages were done are left out. If a file was interrupted, the pages that are
	// not done are handed on. If it has changed, all of its pages are.
	//
	// A page is done when its callbacks have run. A page with a 4xx status is also done, except for
	// 407, 408 and 429. A page that failed otherwise is tried again by the next runs, three times in
	// all. Pages that were denied, dropped by Keep, refused by the collector or aborted by a
	// callback are not done: each run tries again to feed them, and reads the files that list them.
	// A page that goes to a Sink is done when Sink returns nil.
	//
	// It needs a Store, which one run uses at a time, and a collector that does not remember which
	// pages an earlier run has visited: it would refuse pages that were in flight, and those count
	// as done.
	Resume bool

	// Limits bound what a sitemap may cost; the zero value has defaults. Limits.Time is the time in
	// which one file has to arrive, with all requests for it.
	Limits sitemap.Limits
}

// A Scope says on which hosts a sitemap may list pages, compared with the hosts of the sitemap.
// These are the host that serves the sitemap and the host of the site whose robots.txt names it
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

// faults returns what is wrong with a Feed.
func (f *Feed) faults() (faults []string) {
	if f.Window < 0 {
		faults = append(faults, fmt.Sprintf("Window %d is negative", f.Window))
	}
	if f.MaxURLs < 0 {
		faults = append(faults, fmt.Sprintf("MaxURLs %d is negative", f.MaxURLs))
	}
	if f.Scope < ScopeHost || f.Scope > ScopeAny {
		faults = append(faults, fmt.Sprintf("%v is none of the constants", f.Scope))
	}
	if f.NewestFirst && f.MaxURLs == 0 {
		faults = append(faults, "NewestFirst needs MaxURLs")
	}
	return faults
}

// FeedStats counts what was read in sitemaps, and what became of it.
type FeedStats struct {
	Files          int `json:"files"`           // sitemaps and indexes opened
	FilesFailed    int `json:"files_failed"`    // of those asked for: disallowed, not there, no sitemap
	FilesCut       int `json:"files_cut"`       // of those opened: ended early, or by a limit, after what could be read
	FilesUnchanged int `json:"files_unchanged"` // left out by Resume

	Entries    int `json:"entries"`      // page entries read
	Resumed    int `json:"resumed"`      // skipped by Resume: dealt with by an earlier run
	Fed        int `json:"fed"`          // handed to the collector or the Sink, and taken
	Old        int `json:"old"`          // skipped by Since
	Dropped    int `json:"dropped"`      // skipped by Keep
	OutOfScope int `json:"out_of_scope"` // on another site than the sitemap may speak for
	Duplicate  int `json:"duplicate"`    // listed before
	Denied     int `json:"denied"`       // disallowed by robots.txt
	Refused    int `json:"refused"`      // not taken: visited before, outside AllowedDomains, ...
	GivenUp    int `json:"given_up"`     // with Resume: failed as often as a page is tried
	Errors     int `json:"errors"`       // entries, files and parts of files that could not be read; see the log
}

// feedStats returns what was counted.
func feedStats(f *feed.Feed) FeedStats {
	var s FeedStats
	for what, count := range map[feed.Outcome]*int{
		feed.Files: &s.Files, feed.FilesFailed: &s.FilesFailed, feed.FilesCut: &s.FilesCut, feed.FilesUnchanged: &s.FilesUnchanged,
		feed.Entries: &s.Entries, feed.Resumed: &s.Resumed, feed.Fed: &s.Fed, feed.Old: &s.Old, feed.Dropped: &s.Dropped,
		feed.OutOfScope: &s.OutOfScope, feed.Duplicate: &s.Duplicate, feed.Denied: &s.Denied, feed.Refused: &s.Refused,
		feed.GivenUp: &s.GivenUp, feed.Errors: &s.Errors,
	} {
		*count = f.Count(what)
	}
	return s
}

// notFed returns the first URLs that were not fed, by the name of their count in JSON.
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
