package feed

import (
	"hash/maphash"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A page is an entry of a file that may be handed on.
type page struct {
	entry  sitemap.Entry
	check  *checkpoint // the checkpoint of the file for the host of the page
	mark   mark        // the place of the page in the file
	again  bool        // the file has changed, so what other files say about earlier runs is ignored
	hash   uint64      // the hash of its URL; set when the page is known to be wanted
	ticket *ticket     // set when the page is claimed, if checkpoints need it
}

// page processes the next page that a file lists. It reports whether the walk continues.
func (w *walk) page(x *file, e sitemap.Entry, pos int) bool {
	w.count(Entries)
	p := page{entry: e, mark: mark{Pos: pos}}
	p.entry.Root = x.root
	if w.NewestFirst {
		p.mark.Age = ageOf(&e)
	}
	if why := w.unwanted(x, &p); why != 0 {
		w.leaveOut(x, &p, why)
		return true
	}
	p.check = x.checks.of(w.verdict.name)
	p.again = p.check.again()
	if p.check != nil {
		p.check.sample.add(e.Loc)
	}
	switch {
	case p.check.passed(p.mark):
		w.count(Resumed)
		w.noteDone(p.hash)
		return true
	case w.Resume && p.check == nil: // the file was already read for this host, or was skipped
		w.drop(Duplicate, e.Loc)
		w.noteDone(p.hash)
		return true
	case w.isDuplicate(&p):
		w.drop(Duplicate, e.Loc)
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

// leaveOut processes an entry that is not wanted. Entries that Keep has dropped are left for a
// later run, which may have another Keep.
func (w *walk) leaveOut(x *file, p *page, why Outcome) {
	switch {
	case why == Dropped:
		c := x.checks.of(w.verdict.name)
		if c.passed(p.mark) {
			w.count(Resumed)
			return
		}
		c.leave(p.mark, 0)
	case x.checks.pass(p.mark):
		w.count(Resumed)
		return
	}
	w.drop(why, p.entry.Loc)
}

// isDuplicate reports whether a page was listed before, and records the new place if it was.
// Otherwise the page is claimed, except that with NewestFirst, pages are claimed only when they are
// handed on.
func (w *walk) isDuplicate(p *page) bool {
	switch {
	case !w.NewestFirst:
		if w.claim(p) {
			return false
		}
	case w.newest.join(p):
		return true
	case w.isNew(p.hash, p.again) && !w.keeper.skipped.has(p.hash):
		return false
	}
	w.keeper.join(p.hash, p.check, p.mark)
	return true
}

// unwanted returns the outcome of an entry that must not be fed because of its own content or URL.
// If the entry may be fed, it returns 0.
func (w *walk) unwanted(x *file, p *page) Outcome {
	e := &p.entry
	if !e.LastMod.IsZero() && e.LastMod.Before(w.Since) {
		return Old
	}
	if err := parseURL(e.Loc, &w.url); err != nil {
		w.tell(x, &sitemap.Error{Severity: sitemap.SeverityEntry, URL: e.Sitemap, Text: e.Loc, Err: sitemap.ErrBadLoc}, false)
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

// A hostVerdict says whether the pages of a host are in a scope. The last one is kept, because most
// pages of a file have the same host.
type hostVerdict struct {
	scheme, host string
	scope        *scope
	name         string // the name of the host in the scope
	in           bool
	needs        Scope // the narrowest kind of scope that includes the host
}

// inScope reports whether x may list the page loc, which is parsed in w.url.
func (w *walk) inScope(x *file, loc string) bool {
	u, v := &w.url, &w.verdict
	if u.Host != v.host || u.Scheme != v.scheme || x.scope != v.scope {
		*v = hostVerdict{scheme: u.Scheme, host: u.Host, scope: x.scope, needs: ScopeAny}
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

// claim records that a page is about to be handed on, and reports whether this is the first time in
// this run. Until the result of the page is known, no file that lists the page is done. This
// matters because a page may wait for a long time, while another walk finds it in another file.
func (w *walk) claim(p *page) bool {
	isNew := func(hash uint64) bool { return w.isNew(hash, p.again) && w.seen.add(hash) }
	if p.check == nil {
		if !isNew(p.hash) {
			return false
		}
	} else {
		t := &ticket{feed: w.Feed, ended: w.stop, hash: p.hash}
		if !w.keeper.claim(t, p.check, p.mark, isNew) {
			return false
		}
		p.ticket = t
	}
	w.sayFull()
	return true
}

// doneBefore is combined with the hash of a page (by XOR). The result is in seen if the page is
// known to be fetched by an earlier run.
const doneBefore = 0x9e3779b97f4a7c15

// noteDone records that an earlier run has fetched a page, unless this run has already claimed it.
func (w *walk) noteDone(hash uint64) {
	if !w.seen.has(hash) {
		w.seen.add(hash ^ doneBefore)
		w.sayFull()
	}
}

// isNew reports whether a page was neither claimed in this run nor fetched by an earlier one. If
// again is set, only this run counts.
func (w *walk) isNew(hash uint64, again bool) bool {
	return !w.seen.has(hash) && (again || !w.seen.has(hash^doneBefore))
}

// sayFull logs once that there are too many pages to remember.
func (w *walk) sayFull() {
	if w.seen.full.Load() && w.bound.CompareAndSwap(false, true) {
		w.Log.Warn("too many pages to remember, later ones may be fetched more than once", "count", w.seen.most)
	}
}

// judge asks the crawl whether the page in w.url may be fetched. more reports whether the walk
// continues.
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
	w.skip(p)
	w.drop(Denied, p.entry.Loc)
	return false, true
}

// skip records that a page is not handed on in this run.
func (w *walk) skip(p *page) {
	if p.ticket != nil {
		w.keeper.drop(p.ticket, Skipped)
	} else {
		w.keeper.skip(p.hash, p.check, p.mark)
	}
}

// leave records that a page is for a later run, because no more pages are handed on in this one.
func (w *walk) leave(p *page) {
	if p.ticket != nil {
		w.keeper.drop(p.ticket, Unfinished)
	}
}

// give hands a page on. It reports whether the walk continues.
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
		t.finish(Skipped)
	}
	return !w.ended()
}
