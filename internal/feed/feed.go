// Package feed reads the sitemaps of the sites of a crawl and hands on the pages that they list, a
// limited number at a time. It knows sitemaps, hosts and the store. The crawler and the rules of
// robots.txt are behind the interface [Crawl].
//
// # Which goroutine calls what
//
// The crawl calls [Feed.Offer] for each request, from any goroutine, and [Feed.Run] when a request
// is done, from a hook that the crawl waits for. Run walks the pending sites on the goroutine of
// its caller. There it reads the sitemaps one after the other, calls Keep, [Crawl.Allowed] and
// [Crawl.Visit], and waits for slots. Only [Crawl.Get] is called from other goroutines of the walk,
// several at a time, so that a slow file does not delay the others. All of these goroutines end
// before Run returns. Walks of several callers run at the same time; no two of them share a host or
// a file. The done func of a page may be called from any goroutine.
//
// A program that pulls pages uses [Feed.Pages], which is the same walk with a loop as the receiver
// of the pages.
//
// # Why a walk never deadlocks
//
// A walk waits for four things: a response (Get, Allowed), the crawl (Visit), its turn to write to
// the store, and a slot. Of these, pages hold only slots. If Visit runs a page before it returns, a
// page that holds a slot may be the one whose hook has called the walk. Therefore such a crawl has
// no slots ([Crawl.Slots]), and a Run that comes while one of its walks is running returns at once
// and leaves its site to that walk. Every other crawl has its own slots, which only its own pages
// hold, and its pages end without the walk that handed them on.
//
// # Resume
//
// With [Options.Resume], package resume records in the store which pages of each file are done. The
// pages that are in flight and the pages that are done but not yet recorded are together never more
// than the window. After a crash, at most that many pages are fetched twice.
package feed

import (
	"cmp"
	"context"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/hashset"
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

	// Get sends one request for a sitemap when its turn has come. It does not follow redirects. The
	// crawl adds the user agent and refuses requests that robots.txt disallows. timeout bounds the
	// exchange from its start to the end of the body. began is when the exchange started, or the
	// zero time if it did not. site is the site whose sitemap it is. by is the URL of the index
	// that names u or of the redirect to u. If the robots.txt of the site names u, by is nil.
	Get(ctx context.Context, site dialect.Authority, by, u *url.URL, header http.Header, timeout time.Duration) (resp *http.Response, began time.Time, err error)

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

// A Feed hands the pages that sitemaps list to crawls. Its methods may be called from any
// goroutine.
type Feed struct {
	Options
	outcomes
	limits sitemap.Limits // with the defaults filled in
	seed   maphash.Seed

	offered *hashset.Set // authorities whose sitemaps are pending or were read
	once    *once
	journal *resume.Journal

	waiting atomic.Int64 // len(pending), for reading without mu
	mu      sync.Mutex
	pending []assignment
	walked  map[string]bool // the hosts and files of running walks
	walks   int             // the number of running walks
	nested  bool            // one of the walks belongs to a crawl without slots
}

// An assignment says what one walk has to read: the sitemaps that the robots.txt of a site names,
// or certain files.
type assignment struct {
	site     dialect.Authority
	sitemaps []string
	jobs     []job
	walks    []string // the host and the files that no other walk may read at the same time
}

const (
	defaultWindow = 64
	leastWalks    = 8       // walks that may run at the same time, even if the window is smaller
	mostSites     = 1 << 24 // sites whose sitemaps are remembered as read
)

// New returns a Feed. It does not check o; a caller that takes options from a user must do that.
func New(o Options) *Feed {
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.Budget = o.Budget.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Feed{
		Options: o,
		limits:  o.Limits.WithDefaults(),
		seed:    maphash.MakeSeed(),
		offered: hashset.New(mostSites),
		once:    newOnce(),
		walked:  make(map[string]bool),
	}
	f.journal = resume.NewJournal(resume.Options{
		Store:       o.Store,
		Log:         o.Log,
		Scope:       o.Scope.String(),
		Since:       o.Since,
		NewestFirst: o.NewestFirst,
		Unwritten:   f.unwritten(),
	})
	return f
}

// unwritten returns how many pages may be done without being recorded.
func (f *Feed) unwritten() int { return max(1, f.Window/4) }

// inFlight returns how many pages may be in flight. With Resume, a part of the window is reserved
// for pages that are done but not recorded.
func (f *Feed) inFlight() int {
	if f.Resume {
		return f.Window - f.unwritten() + 1
	}
	return f.Window
}

// Offer passes the sitemaps that the robots.txt of a site names. It keeps the slice. The sitemaps
// are pending until a Run takes them. A site that was offered before is ignored; for such a site,
// Offer costs only a look-up without a lock.
func (f *Feed) Offer(site dialect.Authority, sitemaps []string) {
	if len(sitemaps) == 0 && !f.WellKnown {
		return
	}
	h := maphash.String(f.seed, site.Host)
	if site.Scheme == "https" {
		h = ^h
	}
	if f.offered.Has(h) || !f.offered.Add(h) {
		return
	}
	site.Host = strings.Clone(site.Host) // Host may be a part of a long URL
	f.assign(assignment{site: site, sitemaps: sitemaps})
}

// assign adds an assignment to the pending ones.
func (f *Feed) assign(a assignment) {
	a.walks = []string{a.site.Host}
	for _, loc := range a.sitemaps {
		if u, err := url.Parse(resolve(a.site, loc)); err == nil {
			a.walks = append(a.walks, keyOf(u))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, a)
	f.waiting.Store(int64(len(f.pending)))
}

// files returns the files with which the walk of an assignment begins.
func (f *Feed) files(a assignment) []job {
	if a.jobs != nil {
		return a.jobs
	}
	if len(a.sitemaps) == 0 {
		return []job{wellKnown(a.site, newScope(f.Scope, a.site.Host))}
	}
	jobs := make([]job, len(a.sitemaps))
	for i, loc := range a.sitemaps {
		loc = resolve(a.site, loc)
		scope := newScope(f.Scope, a.site.Host)
		scope.addURL(loc)
		jobs[i] = job{loc: loc, site: a.site, scope: scope}
	}
	return jobs
}

// Pending reports whether Run may have something to walk. It is cheap.
func (f *Feed) Pending() bool { return f.waiting.Load() != 0 }

// Run walks the pending sites, and those that are offered while it runs, on the goroutine of its
// caller. It returns when there are none left that it may walk. That is so in these cases:
//
//   - ctx is done or MaxURLs is reached;
//   - the largest number of walks is running;
//   - crawl has no slots and another walk of such a crawl is running;
//   - other walks are using the hosts or files of all pending sites. These walks take the sites over.
func (f *Feed) Run(ctx context.Context, crawl Crawl) {
	if !f.Pending() {
		return
	}
	nested := crawl.Slots() == nil
	if !f.enter(nested) {
		return
	}
	running := true
	defer func() { // a callback of the program may have panicked
		if running {
			f.leave(nested)
		}
	}()
	for {
		var a assignment
		if a, running = f.take(ctx, nested); !running {
			return
		}
		f.walk(newWalk(ctx, f, crawl, a.site), a)
	}
}

// walk walks an assignment that take has returned.
func (f *Feed) walk(w *walk, a assignment) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range a.walks {
			delete(f.walked, name)
		}
	}()
	w.run(f.files(a))
}

// Flush records the results of pages since the last write. It is for the end of a crawl, when pages
// may still have been in flight after their walk ended.
func (f *Feed) Flush() { f.journal.Flush() }

// enter reports whether another walk may run, and counts it.
func (f *Feed) enter(nested bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if nested && f.nested || f.walks >= max(leastWalks, f.Window) {
		return false
	}
	f.walks++
	f.nested = f.nested || nested
	return true
}

// take returns the next assignment of a walk. If there is none, the walk has left: it is no longer
// counted, so no other caller relies on it.
//
// Sites that name the same files are walked one after the other, for example a host under http and
// https, or with and without "www.". The reason is that only within one walk, the files that tell
// which pages are done are read before the files that share these pages.
func (f *Feed) take(ctx context.Context, nested bool) (a assignment, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full() {
		f.pending = nil
		f.waiting.Store(0)
	}
	i := slices.IndexFunc(f.pending, f.isFree)
	if i < 0 || ctx.Err() != nil {
		f.leaveLocked(nested)
		return assignment{}, false
	}
	a = f.pending[i]
	copy(f.pending[1:], f.pending[:i])
	f.pending = f.pending[1:]
	f.waiting.Store(int64(len(f.pending)))
	for _, name := range a.walks {
		f.walked[name] = true
	}
	return a, true
}

// isFree reports whether no other walk uses the host and files of an assignment. The caller must
// hold f.mu.
func (f *Feed) isFree(a assignment) bool {
	return !slices.ContainsFunc(a.walks, func(name string) bool { return f.walked[name] })
}

func (f *Feed) leave(nested bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaveLocked(nested)
}

func (f *Feed) leaveLocked(nested bool) {
	f.walks--
	if nested {
		f.nested = false
	}
}

// full reports whether MaxURLs pages have been handed on.
func (f *Feed) full() bool { return f.MaxURLs > 0 && f.Count(Fed) >= f.MaxURLs }

// reserve counts a page as handed on. It returns false if MaxURLs pages have been.
func (f *Feed) reserve() bool {
	for {
		n := f.counts[Fed].Load()
		if f.MaxURLs > 0 && n >= int64(f.MaxURLs) {
			return false
		}
		if f.counts[Fed].CompareAndSwap(n, n+1) {
			return true
		}
	}
}
