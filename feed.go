package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A Feed says what becomes of the pages that sitemaps list. The zero Feed visits all of them.
//
// Sitemaps are read inside a hook of a page's request (OnScraped or OnError), once that request is done, so that c.Wait and queue.Run
// cover them; callbacks of that hook which were registered after Attach run when the reading is done. A page is fed
// if it is on the scheme, host and port of the sitemap that robots.txt names or of the site whose robots.txt names it (the
// protocol's cross-submission), and if its robots.txt allows it. The context of a fed request has CtxSitemap and
// CtxLastMod.
type Feed struct {
	Window  int                      // most sitemap URLs under way at once; 0 means 64. A collector that is not Async has one
	Since   time.Time                // skip entries whose lastmod is known and older; zero skips none
	Keep    func(sitemap.Entry) bool // nil keeps all; called from one goroutine at a time for each sitemap
	Sink    func(url string) error   // nil: the collector's Visit; colly/queue users pass q.AddURL
	MaxURLs int                      // most URLs handed on in all; 0: no limit

	// Denied is told of each page that is not handed on because of robots.txt; nil: nobody is. OnDenied does not hear of them: they never
	// become requests.
	Denied func(Decision)

	// WellKnown looks for /sitemap.xml and then /sitemap_index.xml on a site whose robots.txt names no sitemap.
	WellKnown bool

	// NewestFirst reads each sitemap that robots.txt names, children included, to its end and then hands the newest of its pages
	// on, by lastmod; those without one come last. It needs MaxURLs, which bounds what is kept meanwhile.
	NewestFirst bool

	// Resume goes on where the last run with the same Store stopped: files that have not changed since they were fed to their end are
	// left out, one that was interrupted goes on behind the last page that was handed on. It needs a Store.
	Resume bool

	// Limits bound what a sitemap may cost; the zero value has defaults. Time is for one file to arrive.
	Limits sitemap.Limits
}

// fault returns what is wrong with a Feed, or nothing.
func (f *Feed) fault() string {
	switch {
	case f.Window < 0:
		return fmt.Sprintf("Window %d is negative", f.Window)
	case f.MaxURLs < 0:
		return fmt.Sprintf("MaxURLs %d is negative", f.MaxURLs)
	case f.NewestFirst && f.MaxURLs == 0:
		return "NewestFirst needs MaxURLs"
	case f.NewestFirst && f.Resume:
		return "NewestFirst and Resume exclude each other"
	}
	return ""
}

// wellKnown is where sitemaps are that robots.txt does not name.
var wellKnown = []string{"/sitemap.xml", "/sitemap_index.xml"}

// Keys of a fed request's colly.Context. Requests made by its callbacks through Request.Visit share that context.
const (
	CtxSitemap = "collyrobots.sitemap" // string: the URL of the file that lists the page
	CtxLastMod = "collyrobots.lastmod" // string: its lastmod in RFC 3339, where known
	ctxPlace   = "collyrobots.place"
)

// FeedStats is what the feed has done.
type FeedStats struct {
	Files          int // sitemaps and indexes opened
	FilesFailed    int // of those asked for: disallowed, not there, no sitemap
	FilesCut       int // of those opened: ended early, or by a limit, after what could be read
	FilesUnchanged int // left out by Resume

	Entries    int // page entries read
	Resumed    int // skipped by Resume: handed on by an earlier run
	Fed        int // handed to the collector or the Sink, and taken
	Old        int // skipped by Since
	Dropped    int // skipped by Keep
	OutOfScope int // on another site than the sitemap may speak for
	Duplicate  int // listed before
	Denied     int // disallowed by robots.txt
	Refused    int // not taken: visited before, outside AllowedDomains, ...
	Errors     int // entries, files and parts of files that could not be read, each in the log
}

// A feeder hands the pages of sitemaps to collectors. All methods of a nil feeder do nothing.
type feeder struct {
	plugin *Plugin
	feed   Feed
	window chan struct{}            // holds an element for each page under way
	pulled func(sitemap.Entry) bool // takes the pages instead, until it returns false; nil: the Sink or the collector does
	closed bool                     // pulled has returned false

	mu      sync.Mutex
	met     map[string]bool     // authorities whose sitemaps are read or pending
	pending []*policy.Policy    // whose sitemaps nobody reads yet
	seen    map[uint64]struct{} // hashes of what was listed: some 30 bytes a URL; of a million crawls of ten million URLs three lose one
	seed    maphash.Seed
	stats   FeedStats
}

func newFeeder(p *Plugin, f Feed) *feeder {
	if f.Window == 0 {
		f.Window = 64
	}
	return &feeder{
		plugin: p, feed: f, window: make(chan struct{}, f.Window),
		met: make(map[string]bool), seen: make(map[uint64]struct{}), seed: maphash.MakeSeed(),
	}
}

func (f *feeder) statistics() FeedStats {
	if f == nil {
		return FeedStats{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *feeder) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

// offer notes a site that the crawl came to: its sitemaps will be read by the next request that is done.
func (f *feeder) offer(pol *policy.Policy) {
	named := len(pol.Sitemaps) > 0
	if f == nil || !named && !(f.feed.WellKnown && (pol.Meaning == policy.Rules || pol.Meaning == policy.NoRestriction)) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.met[pol.Authority] {
		f.met[pol.Authority] = true
		f.pending = append(f.pending, pol)
	}
}

// run reads the sitemaps of the sites that are pending, on the goroutine of a request that is done.
func (f *feeder) run(l *link) {
	if f == nil {
		return
	}
	for {
		f.mu.Lock()
		if len(f.pending) == 0 {
			f.mu.Unlock()
			return
		}
		pol := f.pending[0]
		f.pending = f.pending[1:]
		f.mu.Unlock()
		f.site(l, pol)
	}
}

// site reads the sitemaps of one site.
func (f *feeder) site(l *link, pol *policy.Policy) {
	for _, loc := range pol.Sitemaps {
		if f.walk(l, pol.Authority, loc); f.closed {
			return
		}
	}
	if len(pol.Sitemaps) > 0 {
		return
	}
	for _, path := range wellKnown {
		if f.walk(l, pol.Authority, pol.Authority+path) || f.closed {
			return
		}
	}
}

// walk feeds the pages of the sitemap at loc, which belongs to authority. It tells whether there was a sitemap.
func (f *feeder) walk(l *link, authority, loc string) (found bool) {
	ctx := l.c.Context
	w := &walk{feeder: f, link: l, scope: scope{}.add(authority).add(loc), newest: newest{most: f.feed.MaxURLs}}
	limits := f.feed.Limits
	limits.Time = 365 * 24 * time.Hour // what open returns is at hand, and has kept its own time: waiting for the host's turn is left
	for e, err := range (sitemap.Walker{Limits: limits}).Walk(ctx, loc, w.open) {
		if err != nil {
			w.file.cut(err)
			f.failed(authority, loc, err)
			continue
		}
		if !w.page(ctx, e) {
			w.file.interrupted()
			return w.found
		}
	}
	w.file.finish(ctx)
	w.newest.hand(f, l)
	return w.found
}

// A walk is what a feeder knows of the sitemap it reads.
type walk struct {
	*feeder
	link   *link
	scope  scope
	found  bool
	file   *ledger // of the file whose pages come; nil: nothing is written down
	newest newest
}

// open fetches a file of the walk. The one before has been read to its end, or is the index that names this one.
func (w *walk) open(ctx context.Context, loc string) (io.ReadCloser, string, error) {
	w.file.finish(ctx)
	w.file = w.recall(ctx, loc)
	body, final, err := w.link.open(ctx, loc, w.file, w.feed.Limits)
	switch {
	case errors.Is(err, errUnchanged):
		w.count(&w.stats.FilesUnchanged)
	case err != nil:
		w.count(&w.stats.FilesFailed)
	default:
		w.count(&w.stats.Files)
	}
	if err != nil {
		w.file = nil
		return nil, final, err
	}
	if !w.found { // the first file, from which the walk begins
		w.found = true
		w.scope.add(final)
	}
	return body, final, nil
}

// page takes the next page of a file. It returns false when the walk is to end.
func (w *walk) page(ctx context.Context, e sitemap.Entry) bool {
	w.count(&w.stats.Entries)
	if w.file.known() {
		w.count(&w.stats.Resumed)
		return true
	}
	if skip := w.skip(w.link, e, w.scope); skip != nil {
		w.count(skip)
	} else if w.feed.NewestFirst {
		w.newest.add(e)
	} else if !w.take(w.link, e, w.file) {
		return false
	}
	if ctx.Err() != nil || w.closed {
		return false
	}
	w.file.passed()
	return true
}

// failed counts and logs what is wrong with a sitemap.
func (f *feeder) failed(authority, loc string, err error) {
	if errors.Is(err, errUnchanged) {
		return
	}
	f.count(&f.stats.Errors)
	limit := (*sitemap.LimitError)(nil)
	switch {
	case errors.Is(err, sitemap.ErrNotSitemap):
		f.count(&f.stats.FilesFailed)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &limit):
		f.count(&f.stats.FilesCut)
	}
	f.plugin.config.log.Warn("sitemap", "robots", authority+"/robots.txt", "sitemap", loc, "error", err)
}

// take hands one entry on. It returns false when no more may be. file, which may be nil, is told when the page is done.
func (f *feeder) take(l *link, e sitemap.Entry, file *ledger) bool {
	if !f.reserve() {
		return false
	}
	if !f.hand(l, e, file) {
		f.mu.Lock()
		f.stats.Fed--
		f.stats.Refused++
		f.mu.Unlock()
	}
	return true
}

// skip returns the count that an entry falls under which is not to be fed, else nil.
func (f *feeder) skip(l *link, e sitemap.Entry, scope scope) *int {
	u, err := url.Parse(e.Loc)
	switch {
	case err != nil:
		return &f.stats.Errors
	case !e.LastMod.IsZero() && e.LastMod.Before(f.feed.Since):
		return &f.stats.Old
	case f.feed.Keep != nil && !f.feed.Keep(e):
		return &f.stats.Dropped
	case !scope.has(u):
		return &f.stats.OutOfScope
	case f.repeated(e.Loc):
		return &f.stats.Duplicate
	}
	v, err := f.plugin.judge(l.c.Context, u, l.userAgent(), l.do)
	if err == nil {
		err = v.refusal(u)
	}
	if err != nil && !f.plugin.config.dryRun {
		f.plugin.note(u, err)
		if denied := (*DisallowedError)(nil); errors.As(err, &denied) && f.feed.Denied != nil {
			f.feed.Denied(denied.Decision)
		}
		return &f.stats.Denied
	}
	return nil
}

// repeated tells whether a URL was listed before.
func (f *feeder) repeated(loc string) bool {
	h := maphash.String(f.seed, loc)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.seen[h]
	f.seen[h] = struct{}{}
	return ok
}

// reserve counts one URL as fed, unless MaxURLs are.
func (f *feeder) reserve() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.feed.MaxURLs > 0 && f.stats.Fed >= f.feed.MaxURLs {
		return false
	}
	f.stats.Fed++
	return true
}

// hand gives an entry to the Sink or the collector, when there is a place in the window. It tells whether it was taken.
func (f *feeder) hand(l *link, e sitemap.Entry, file *ledger) bool {
	if f.pulled != nil {
		f.closed = !f.pulled(e)
		return !f.closed
	}
	if f.feed.Sink != nil {
		return f.feed.Sink(e.Loc) == nil
	}
	select {
	case f.window <- struct{}{}:
	case <-l.c.Context.Done():
		return false
	}
	place := &place{window: f.window, file: file}
	file.handed()
	ctx := contextOf(e)
	ctx.Put(ctxPlace, place)
	err := l.visit(e.Loc, ctx)
	taken := err == nil || place.held()
	if err != nil || !l.c.Async {
		place.leave()
	}
	return taken
}

// contextOf returns what a fed request is told of its sitemap.
func contextOf(e sitemap.Entry) *colly.Context {
	ctx := colly.NewContext()
	ctx.Put(CtxSitemap, e.Sitemap)
	if !e.LastMod.IsZero() {
		ctx.Put(CtxLastMod, e.LastMod.Format(time.RFC3339))
	}
	return ctx
}

// visit is the collector's Visit with a context.
func (l *link) visit(loc string, ctx *colly.Context) error {
	if l.c.CheckHead {
		if err := l.c.Head(loc); err != nil {
			return err
		}
	}
	return l.c.Request(http.MethodGet, loc, nil, ctx, nil)
}

// A scope is the sites whose pages a sitemap may list, by the URL of their robots.txt.
type scope map[string]bool

// add makes the site of rawURL a part of the scope.
func (s scope) add(rawURL string) scope {
	if u, err := url.Parse(rawURL); err == nil {
		if robots, err := dialect.Locate(u); err == nil {
			s[robots.String()] = true
		}
	}
	return s
}

func (s scope) has(u *url.URL) bool {
	robots, err := dialect.Locate(u)
	return err == nil && s[robots.String()]
}
