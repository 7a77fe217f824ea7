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

// A walk reads the sitemaps of one site. All fields belong to the goroutine of its caller, except
// those that open uses.
type walk struct {
	*Feed
	ctx   context.Context
	crawl Crawl
	site  dialect.Authority
	hand  func(e sitemap.Entry, t *ticket) (taken bool) // hands a page on
	slots func() *Slots                                 // returns the slots for a page; may return nil
	lost  func(error)                                   // called with an error that has cost a file; may be nil
	stop  *atomic.Bool                                  // set when the crawl has ended
	loose *ticket                                       // the common ticket of pages that hold nothing
	share *share                                        // the part of the slots that the walk holds

	queue        queue
	queued, urls int64 // the numbers of files and pages so far
	spent        spending
	isOver       bool // the budget is spent, and this was logged
	tally        tally
	samples      samples // of files that were skipped
	newest       newest
	unfinished   []*file // with NewestFirst: files with pages that may still be handed on

	url     url.URL // the URL of the current page
	verdict hostVerdict
	outside outside // the pages of the current file that are out of scope
}

func newWalk(ctx context.Context, f *Feed, crawl Crawl, site dialect.Authority) *walk {
	w := &walk{
		Feed:  f,
		ctx:   ctx,
		crawl: crawl,
		site:  site,
		slots: crawl.Slots,
		stop:  new(atomic.Bool),
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

// run reads the files of jobs and the files that these name.
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

// step reads a file or waits until there is something to do. It reports whether the walk continues.
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
	if x.level == fresh { // otherwise the file may tell which pages of the next one are done
		w.fetchMore(ctx, fetchers)
	}
	return w.take(x)
}

// ended reports whether the crawl has ended.
func (w *walk) ended() bool { return w.ctx.Err() != nil || w.stop.Load() }

// enqueue adds a file that has to be read, unless its record says that it need not be.
func (w *walk) enqueue(j job) {
	w.queued++
	if w.queued > w.limits.Files {
		w.overBudget(&sitemap.LimitError{Limit: "Files", Max: w.limits.Files})
		return
	}
	u, err := url.Parse(j.loc)
	if err != nil {
		w.failed(&file{job: j, err: redact.ParseError(err)})
		return
	}
	j.key = keyOf(u)
	j.level = fresh
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

// spare skips a file that has not changed.
func (w *walk) spare(j *job, cs checkpoints) {
	if w.once.claim(j, j.loc, j.key) {
		w.count(FilesUnchanged)
		for _, c := range cs {
			w.samples.add(j, c.record.Sample)
		}
		w.release(&file{job: *j, keys: []string{j.key}}, opened)
	}
}

// fetchMore requests more files, as many as may be requested at the same time.
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

// overBudget skips the remaining sitemaps of the site and logs this once.
func (w *walk) overBudget(limit *sitemap.LimitError) {
	w.queue.clear()
	if !w.isOver {
		w.isOver = true
		w.count(Errors)
		w.Log.Warn("sitemaps of a site exceed a limit, skipping the rest", "robots", w.site.RobotsURL(), "error", limit)
	}
}

// take processes a file that has arrived. It reports whether the walk continues.
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

// release ends the claims of a file. Jobs that were waiting for the outcome become pending again.
func (w *walk) release(x *file, how string) {
	for _, key := range x.keys {
		for _, j := range w.once.release(key, how) {
			w.assign(assignment{site: j.site, jobs: []job{j}})
		}
	}
	x.keys = nil
}
