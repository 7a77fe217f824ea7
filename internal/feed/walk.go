package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A walk reads the sitemaps of one site. All of it belongs to the goroutine of its caller, but for what
// open uses.
type walk struct {
	*Feed
	ctx   context.Context
	crawl Crawl
	site  dialect.Authority
	hand  func(e sitemap.Entry, t *ticket) (taken bool) // hands a page on
	slots func() *Slots                                 // of which each page needs one; may return nil
	lost  func(error)                                   // is told of what cost a file; may be nil
	stop  *atomic.Bool                                  // the crawl has ended
	loose *ticket                                       // of pages that hold nothing
	share *share                                        // of the slots
	spent spending
	tally tally

	queues       [numLevels][]job // files to be asked for
	fetching     []job            // files that are asked for or at hand, in the order in which they were
	atHand       []*file
	atOnce       int // how many files are asked for, or at hand, at the same time
	arrived      chan *file
	samples      samples // of files that are not read
	held         []*file // until other files have been read that share pages with one of them,
	rereading    int     // as many
	newest       newest
	unfinished   []*file // in NewestFirst: of which pages may be still to be handed on
	queued, urls int64
	over         bool // the budget, and this was said

	url       url.URL // of the page at hand
	host      string  // of the last page, and what was made of it
	hostScope *scope
	hostIn    bool
	hostNeeds Scope
	outside   outside // of the file at hand
}

// A job is a file to be read.
type job struct {
	loc    string
	site   dialect.Authority // whose sitemap it is
	scope  *scope
	root   string    // URL of the file that robots.txt names, after redirects; "": it is that
	depth  int64     // indexes above it
	listed time.Time // its lastmod in the index
	asked  time.Time // when the walk began to fetch it
	key    string
	level  level
	reread bool     // for its pages to be known, though nothing is new
	guess  []string // nobody has named it; where to look next if it is not there
}

// fetchedAtOnce is what atOnce is for those who do not pull.
const fetchedAtOnce = 4

// inOrder is how long a file is waited for while others are at hand that were asked for after it.
const inOrder = time.Second

// wellKnownPaths are where sitemaps are that robots.txt does not name.
var wellKnownPaths = []string{"/sitemap.xml", "/sitemap_index.xml"}

// wellKnown returns the job of finding one of them.
func wellKnown(site dialect.Authority, s *scope) job {
	j := job{site: site, scope: s}
	for _, path := range wellKnownPaths {
		j.guess = append(j.guess, site.String()+path)
	}
	j.loc = j.guess[0]
	return j
}

func newWalk(f *Feed, ctx context.Context, crawl Crawl, site dialect.Authority) *walk {
	w := &walk{
		Feed: f, ctx: ctx, crawl: crawl, site: site, slots: crawl.Slots, stop: new(atomic.Bool),
		arrived: make(chan *file, fetchedAtOnce), atOnce: fetchedAtOnce,
		tally: tally{log: f.Log, site: site},
	}
	w.spent = spending{limits: &f.limits, budget: &f.Budget, home: registrable(site.Host)}
	w.loose = &ticket{ended: w.stop}
	done := w.loose.finish
	w.hand = func(e sitemap.Entry, t *ticket) bool {
		if t == w.loose {
			return crawl.Visit(e, done)
		}
		return crawl.Visit(e, t.finish)
	}
	if f.NewestFirst {
		w.newest.most = f.MaxURLs + spare
	}
	return w
}

// run reads the files of jobs, and what they name.
func (w *walk) run(jobs []job) {
	ctx, cancel := context.WithCancel(w.ctx)
	var fetchers sync.WaitGroup
	defer func() {
		cancel()
		fetchers.Wait()
		for range len(w.fetching) - len(w.atHand) {
			w.atHand = append(w.atHand, <-w.arrived)
		}
		for _, x := range append(w.atHand, w.held...) {
			w.release(x, abandoned)
			x.body.Close()
		}
		w.tally.sum()
	}()
	for _, j := range jobs {
		w.enqueue(j)
	}
	for more := true; more; {
		w.fetchMore(ctx, &fetchers)
		if len(w.fetching) > 0 {
			more = w.take(w.pick())
		} else if more = len(w.held) > 0; more {
			x := w.held[0]
			w.held = w.held[1:]
			more = w.read(x)
		}
	}
	w.newest.hand(w)
	for _, x := range w.unfinished {
		x.check.finish(!x.broken && !x.check.dropped, x.listed, x.asked)
	}
}

// ended reports whether the crawl has ended.
func (w *walk) ended() bool { return w.ctx.Err() != nil || w.stop.Load() }

// enqueue notes a file that is to be read, unless its record says that it need not be.
func (w *walk) enqueue(j job) {
	if w.queued++; w.queued > w.limits.Files {
		w.overBudget(&sitemap.LimitError{Limit: "Files", Max: w.limits.Files})
		return
	}
	u, err := url.Parse(j.loc)
	if err != nil {
		w.failed(&file{job: j, err: err})
		return
	}
	j.key, j.level = keyOf(u), fresh
	if w.Resume {
		check := w.recall(w.ctx, &j)
		if check.spares(j.listed) {
			w.spare(&j, check)
			return
		}
		j.level = check.level()
	}
	w.queues[j.level] = append(w.queues[j.level], j)
}

// spare leaves out a file that has not changed.
func (w *walk) spare(j *job, c *checkpoint) {
	if w.once.claim(j, j.loc, j.key) {
		w.count(FilesUnchanged)
		w.samples.add(j, c.record.Sample)
		w.release(&file{job: *j, keys: []string{j.key}}, opened)
	}
}

// next returns the file that is to be asked for next: of the first level, and once all of the levels
// before it have been read.
func (w *walk) next() (j job, ok bool) {
	for l := range w.queues {
		if q := w.queues[l]; len(q) > 0 && !w.full() && !w.ended() {
			w.queues[l] = q[1:]
			return q[0], true
		}
		fetching := slices.ContainsFunc(w.fetching, func(j job) bool { return j.level == level(l) })
		if fetching || slices.ContainsFunc(w.held, func(x *file) bool { return x.level == level(l) }) {
			break
		}
	}
	return job{}, false
}

// fetchMore asks for more files, as far as that may be done at once.
func (w *walk) fetchMore(ctx context.Context, fetchers *sync.WaitGroup) {
	for len(w.fetching) < w.atOnce {
		j, ok := w.next()
		if !ok {
			return
		}
		if limit := w.spent.over(); limit != nil {
			w.overBudget(limit)
			return
		}
		if !j.reread && !w.once.claim(&j, j.loc, j.key) {
			continue
		}
		j.asked = time.Now()
		w.fetching = append(w.fetching, j)
		w.spent.spend(func(s *spending) { s.files++ })
		fetchers.Go(func() { w.arrived <- w.open(ctx, j) })
	}
}

// overBudget says once that the rest of the site's sitemaps is left out, and sees to it.
func (w *walk) overBudget(limit *sitemap.LimitError) {
	w.queues = [numLevels][]job{}
	if !w.over {
		w.over = true
		w.count(Errors)
		w.Log.Warn("the sitemaps of a site are too much: the rest is left out", "robots", w.site.RobotsURL(), "error", limit)
	}
}

// pick returns the next file that is at hand: the one that was asked for first, unless it takes long.
func (w *walk) pick() *file {
	for {
		for i, j := range w.fetching {
			at := slices.IndexFunc(w.atHand, func(x *file) bool { return x.key == j.key })
			if at >= 0 {
				x := w.atHand[at]
				w.atHand = slices.Delete(w.atHand, at, at+1)
				w.fetching = slices.Delete(w.fetching, i, i+1)
				return x
			}
			if rest := inOrder - time.Since(j.asked); rest > 0 || len(w.atHand) == 0 {
				w.await(rest)
				break
			}
		}
	}
}

// await waits for a file to arrive; if there is one at hand, no longer than patience.
func (w *walk) await(patience time.Duration) {
	if len(w.atHand) == 0 {
		w.atHand = append(w.atHand, <-w.arrived)
		return
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case x := <-w.arrived:
		w.atHand = append(w.atHand, x)
	case <-t.C:
	}
}

// take deals with a file that is at hand. It reports whether the walk goes on.
func (w *walk) take(x *file) bool {
	if x.reread {
		w.rereading--
	}
	switch {
	case x.panicked != nil:
		w.release(x, abandoned)
		panic(x.panicked)
	case x.err == nil:
		w.count(Files)
		w.reread(w.sharedBy(x))
		if w.rereading > 0 && !x.reread {
			w.held = append(w.held, x)
			return true
		}
		return w.read(x)
	case errors.Is(x.err, errUnchanged):
		w.release(x, opened)
		w.count(FilesUnchanged)
		j := x.job
		w.samples.add(&j, x.check.record.Sample)
		x.check.confirm(x.listed)
	case errors.Is(x.err, errRepeated):
		w.release(x, opened)
	case w.ended():
		w.release(x, abandoned)
	default:
		w.release(x, failed)
		w.failed(x)
	}
	return !w.ended()
}

// reread sees to it that the pages of files are known that were left out.
func (w *walk) reread(files []job) {
	for _, j := range files {
		j.level, j.reread = settled, true
		w.queues[settled] = append(w.queues[settled], j)
		w.rereading++
	}
}

// release ends what claims a file. Others that were waiting for how it goes are looked at again.
func (w *walk) release(x *file, how string) {
	for _, key := range x.keys {
		for _, j := range w.once.release(key, how) {
			w.assign(assignment{j.site, []job{j}})
		}
	}
	x.keys = nil
}

// read reads a file that is at hand. It reports whether the walk goes on.
func (w *walk) read(x *file) bool {
	defer x.body.Close()
	if x.root == "" {
		x.root = x.base.String()
		x.scope.addURL(x.root)
	}
	whole, more := w.entries(x)
	w.tellOutside(x)
	switch {
	case !whole:
		x.broken = true
		w.release(x, abandoned)
	case x.unreadable:
		w.release(x, failed)
	default:
		w.release(x, opened)
		w.spent.spend(func(s *spending) { s.read++ })
	}
	if x.check != nil && w.NewestFirst {
		w.unfinished = append(w.unfinished, x)
	} else {
		x.check.finish(!x.broken, x.listed, x.asked)
	}
	return more
}

// entries deals with what a file lists. It reports whether that is all that this file can give, and
// whether the walk goes on.
func (w *walk) entries(x *file) (whole, more bool) {
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = w.Limits
	children := int64(0)
	for pos := 0; ; {
		e, err := r.Read()
		switch {
		case err == io.EOF:
			return true, true
		case w.ended():
			return false, false
		case err != nil:
			w.fault(x, err)
		case !e.Index && w.urls == w.limits.URLs:
			w.overBudget(&sitemap.LimitError{Limit: "URLs", Max: w.urls})
			return false, false
		case !e.Index:
			w.urls++
			if !w.page(x, e, pos) {
				return false, false
			}
			pos++
		case x.depth == w.limits.Depth:
			w.fault(x, &sitemap.Error{Scope: sitemap.ScopeFile, URL: e.Sitemap, Err: &sitemap.LimitError{Limit: "Depth", Max: x.depth}})
			return false, true
		case children == w.limits.Children:
			w.fault(x, &sitemap.Error{Scope: sitemap.ScopeFile, URL: e.Sitemap, Err: &sitemap.LimitError{Limit: "Children", Max: children}})
			return true, true
		default:
			children++
			x.check.names()
			w.enqueue(job{loc: e.Loc, site: x.site, scope: x.scope, root: x.root, depth: x.depth + 1, listed: e.LastMod})
		}
	}
}

// failed says that a file could not be fetched.
func (w *walk) failed(x *file) {
	limit := (*sitemap.LimitError)(nil)
	switch {
	case !errors.As(x.err, &limit):
		w.spent.spend(func(s *spending) { s.cost.Failures++ })
	case limit.Limit != elsewhere:
		w.overBudget(limit)
		return
	}
	w.count(FilesFailed)
	if w.guessAgain(x) {
		return
	}
	w.drop(Errors, x.name())
	w.tell(x, x.err, true)
}

// guessAgain reports whether a file was only looked for where it may be, and looks in the next place.
func (w *walk) guessAgain(x *file) bool {
	if len(x.guess) == 0 {
		return false
	}
	w.Log.Debug("no sitemap in a usual place", "sitemap", x.name())
	if rest := x.guess[1:]; len(rest) > 0 {
		w.enqueue(job{loc: rest[0], site: x.site, scope: x.scope, guess: rest})
	}
	return true
}

// fault counts and tells what is wrong with a file that was fetched.
func (w *walk) fault(x *file, err error) {
	fault := (*sitemap.Error)(nil)
	lost := errors.As(err, &fault) && fault.Scope == sitemap.ScopeFile
	if lost {
		x.broken = true
		if errors.Is(err, sitemap.ErrNotSitemap) {
			x.unreadable = true
			w.count(FilesFailed)
			w.spent.spend(func(s *spending) { s.cost.Failures++ })
			if w.guessAgain(x) {
				return
			}
			if x.coding != "" {
				err = fmt.Errorf("%w; its Content-Encoding is %q", err, x.coding)
			}
		} else {
			w.count(FilesCut)
		}
	}
	w.drop(Errors, cmp.Or(fault.Text, x.name()))
	w.tell(x, err, lost)
}

// tell logs what is wrong with a file, and whether it is lost or the rest of it.
func (w *walk) tell(x *file, err error, lost bool) {
	w.tally.tell(x.kindOf(err), "sitemap fault", "sitemap", x.name(), "error", err)
	if lost && w.lost != nil {
		w.lost(err)
	}
}
