package feed

import (
	"context"
)

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
		a, running = f.take(ctx, nested)
		if !running {
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
		for _, key := range a.keys {
			delete(f.inUse, key)
		}
	}()
	w.run(f.files(a))
}

// files returns the files that the walk of an assignment begins with.
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
