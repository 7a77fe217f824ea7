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
// than the window. After a crash, at most that many pages are fetched twice. With
// [Options.Unwritten], as many pages may be done but not yet recorded, in addition to the window.
package feed

import (
	"cmp"
	"context"
	"hash/maphash"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/hashset"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/sitemap"
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

	// mu protects the fields below it.
	mu      sync.Mutex
	pending []assignment
	inUse   map[string]bool // the keys of the assignments of running walks
	walks   int             // the number of running walks
	nested  bool            // one of the walks belongs to a crawl without slots
}

// An assignment says what one walk has to read: the sitemaps that the robots.txt of a site names,
// or certain files.
type assignment struct {
	site     dialect.Authority
	sitemaps []string
	jobs     []job    // the certain files; nil for those of robots.txt
	keys     []string // the host and the files that no other walk may read at the same time
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
		inUse:   make(map[string]bool),
	}
	f.journal = resume.NewJournal(resume.Options{
		Store:       o.Store,
		Log:         o.Log,
		Scope:       o.Scope.String(),
		Since:       o.Since,
		NewestFirst: o.NewestFirst,
		Least:       f.reserved(),
		Most:        max(f.reserved(), f.Unwritten),
	})
	return f
}

// reserved returns how many places of the window are for pages that are done but not recorded.
func (f *Feed) reserved() int { return max(1, f.Window/4) }

// inFlight returns how many pages may be in flight.
func (f *Feed) inFlight() int {
	if f.Resume && f.Unwritten == 0 {
		return f.Window - f.reserved() + 1
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
	if f.offered.Has(h) || !f.offered.Add(h) { // Has takes no lock
		return
	}
	site.Host = strings.Clone(site.Host) // Host may be a part of a long URL
	f.assign(assignment{site: site, sitemaps: sitemaps})
}

// assign adds an assignment to the pending ones.
func (f *Feed) assign(a assignment) {
	a.keys = []string{a.site.Host}
	for _, loc := range a.sitemaps {
		if u, err := url.Parse(resolve(a.site, loc)); err == nil {
			a.keys = append(a.keys, keyOf(u))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, a)
	f.waiting.Store(int64(len(f.pending)))
}

// Pending reports whether Run may have something to walk. It is cheap.
func (f *Feed) Pending() bool { return f.waiting.Load() != 0 }

// IsIdle reports whether no walk is running.
func (f *Feed) IsIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.walks == 0
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

// take returns the next assignment of a walk. If there is none, take also ends the walk, as leave
// does, while it holds the mutex. Otherwise an assignment that is added at this moment could be
// left to a walk that no longer takes any.
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
	copy(f.pending[1:], f.pending[:i]) // a is usually near the beginning
	f.pending = f.pending[1:]
	f.waiting.Store(int64(len(f.pending)))
	for _, key := range a.keys {
		f.inUse[key] = true
	}
	return a, true
}

// isFree reports whether no other walk uses the host and files of an assignment. The caller must
// hold f.mu.
func (f *Feed) isFree(a assignment) bool {
	return !slices.ContainsFunc(a.keys, func(key string) bool { return f.inUse[key] })
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
