package feed

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A walk reads the sitemaps of one site. All fields belong to the goroutine of its caller, except
// for the fetcher, which the goroutines that open files also use.
type walk struct {
	fetcher
	ctx   context.Context
	hand  func(e sitemap.Entry, done func(Result)) (taken bool) // hands a page on
	slots func() *Slots                                         // returns the slots for a page; may return nil
	lost  func(error)                                           // called with an error that has cost a file; may be nil
	stop  *atomic.Bool                                          // set when the crawl has ended
	loose func(Result)                                          // takes the results of pages that hold nothing
	share *share                                                // the part of the slots that the walk holds

	queue       queue
	queued      int64 // the number of files so far
	urls        int64 // the number of pages so far
	limitLogged bool  // it was logged that a limit is reached
	tally       tally
	samples     resume.Samples[*job] // of files that were skipped
	newest      newest
	unfinished  []*file // with NewestFirst: files with pages that may still be handed on

	url     url.URL // the URL of the current page
	verdict hostVerdict
	outside outside // the pages of the current file that are out of scope
}

func newWalk(ctx context.Context, f *Feed, crawl Crawl, site dialect.Authority) *walk {
	w := &walk{
		fetcher: fetcher{
			Feed:  f,
			crawl: crawl,
			site:  site,
			spent: spending{limits: &f.limits, budget: &f.Budget},
		},
		ctx:   ctx,
		slots: crawl.Slots,
		stop:  new(atomic.Bool),
		queue: newQueue(),
		tally: tally{log: f.Log, site: site},
	}
	w.hand = func(e sitemap.Entry, done func(Result)) bool { return crawl.Visit(site, e, done) }
	w.loose = func(r Result) {
		if r == Unfinished {
			w.stop.Store(true)
		}
	}
	if f.NewestFirst {
		w.newest.limit = f.MaxURLs + extraNewest
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
			if x.body != nil {
				x.body.Close()
			}
		}
		w.tally.sum()
	}()
	for _, j := range jobs {
		w.enqueue(j)
	}
	for w.step(ctx, &fetchers) {
	}
	w.giveNewest()
	for _, x := range w.unfinished {
		x.checks.Finish(!x.broken, x.listed, x.asked)
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
	if x.level == resume.Fresh { // otherwise the file may tell which pages of the next one are done
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
		w.reachLimit(&sitemap.LimitError{Limit: "Files", Max: w.limits.Files})
		return
	}
	u, err := url.Parse(j.loc)
	if err != nil {
		w.failed(&file{job: j, err: redact.ParseError(err)})
		return
	}
	j.key = keyOf(u)
	j.level = resume.Fresh
	if w.Resume {
		checks := w.checkpoints(w.ctx, &j, j.scope.names, true)
		if checks.Spares(j.listed) {
			w.skipUnchanged(&j, checks)
			return
		}
		j.level = checks.Level()
	}
	w.queue.push(j)
}

// skipUnchanged skips a file that has not changed.
func (w *walk) skipUnchanged(j *job, checks resume.Checkpoints) {
	if w.once.claim(j, j.loc, j.key) {
		w.count(FilesUnchanged)
		w.samples.Add(j, checks)
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
			w.reachLimit(limit)
			return
		}
		if !j.reread && !w.once.claim(&j, j.loc, j.key) {
			continue
		}
		j.asked = time.Now()
		w.queue.fetch(j)
		w.spent.spend(func(s *spending) { s.files++ })
		fetchers.Go(func() { w.queue.arrived <- w.fetcher.open(ctx, j) })
	}
}

// reachLimit skips the remaining sitemaps of the site and logs this once.
func (w *walk) reachLimit(limit *sitemap.LimitError) {
	w.queue.clear()
	if !w.limitLogged {
		w.limitLogged = true
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
		w.samples.Add(&j, x.checks)
		x.checks.Confirm(x.listed)
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

// sharedBy returns the files that were skipped and that share pages with x. Their pages are done.
// The walk must read these files again before x to learn which pages they list, or it would hand on
// the shared pages of x a second time.
func (w *walk) sharedBy(x *file) []job {
	if len(x.checks) == 0 || x.checks.Again() || w.samples.IsEmpty() {
		return nil
	}
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = w.Limits
	var shared []job
	for e, err := range r.All() {
		if err != nil || e.Index {
			continue
		}
		if j, found := w.samples.Take(e.Loc); found {
			shared = append(shared, *j)
		}
	}
	return shared
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
