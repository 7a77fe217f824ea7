package feed

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A walk reads the sitemaps of one site. All of it belongs to the goroutine of its caller, but for
// what open uses.
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

	queue        queue
	queued, urls int64 // files and pages so far
	spent        spending
	isOver       bool // the budget, and this was said
	tally        tally
	samples      samples // of files that are not read
	newest       newest
	unfinished   []*file // in NewestFirst: of which pages may be still to be handed on

	url     url.URL // of the page at hand
	verdict hostVerdict
	outside outside // of the file at hand
}

func newWalk(ctx context.Context, f *Feed, crawl Crawl, site dialect.Authority) *walk {
	w := &walk{
		Feed: f, ctx: ctx, crawl: crawl, site: site, slots: crawl.Slots, stop: new(atomic.Bool),
		queue: newQueue(),
		spent: spending{limits: &f.limits, budget: &f.Budget},
		tally: tally{log: f.Log, site: site},
	}
	w.loose = &ticket{ended: w.stop}
	done := w.loose.finish
	w.hand = func(e sitemap.Entry, t *ticket) bool {
		if t == w.loose {
			return crawl.Visit(site, e, done)
		}
		return crawl.Visit(site, e, t.finish)
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
		for _, x := range w.queue.rest() {
			w.release(x, abandoned)
			x.body.Close()
		}
		w.tally.sum()
	}()
	for _, j := range jobs {
		w.enqueue(j)
	}
	for w.step(ctx, &fetchers) {
	}
	w.newest.hand(w)
	for _, x := range w.unfinished {
		x.checks.finish(!x.broken, x.listed, x.asked)
	}
}

// step reads a file, or waits until there is something to do. It reports whether the walk goes on.
func (w *walk) step(ctx context.Context, fetchers *sync.WaitGroup) bool {
	w.fetchMore(ctx, fetchers)
	if !w.queue.isFetching() {
		x := w.queue.unhold()
		return x != nil && w.read(x)
	}
	x := w.queue.pick()
	if x == nil {
		return true
	}
	if x.level == fresh { // or else it may say which pages of the next one are done
		w.fetchMore(ctx, fetchers)
	}
	return w.take(x)
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
		w.failed(&file{job: j, err: redact.ParseError(err)})
		return
	}
	j.key, j.level = keyOf(u), fresh
	if w.Resume {
		checks := w.newCheckpoints(w.ctx, &j, j.scope.names, true)
		if checks.spares(j.listed) {
			w.spare(&j, checks)
			return
		}
		j.level = checks.level()
	}
	w.queue.push(j)
}

// spare leaves out a file that has not changed.
func (w *walk) spare(j *job, cs checkpoints) {
	if w.once.claim(j, j.loc, j.key) {
		w.count(FilesUnchanged)
		for _, c := range cs {
			w.samples.add(j, c.record.Sample)
		}
		w.release(&file{job: *j, keys: []string{j.key}}, opened)
	}
}

// fetchMore asks for more files, as far as that may be done at once.
func (w *walk) fetchMore(ctx context.Context, fetchers *sync.WaitGroup) {
	for !w.full() && !w.ended() {
		j, ok := w.queue.next()
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
		w.queue.fetch(j)
		w.spent.spend(func(s *spending) { s.files++ })
		fetchers.Go(func() { w.queue.arrived <- w.open(ctx, j) })
	}
}

// overBudget says once that the rest of the site's sitemaps is left out, and sees to it.
func (w *walk) overBudget(limit *sitemap.LimitError) {
	w.queue.clear()
	if !w.isOver {
		w.isOver = true
		w.count(Errors)
		w.Log.Warn("the sitemaps of a site are too much: the rest is left out", "robots", w.site.RobotsURL(), "error", limit)
	}
}

// take deals with a file that is at hand. It reports whether the walk goes on.
func (w *walk) take(x *file) bool {
	switch {
	case x.panicked != nil:
		w.release(x, abandoned)
		panic(x.panicked)
	case x.err == nil:
		w.count(Files)
		for _, j := range w.sharedBy(x) {
			w.queue.reread(j)
		}
		if w.queue.hold(x) {
			return true
		}
		return w.read(x)
	case errors.Is(x.err, errUnchanged):
		w.release(x, opened)
		w.count(FilesUnchanged)
		j := x.job
		for _, c := range x.checks {
			w.samples.add(&j, c.record.Sample)
			c.confirm(x.listed)
		}
	case errors.Is(x.err, errRepeated):
		w.release(x, opened)
	case w.ended():
		w.release(x, abandoned)
	case errors.Is(x.err, ErrNotForSite), errors.Is(x.err, ErrElsewhere):
		w.release(x, abandoned)
		w.failed(x)
	default:
		w.release(x, failed)
		w.failed(x)
	}
	return !w.ended()
}

// release ends what claims a file. Others that were waiting for how it goes are looked at again.
func (w *walk) release(x *file, how string) {
	for _, key := range x.keys {
		for _, j := range w.once.release(key, how) {
			w.assign(assignment{site: j.site, jobs: []job{j}})
		}
	}
	x.keys = nil
}
