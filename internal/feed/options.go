package feed

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// Options are the settings of a Feed. With the zero value, it feeds every page that is in scope.
type Options struct {
	Window  int                      // the largest number of pages of a crawl in flight; 0 means 64
	MaxURLs int                      // the largest number of pages that are handed on; 0 means no limit
	Since   time.Time                // entries with an older lastmod are skipped; entries without one are not
	Keep    func(sitemap.Entry) bool // if nil, all entries are kept
	Scope   Scope                    // which pages a sitemap may list

	// WellKnown looks for sitemaps at the usual locations if the robots.txt of a site names none.
	WellKnown bool

	// NewestFirst reads all sitemaps of a site before it hands on the newest pages. It needs
	// MaxURLs.
	NewestFirst bool

	// Resume continues where the last run with the same Store stopped. It needs a Store.
	Resume bool

	// Unwritten is how many pages may be done before Resume records them, if writing to the Store
	// would otherwise take more than a tenth of the time. If it is 0, a quarter of the window is
	// reserved for such pages, however long the writing takes.
	Unwritten int

	Limits sitemap.Limits // limits of a file; the limits of walks apply to all files of a site
	Budget Budget         // limits of a site in addition to Limits
	Store  store.Store
	Log    *slog.Logger // if nil, nothing is logged

	// Read is called for each file that was read, with the number of its entries, and for each file
	// that could not be read, with the error. It may be nil. It must return quickly.
	Read func(sitemap string, entries int, err error)
}

// A Crawl is the part of a crawl that a walk needs.
type Crawl interface {
	// Allowed reports whether the page u may be fetched. If not, the Result is Skipped, or
	// Unfinished if the crawl has ended. u belongs to the crawl until Allowed returns. Allowed is
	// called on the goroutine of the walk. site is the site whose sitemap lists the page, and
	// sitemap is the URL of that file.
	Allowed(ctx context.Context, site dialect.Authority, sitemap string, u *url.URL) (bool, Result)

	// Cleaned returns the URL that identifies the page u: u without the query parameters that do not
	// change the page. It returns u itself if there are none. Two pages with the same one are
	// duplicates.
	Cleaned(u *url.URL) *url.URL

	// Get sends one request for a sitemap when its turn has come. It does not follow redirects. The
	// crawl adds the user agent and refuses requests that robots.txt disallows. began is when the
	// exchange started, or the zero time if it did not.
	Get(ctx context.Context, r Request) (resp *http.Response, began time.Time, err error)

	// Visit hands a page on and reports whether the crawl has taken it. A page that is not taken is
	// Skipped. For each page that is taken, the crawl must call done once. After Silent or Unsent,
	// it may call done again. It may call done from any goroutine, also before Visit returns. If it
	// calls done for a page that is not taken, that result counts instead of Skipped: for example
	// Done for a page that the crawl has already visited, or Unfinished if the crawl takes no more
	// pages.
	Visit(site dialect.Authority, e sitemap.Entry, done func(Result)) (taken bool)

	// Slots returns the counter of the pages of this crawl that are in flight. It returns nil if
	// Visit runs a page before it returns. Then only one page is in flight and there is nothing to
	// wait for.
	Slots() *Slots
}

// A Request is a request for a sitemap.
type Request struct {
	URL     *url.URL
	By      *url.URL          // the URL of the index that names URL, or of the redirect to it; nil if robots.txt names it
	Site    dialect.Authority // the site whose sitemap it is
	Header  http.Header       // belongs to the crawl until Get returns
	Timeout time.Duration     // bounds the exchange from its start to the end of the body
}

// A Result says how a page ended.
type Result uint8

const (
	Done       Result = iota // its callbacks have run
	Failed                   // a later run with Resume tries it again, a limited number of times
	Skipped                  // it was not fetched, for a reason that may not apply in a later run
	Unfinished               // the crawl ended before the page did; the walk ends as well
	Silent                   // no result came after the page was sent; it has Failed unless Done follows
	Unsent                   // no result came and the page was not sent; it is Skipped unless Done follows
)

// recorded returns the result that is recorded for the next run.
func (r Result) recorded() resume.Result {
	switch r {
	case Done:
		return resume.Done
	case Failed, Silent:
		return resume.Failed
	case Unfinished:
		return resume.Unfinished
	}
	return resume.Skipped
}
