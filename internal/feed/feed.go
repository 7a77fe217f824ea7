// Package feed walks the sitemaps of a crawl's sites and hands the pages that they list on, a
// bounded number at a time. It knows sitemaps, hosts and the store; what is crawled with, and what
// robots.txt says, is behind [Crawl].
//
// # Who calls what
//
// The crawl calls [Feed.Offer] for each request, from any goroutine, and [Feed.Run] when a request
// is done, from a hook that the crawl waits for. Run walks the sites that are pending on the
// goroutine of its caller: there it reads the sitemaps one after the other, calls Keep,
// [Crawl.Allowed] and [Crawl.Visit], and waits for slots. [Crawl.Get] alone is called from
// goroutines of the walk, several at once, so that a slow file holds up no other; all of them end
// before Run returns. Walks of several callers run at the same time, each of another host and other
// files. The done of a page may be called from any goroutine.
//
// A program that pulls uses [Feed.Pages], which is the same walk with the pages going to a loop.
//
// # Why it cannot wait for itself
//
// A walk waits for four things: an answer (Get, Allowed), the crawl (Visit), its turn to write to
// the store, and a slot. Only slots are held by pages. Where Visit runs a page before it returns, a
// page that holds a slot may be what the walk runs below; so such a crawl has no slots
// ([Crawl.Slots]), and a Run that comes while one of its walks is running returns at once and
// leaves its site to that walk. Other crawls have slots of their own, which only pages of that
// crawl hold, and a page of a crawl that does not run its pages at once ends without the help of
// the walk that handed it on.
//
// # Resume
//
// A checkpoint says of a file up to where its pages need not be looked at again, and which pages
// before that are not done: in flight when it was written, failed, or left when the crawl ended.
// Pages that are in flight and pages that are done but not written down are never more than the
// window together, so this is how many may be fetched twice after a crash.
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
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// Options say what is fed. The zero value feeds everything that is in scope.
type Options struct {
	Window  int                      // most pages of a crawl in flight; 0: 64
	MaxURLs int                      // most pages handed on in all; 0: no limit
	Since   time.Time                // entries whose lastmod is known and older are left out
	Keep    func(sitemap.Entry) bool // nil keeps all
	Scope   Scope                    // the pages that a sitemap may list

	// WellKnown looks for sitemaps in the usual places of a site that names none.
	WellKnown bool

	// NewestFirst reads all sitemaps of a site and then hands its newest pages on. It needs
	// MaxURLs.
	NewestFirst bool

	// Resume goes on where the last run with the same Store stopped. It needs a Store.
	Resume bool

	Limits sitemap.Limits // of a file; those of walks bound all files of a site
	Budget Budget         // of a site, for what Limits do not say
	Store  store.Store
	Log    *slog.Logger // nil: nobody is told

	// Read is told of each file that was read to its end, with how many entries it lists, or could
	// not be, err; nil: nobody is. It must be quick.
	Read func(sitemap string, entries int, err error)
}

// A Crawl is what a walk needs of the crawl that it feeds.
type Crawl interface {
	// Allowed reports whether the page u may be fetched. If not, the result is Skipped, or
	// Unfinished if the crawl has ended. u is the crawl's until Allowed returns. It is called on
	// the walk's goroutine. site is the site whose sitemap lists the page, and sitemap the URL of
	// that file.
	Allowed(ctx context.Context, site dialect.Authority, sitemap string, u *url.URL) (bool, Result)

	// Get makes one exchange with a sitemap's server when its turn has come, and follows no
	// redirect. The crawl adds the user agent, and refuses what robots.txt does. timeout bounds the
	// exchange from its start to the end of the body; began is when it started, the zero time if it
	// did not. site is the site whose sitemap it is. by is the URL of the index that names u, or of
	// the redirect that leads to u; nil if the robots.txt of the site names u.
	Get(ctx context.Context, site dialect.Authority, by, u *url.URL, header http.Header, timeout time.Duration) (resp *http.Response, began time.Time, err error)

	// Visit hands a page on and reports whether it was taken; a page that is not taken is Skipped.
	// done is to be called once for each page that is taken, and once more after Silent or Unsent,
	// from any goroutine, also before Visit returns. If it is called for a page that is not taken,
	// its result counts instead: for example Done for one that the crawl has already visited, or
	// Unfinished if the crawl takes no more pages.
	Visit(site dialect.Authority, e sitemap.Entry, done func(Result)) (taken bool)

	// Slots returns where the pages of this crawl that are in flight are counted. It is nil if
	// Visit runs a page before it returns: then there is one at a time, and nothing to wait for.
	Slots() *Slots
}

// A Result is what became of a page.
type Result uint8

const (
	Done       Result = iota // its callbacks have run
	Failed                   // a later run with Resume tries again, a bounded number of times
	Skipped                  // it was not fetched, for a reason that may not hold in a later run
	Unfinished               // the crawl ended under it, which ends the walk as well
	Silent                   // nothing is heard of it since it was sent: it has Failed, unless it is Done after all
	Unsent                   // nothing is heard of it, nor was it sent: it is Skipped, unless it is Done after all
)

// A Feed hands the pages of sitemaps to crawls. Its methods may be called from any goroutine.
type Feed struct {
	Options
	outcomes
	limits sitemap.Limits // with their defaults
	seed   maphash.Seed

	offered hashSet     // authorities whose sitemaps are read or pending
	seen    hashSet     // pages that were listed
	bound   atomic.Bool // it was logged that the pages are too many to remember
	once    once
	keeper  keeper

	waiting atomic.Int64 // len(pending), to be read without mu
	mu      sync.Mutex
	pending []assignment
	walked  map[string]bool // hosts and files of which a walk runs
	walks   int             // that run
	nested  bool            // one of them is of a crawl without slots
}

// An assignment is what one walk is to read: what a site's robots.txt names, or certain files.
type assignment struct {
	site     dialect.Authority
	sitemaps []string
	jobs     []job
	walks    []string // what no other walk may be of: a host, and the files that are named
}

const (
	defaultWindow = 64
	leastWalks    = 8        // that may run at once, however small the window is
	mostSites     = 1 << 24  // of which the sitemaps are remembered as read
	mostSeen      = 25 << 20 // URLs that are remembered: some 350 MB
)

// New returns a Feed. o is as it should be: whoever takes options from a user checks them.
func New(o Options) *Feed {
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.Budget = o.Budget.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Feed{Options: o, limits: o.Limits.WithDefaults(), seed: maphash.MakeSeed(), walked: make(map[string]bool)}
	f.offered.most, f.seen.most = mostSites, mostSeen
	f.once.init()
	f.keeper.init(max(1, o.Window/4))
	return f
}

// Offer says which sitemaps a site's robots.txt names; the slice is kept. They are pending until a
// Run takes them; a site that was offered before is not looked at again. It costs a look-up without
// a lock for those.
func (f *Feed) Offer(site dialect.Authority, sitemaps []string) {
	if len(sitemaps) == 0 && !f.WellKnown {
		return
	}
	h := maphash.String(f.seed, site.Host)
	if site.Scheme == "https" {
		h = ^h
	}
	if f.offered.has(h) || !f.offered.add(h) {
		return
	}
	site.Host = strings.Clone(site.Host) // it may be a part of a long URL
	f.assign(assignment{site: site, sitemaps: sitemaps})
}

// assign makes an assignment pending.
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

// files returns the files at which the walk of an assignment begins.
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

// Pending reports whether there may be something for Run to walk. It is cheap.
func (f *Feed) Pending() bool { return f.waiting.Load() != 0 }

// Run walks the sites that are pending, and those that are offered meanwhile, on the caller's
// goroutine. It returns when none are left for it: if ctx is done or MaxURLs is reached, if as many
// walks as may run do so, if crawl has no slots and another walk of such a crawl is running, or if
// all that is pending is of hosts or files that are walked; what is then pending is theirs.
func (f *Feed) Run(ctx context.Context, crawl Crawl) {
	if !f.Pending() {
		return
	}
	nested := crawl.Slots() == nil
	if !f.enter(nested) {
		return
	}
	running := true
	defer func() { // a callback of the program's may have panicked
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

// walk runs the walk of an assignment that was taken.
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

// Flush writes down what became of pages since it was written last. It is for the end of a crawl,
// when pages were still in flight as their walk ended.
func (f *Feed) Flush() { f.keeper.flush(1) }

// enter reports whether one more walk may run.
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

// take returns what a walk is to read next. If there is nothing, the walk has left: nobody can have
// relied on it after that. Sites that name the same files, as a host under http and https or with
// and without "www." do, are walked one after the other, for only within a walk those files are read
// first that say which pages of the others are done.
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

// isFree reports whether no walk is of what an assignment is of. f.mu is held.
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

// reserve counts a page as handed on, unless MaxURLs are.
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
