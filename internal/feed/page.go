package feed

import (
	"hash/maphash"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A page is an entry of a file that may be handed on.
type page struct {
	entry  sitemap.Entry
	at     resume.Place   // has a Checkpoint if the page is wanted and Resume is set
	again  bool           // the file or the page has changed, so what other files say about earlier runs is ignored
	hash   uint64         // the hash of its URL; set when the page is known to be wanted
	ticket *resume.Ticket // set when the page is claimed, if it has a Checkpoint
}

// page processes the next page that a file lists. It reports whether the walk continues.
func (w *walk) page(x *file, e sitemap.Entry, pos int) bool {
	w.count(Entries)
	p := page{entry: e}
	p.at.Mark.Pos = pos
	p.entry.Root = x.root
	if w.NewestFirst {
		p.at.Mark.Age = ageOf(&e)
	}
	if why := w.unwanted(x, &p); why != 0 {
		w.leaveOut(x, &p, why)
		return true
	}
	if w.Resume && w.isDone(x, &p) {
		w.journal.NoteDone(p.hash, p.at)
		return true
	}
	if w.isDropped(&p) {
		p.at.Leave() // a later run may have another Keep
		w.drop(Dropped, e.Loc)
		return true
	}
	if w.isDuplicate(&p) {
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

// isDone reports whether an earlier run or an earlier reading of the file has dealt with a page,
// and counts the page if so. Otherwise it sets the checkpoint of the page.
func (w *walk) isDone(x *file, p *page) bool {
	p.at.Checkpoint = x.checks.Of(w.verdict.name)
	if p.at.Checkpoint == nil { // the file was already read for this host, or was skipped
		w.drop(Duplicate, p.entry.Loc)
		return true
	}
	p.again = p.at.Checkpoint.Again() || w.journal.IsOutdated(p.hash, p.entry.LastMod)
	p.at.Checkpoint.Sample(p.entry.Loc)
	if p.at.Passed() {
		w.count(Resumed)
		return true
	}
	return false
}

// leaveOut processes an entry that is not wanted.
func (w *walk) leaveOut(x *file, p *page, why Outcome) {
	if x.checks.Pass(p.at.Mark) {
		w.count(Resumed)
		return
	}
	w.drop(why, p.entry.Loc)
}

// isDropped reports whether Keep drops a page. It does not call Keep for a page that is a
// duplicate, because Keep has kept that page before.
func (w *walk) isDropped(p *page) bool {
	if w.Keep == nil || w.journal.IsKnown(p.hash, p.again) || w.newest.has(p.hash) {
		return false
	}
	return !w.Keep(p.entry)
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
	case !w.journal.IsKnown(p.hash, p.again):
		return false
	}
	w.journal.Join(p.hash, p.at)
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
		w.warn(x, &sitemap.Error{Severity: sitemap.SeverityEntry, URL: e.Sitemap, Text: e.Loc, Err: sitemap.ErrBadLoc}, false)
		return Errors
	}
	if !w.inScope(x, e.Loc) {
		return OutOfScope
	}
	p.hash = w.identify(e.Loc)
	return 0
}

// identify returns the hash that identifies the page loc. w.url is the parsed loc.
func (w *walk) identify(loc string) uint64 {
	if cleaned := w.crawl.Cleaned(&w.url); cleaned != &w.url {
		loc = cleaned.String()
	}
	return maphash.String(w.seed, loc)
}

// A hostVerdict says whether the pages of a host are in a scope. The last one is kept, because most
// pages of a file have the same host.
type hostVerdict struct {
	scheme string
	host   string
	scope  *scope
	name   string // the name of the host in the scope
	in     bool
	needs  Scope // the narrowest kind of scope that includes the host
}

// inScope reports whether x may list the page loc, which is parsed in w.url.
func (w *walk) inScope(x *file, loc string) bool {
	u := &w.url
	v := &w.verdict
	if u.Host != v.host || u.Scheme != v.scheme || x.scope != v.scope {
		*v = hostVerdict{scheme: u.Scheme, host: u.Host, scope: x.scope, needs: ScopeAny}
		if a, err := dialect.AuthorityOf(u); err == nil {
			v.name = x.scope.kind.of(a.Host)
			v.in = x.scope.has(a.Host)
			v.needs = x.scope.needs(a.Host)
		}
	}
	if !v.in {
		w.outside.add(v.needs, loc)
	}
	return v.in
}

// claim records that a page is about to be handed on, and reports whether this is the first time in
// this run.
func (w *walk) claim(p *page) (isNew bool) {
	p.ticket, isNew = w.journal.Claim(p.hash, p.again, p.at)
	return isNew
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
		w.leaveOver(p)
		return false, false
	}
	w.skip(p)
	w.drop(Denied, p.entry.Loc)
	return false, true
}

// skip leaves a page that must not be fetched for a later run, because that may change.
func (w *walk) skip(p *page) {
	if p.ticket != nil {
		p.ticket.Drop(resume.Skipped)
	} else {
		w.journal.Skip(p.hash, p.at)
	}
}

// leaveOver leaves a page for a later run, because this run hands on no more pages.
func (w *walk) leaveOver(p *page) {
	if p.ticket != nil {
		p.ticket.Drop(resume.Unfinished)
	}
}

// give hands a page on. It reports whether the walk continues.
func (w *walk) give(p *page) bool {
	if !w.reserve() {
		w.leaveOver(p)
		return false
	}
	done, err := w.expect(p)
	if err != nil {
		w.counts[Fed].Add(-1)
		w.leaveOver(p)
		return false
	}
	if !w.hand(p.entry, done) {
		w.counts[Fed].Add(-1)
		if w.ended() {
			done(Unfinished)
			return false
		}
		w.drop(Refused, p.entry.Loc)
		done(Skipped)
	}
	return !w.ended()
}

// giveNewest hands on the pages that are kept until all sitemaps have been read, the newest first.
func (w *walk) giveNewest() {
	more := true
	for _, x := range w.newest.sorted() {
		more = more && !w.ended()
		if !more {
			x.drop()
			continue
		}
		if w.claim(&x.page) {
			more = w.give(&x.page)
		} else {
			w.drop(Duplicate, x.entry.Loc)
			w.journal.Join(x.hash, x.at)
		}
		for _, at := range x.also {
			w.journal.Join(x.hash, at)
		}
	}
}

// expect returns the function that takes the result of a page. It first waits for a slot if the
// crawl has slots. The error is the error of the context.
func (w *walk) expect(p *page) (done func(Result), err error) {
	slots := w.slots()
	if slots == nil && p.ticket == nil {
		return w.loose, nil
	}
	d := &delivery{feed: w.Feed, stop: w.stop, ticket: p.ticket}
	if slots != nil {
		if w.share == nil || w.share.slots != slots {
			w.share = &share{slots: slots}
		}
		if err := w.share.enter(w.ctx, w.inFlight()); err != nil {
			return nil, err
		}
		d.share = w.share
	}
	return d.finish, nil
}
