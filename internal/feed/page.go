package feed

import (
	"hash/maphash"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A page is an entry of a file that is to be visited, or not.
type page struct {
	entry  sitemap.Entry
	check  *checkpoint // of the file, for the page's host
	mark   mark        // where the page is in it
	hash   uint64      // of its URL, once it is known to be wanted
	ticket *ticket     // by which checkpoints know that it is not done; nil: they need not, or not yet
}

// page deals with the next page that a file lists. It reports whether the walk goes on.
func (w *walk) page(x *file, e sitemap.Entry, pos int) bool {
	w.count(Entries)
	p := page{entry: e, mark: mark{Pos: pos}}
	p.entry.Root = x.root
	if w.NewestFirst {
		p.mark.Age = ageOf(&e)
	}
	if why := w.unwanted(x, &p); why != 0 {
		if x.checks.pass(p.mark) {
			w.count(Resumed)
		} else {
			w.drop(why, e.Loc)
		}
		return true
	}
	if p.check = x.checks.of(w.verdict.name); p.check != nil {
		p.check.sample.add(e.Loc)
	}
	switch {
	case p.check.passed(p.mark):
		w.count(Resumed)
		w.see(p.hash)
		w.newest.pass(p.hash)
		return true
	case w.Resume && p.check == nil: // the file was read for its host, or left out
		w.drop(Duplicate, e.Loc)
		if w.see(p.hash) {
			w.newest.pass(p.hash)
		}
		return true
	case w.claim(&p):
	case w.NewestFirst:
		w.drop(Duplicate, e.Loc)
		w.newest.join(p.hash, p.check, p.mark)
		return true
	default:
		w.drop(Duplicate, e.Loc)
		w.keeper.join(p.hash, p.check, p.mark)
		return true
	}
	if allowed, more := w.judge(&p); !allowed {
		return more
	}
	if w.NewestFirst {
		w.newest.add(p)
		return true
	}
	return w.give(&p)
}

// unwanted returns the outcome of an entry that is not to be fed for what it is, else 0.
func (w *walk) unwanted(x *file, p *page) Outcome {
	e := &p.entry
	if !e.LastMod.IsZero() && e.LastMod.Before(w.Since) {
		return Old
	}
	if err := parseURL(e.Loc, &w.url); err != nil {
		w.tell(x, &sitemap.Error{Scope: sitemap.ScopeEntry, URL: e.Sitemap, Text: e.Loc, Err: sitemap.ErrBadLoc}, false)
		return Errors
	}
	if !w.inScope(x, e.Loc) {
		return OutOfScope
	}
	if w.Keep != nil && !w.Keep(*e) {
		return Dropped
	}
	p.hash = maphash.String(w.seed, e.Loc)
	return 0
}

// A hostVerdict is whether the pages of a host are in a scope. The pages of a file tend to be of
// one host, so the last one is kept.
type hostVerdict struct {
	scheme, host string
	scope        *scope
	name         string // of the host in the scope
	in           bool
	needs        Scope // which would have it in
}

// inScope reports whether x may list the page loc, which w.url is.
func (w *walk) inScope(x *file, loc string) bool {
	u, v := &w.url, &w.verdict
	if u.Host != v.host || u.Scheme != v.scheme || x.scope != v.scope {
		*v = hostVerdict{scheme: u.Scheme, host: u.Host, scope: x.scope, needs: AnySite}
		if a, err := dialect.AuthorityOf(u); err == nil {
			v.name = x.scope.kind.of(a.Host)
			v.in, v.needs = x.scope.has(a.Host), x.scope.needs(a.Host)
		}
	}
	if !v.in {
		w.outside.add(v.needs, loc)
	}
	return v.in
}

// claim notes a page that is listed, and reports whether it is the first time. Until it is known
// what becomes of it, no file that lists it is done: a page may wait for long to be handed on,
// while another walk comes to it.
func (w *walk) claim(p *page) bool {
	if p.check == nil || w.NewestFirst {
		return w.see(p.hash)
	}
	t := &ticket{feed: w.Feed, ended: w.stop, hash: p.hash}
	if !w.keeper.claim(t, p.check, p.mark, w.seen.add) {
		return false
	}
	p.ticket = t
	w.sayFull()
	return true
}

// see is claim for a page that no checkpoint has to know of.
func (w *walk) see(hash uint64) bool {
	if !w.seen.add(hash) {
		return false
	}
	w.sayFull()
	return true
}

// sayFull says once that the pages are too many.
func (w *walk) sayFull() {
	if w.seen.full.Load() && w.bound.CompareAndSwap(false, true) {
		w.Log.Warn("too many pages to remember which were listed before", "count", w.seen.most)
	}
}

// judge asks the crawl whether the page that w.url is may be fetched, and says so where it matters.
// It reports whether the walk goes on.
func (w *walk) judge(p *page) (allowed, more bool) {
	allowed, r := w.crawl.Allowed(w.ctx, w.site, p.entry.Sitemap, &w.url)
	switch {
	case allowed:
		return true, true
	case r == Unfinished || w.ended():
		w.stop.Store(true)
		w.leave(p)
		return false, false
	}
	if w.settle(p, r) {
		w.count(GivenUp)
	}
	if r == Done {
		w.newest.pass(p.hash)
	}
	w.drop(Denied, p.entry.Loc)
	return false, true
}

// settle notes what becomes of a page that is not handed on. It reports whether it is given up.
func (w *walk) settle(p *page, r Result) (givenUp bool) {
	switch {
	case p.ticket != nil:
		return w.keeper.drop(p.ticket, r)
	case r == Done:
		p.check.pass(p.mark)
		return false
	}
	return w.keeper.fail(p.hash, p.check, p.mark)
}

// leave notes that a page is for a later run, since nothing more is handed on in this one.
func (w *walk) leave(p *page) {
	if p.ticket != nil {
		w.keeper.drop(p.ticket, Unfinished)
	}
}

// give hands a page on. It reports whether the walk goes on.
func (w *walk) give(p *page) bool {
	if !w.reserve() {
		w.leave(p)
		return false
	}
	t, err := w.newTicket(p)
	if err != nil {
		w.counts[Fed].Add(-1)
		w.leave(p)
		return false
	}
	if !w.hand(p.entry, t) {
		w.counts[Fed].Add(-1)
		if w.ended() {
			t.finish(Unfinished)
			return false
		}
		w.drop(Refused, p.entry.Loc)
		t.finish(Done)
	}
	return !w.ended()
}
