package collyrobots

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// CtxWaited is the key of a value in the colly.Context of a request whose page has waited in the
// urlstore.Store of the option Frontier: the URL of the page. The callbacks of OnRequest were called for
// the page before, with a request that was aborted. Requests that the callbacks of the page make
// with Request.Visit share its Context, so compare the value with the URL of the request.
const CtxWaited = "collyrobots.waited"

// Frontier records each GET of an asynchronous collector in f before it waits for its host. A later
// run then continues the crawl, also after a kill, and a page that waits needs no goroutine. By
// default, pages wait in memory. Close the plugin before f. A nil f is an OptionError. Without the
// option Store, robots.txt files and the pace of the hosts are also kept in f.
//
// A page whose turn has not come is aborted with Request.Abort, and submitted again when its turn
// comes. So the OnRequest callbacks are called again: then the value of CtxWaited is the URL of the
// page. A callback that acquires something in OnRequest must check IsAbort, and be registered after
// Attach. A later run must attach its collectors in the same order. See docs/frontier.md.
func Frontier(f urlstore.Store) Option {
	return option("Frontier", func(c *config) { c.frontier = f }, faultIf(typednil.Is(f), "Frontier", "the urlstore.Store is nil")).with(typeOf(f))
}

// A frontier connects the collectors of a plugin with its urlstore.Store. It records the pages and
// their results. A dispatcher submits the pages that have waited. The methods that are called
// without the option Frontier do nothing if the frontier is nil.
type frontier struct {
	*core
	store  urlstore.Store
	visits *arrivals.Visits

	unrecorded atomic.Int64          // pages that could not be recorded
	failure    atomic.Pointer[error] // the first error of store; nil if there is none
	begun      atomic.Bool           // a dispatcher was started
	ending     atomic.Int64          // attempts whose results are being reported to store

	// mu protects the fields below it, and dispatcher.held.
	mu         sync.Mutex
	collectors []weak.Pointer[hooks]   // by their numbers
	out        map[storedKey]*attempts // of each page that is under way
	recorded   int                     // how often wake was called
	dispatcher *dispatcher             // nil if none runs
	drained    bool                    // the last dispatcher has ended because no page was left
	broken     bool                    // Next has failed, or the plugin is closed: no more pages are recorded
	stopped    bool                    // stop was called, so no dispatcher is started
}

// newFrontier returns the frontier of a plugin.
func newFrontier(store urlstore.Store, c *core) *frontier {
	c.fed.Use()
	f := &frontier{core: c, store: store, out: make(map[storedKey]*attempts)}
	f.visits = arrivals.New(f.startDispatcher)
	return f
}

// A storedKey identifies a page.
type storedKey struct {
	collector int
	url       string
}

func keyOf(p *urlstore.Page) storedKey { return storedKey{collector: p.Collector, url: p.URL} }

// add gives a collector its number, and watches its storage.
func (f *frontier) add(h *hooks) {
	if f == nil {
		return
	}
	f.mu.Lock()
	h.recording = &frontierHooks{h: h, number: len(f.collectors)}
	f.collectors = append(f.collectors, weak.Make(h))
	f.mu.Unlock()
	f.watch(h)
}

// watch puts the storage of a collector into one that reports visits.
func (f *frontier) watch(h *hooks) {
	if f == nil || h == nil {
		return
	}
	h.handle.ReplaceStorage(func(s storage.Storage) storage.Storage {
		h.visits = f.visits.Wrap(s)
		h.visits.Before(h.recording.prepare)
		return h.visits
	})
}

// stop ends the dispatcher. Results and new pages are still recorded.
func (f *frontier) stop() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.stopped = true
	d := f.dispatcher
	f.mu.Unlock()
	if d != nil {
		d.stop()
		<-d.done
	}
}

// close ends the recording, after stop. Pages that are under way are not done, unless their hooks
// report it.
func (f *frontier) close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.broken = true
	f.mu.Unlock()
	f.visits.Close()
}

// tellParked reports that the page of r waits in the urlstore.Store, unless the wait is too short.
func (f *frontier) tellParked(r *colly.Request, p *urlstore.Page, of reporter.IDs) {
	if !f.judge.Report.Events.Active() {
		return
	}
	now := time.Now()
	s := f.judge.Wire.Hosts.At(now, p.Host).Stats(now)
	f.judge.Report.TellParked(now, s, s.Waiting+f.store.Waiting(p.Host), r.URL, of)
}

// A page whose host may not start for longer than farAway goes back to the urlstore.Store if crowd pages
// or more are under way. This is the case for the first page of a host, whose robots.txt was just
// read.
const (
	farAway = 200 * time.Millisecond
	crowd   = 128
)

// mustReturn reports whether q, the request of a recorded page, goes back to the urlstore.Store instead of
// waiting for its host here.
func (f *frontier) mustReturn(q *gate.Request) bool {
	isPaused := q.IsPaused()
	if !isPaused && !q.BusyFor(farAway) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return (isPaused || len(f.out) >= crowd) && !f.broken
}

// goOnUnrecorded returns the attempt to fetch a page that could not be recorded. The pages that
// lead to it are not done before it is, so that the next run finds it if this one is killed. listed
// is nil if no sitemap lists it.
func (f *frontier) goOnUnrecorded(h *hooks, a *arrival, listed *fed.Page) *fed.Page {
	f.unrecorded.Add(1)
	a.unrecorded = true
	return fed.Unrecorded(a.page.From, &unrecordedPage{frontier: f, hooks: h, arrival: a, listed: listed})
}

// An unrecordedPage is the fed.Listener of an attempt to fetch a page that could not be recorded.
type unrecordedPage struct {
	frontier *frontier
	hooks    *hooks
	arrival  *arrival
	listed   *fed.Page // the page of a sitemap; nil if none lists it
}

// Ended implements fed.Listener.
func (u *unrecordedPage) Ended(attempt *fed.Page, r feed.Result) {
	u.listed.End(r)
	u.frontier.untrack(attempt)
	if r == feed.Failed {
		u.frontier.recordLate(u.hooks, u.arrival.page)
	}
	if r != feed.Unfinished {
		u.arrival.visit.Ended()
	}
}

// Lapsed implements fed.Listener.
func (u *unrecordedPage) Lapsed(attempt *fed.Page, r feed.Result) {
	u.listed.End(r)
	u.frontier.release(attempt, r)
	u.arrival.visit.Ended()
}

// recordLate tries once more to record a page, which has failed, so that it is tried again.
func (f *frontier) recordLate(h *hooks, p *urlstore.Page) {
	if f.isBroken() {
		return
	}
	_, err := f.store.Add(p)
	if err != nil {
		f.fail(p, err)
		return
	}
	f.wake(h)
}

// untrack makes the hooks of an attempt no longer find it.
func (f *frontier) untrack(attempt *fed.Page) {
	r := f.ownerOf(attempt)
	if r != nil {
		f.tracked.Unset(r)
	}
}

// release is called when an attempt has lapsed. If it was not sent, its hooks may come after all and
// find it, but it does not keep its request alive.
func (f *frontier) release(attempt *fed.Page, r feed.Result) {
	if r != feed.Unsent {
		f.untrack(attempt)
		return
	}
	owner := f.ownerOf(attempt)
	if owner != nil {
		attempt.Disown()
		f.tracked.Weaken(owner)
	}
}

// ownerOf returns the request of an attempt that is not in the Context of that request. It returns
// nil if there is none.
func (f *frontier) ownerOf(attempt *fed.Page) *colly.Request {
	r := attempt.Owner()
	if r == nil {
		return nil
	}
	a := f.tracked.Get(r)
	if a == nil || a.attempt != attempt {
		return nil
	}
	return r
}

// errBroken is the reason why a page is not recorded after Next has failed.
var errBroken = errors.New("collyrobots: the urlstore.Store has failed before")

// An offered says what becomes of a page that was passed to the urlstore.Store.
type offered int

const (
	isKnown  offered = iota // it was recorded before
	isParked                // it is recorded, and waits
	goesOn                  // it is recorded, and its turn has come
)

// offer passes the page of a, which is that of r, to the urlstore.Store.
func (f *frontier) offer(h *hooks, a *arrival, r *colly.Request) (offered, error) {
	if f.isBroken() {
		return isKnown, errBroken
	}
	added, err := f.store.Add(a.page)
	switch {
	case err != nil:
		return isKnown, err
	case added && f.store.Take(a.page):
		return goesOn, nil
	case added:
		return isParked, nil
	case f.isRetry(h, a, r):
		return goesOn, f.store.Again(a.page)
	}
	return isKnown, nil
}

// isRetry reports whether r requests a known page again. If Colly does not look whether a URL was
// visited, r may also be a link to a known page.
func (f *frontier) isRetry(h *hooks, a *arrival, r *colly.Request) bool {
	if !h.c.AllowURLRevisit && h.handle.Storage() == storage.Storage(h.visits) {
		return a.visit == nil
	}
	return f.retries.IsMarked(r, track.Recorded)
}

// attempts are the attempts to fetch one page, at least one of which has not ended. The result of
// the page is that of the newest one, which may end before the others: a callback may call
// Request.Retry and return later.
type attempts struct {
	underWay []*fed.Page     // the newest is the last one
	newest   *fed.Page       // may have ended
	result   urlstore.Result // of newest, if that has ended
}

// handOut returns an attempt to fetch a page that the urlstore.Store has handed out. l is a
// storedPage, or contains one.
func (f *frontier) handOut(p *urlstore.Page, l fed.Listener) *fed.Page {
	attempt := fed.Recorded(p.From, l)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.out[keyOf(p)]
	if all == nil {
		all = new(attempts)
		f.out[keyOf(p)] = all
	}
	all.underWay = append(all.underWay, attempt)
	all.newest = attempt
	return attempt
}

// decide removes an attempt to fetch a page, which has ended with a result. It returns what to
// report to the urlstore.Store, and the attempt that decides, or nil if another one has not ended.
func (f *frontier) decide(p *urlstore.Page, attempt *fed.Page, result urlstore.Result) (urlstore.Result, *fed.Page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.out[keyOf(p)]
	if all == nil || !slices.Contains(all.underWay, attempt) {
		return result, attempt // it has ended before with another result
	}
	all.underWay = slices.DeleteFunc(all.underWay, func(other *fed.Page) bool { return other == attempt })
	if attempt == all.newest {
		all.result = result
	}
	if len(all.underWay) > 0 {
		return result, nil
	}
	delete(f.out, keyOf(p))
	return all.result, all.newest
}

// A storedPage is the fed.Listener of the attempts to fetch a page of the urlstore.Store.
type storedPage struct {
	frontier *frontier
	page     *urlstore.Page
}

// Ended implements fed.Listener.
func (s *storedPage) Ended(attempt *fed.Page, r feed.Result) {
	s.frontier.untrack(attempt)
	s.frontier.ended(s.page, attempt, r)
}

// Lapsed implements fed.Listener.
func (s *storedPage) Lapsed(attempt *fed.Page, r feed.Result) {
	s.frontier.release(attempt, r)
	s.frontier.ended(s.page, attempt, r)
}

// ended reports the result of an attempt to the urlstore.Store. If its callbacks may have visited pages,
// these must be recorded first.
func (f *frontier) ended(p *urlstore.Page, attempt *fed.Page, result feed.Result) {
	f.ending.Add(1) // before decide, for isIdle
	end, deciding := f.decide(p, attempt, pageResultOf(result))
	if end == urlstore.Returned || end == urlstore.Postponed {
		f.passResult(p, end)
		f.ending.Add(-1)
		return
	}
	f.visits.After(func(complete bool) {
		defer f.ending.Add(-1)
		if !complete {
			end = urlstore.Returned
		}
		f.passResult(p, end)
		if end == urlstore.Done && deciding != nil && deciding.Keep != nil {
			deciding.Keep()
		}
	})
}

// passResult passes a result to the urlstore.Store.
func (f *frontier) passResult(p *urlstore.Page, result urlstore.Result) {
	err := f.store.End(p, result)
	if err != nil {
		f.fail(p, err)
	}
}

// fail reports an error of the urlstore.Store about a page, or nil, and logs the first one.
func (f *frontier) fail(p *urlstore.Page, err error) {
	err = typednil.Error(err)
	f.judge.Report.TellUnrecorded(p, err)
	if f.failure.CompareAndSwap(nil, &err) {
		f.judge.Report.Log.Error("the urlstore.Store of Frontier has failed, pages go on without it", "error", err)
	}
}

// statistics returns the counts of the urlstore.Store. It adds what the urlstore.Store may not know.
func (f *frontier) statistics() *urlstore.Stats {
	if f == nil {
		return nil
	}
	s := f.store.Stats()
	s.Unrecorded = max(s.Unrecorded, int(f.unrecorded.Load()))
	if err := f.failure.Load(); err != nil && s.Error == "" {
		s.Error = redact.Text((*err).Error())
	}
	return &s
}

// storeError returns the first error of the urlstore.Store, or nil.
func (f *frontier) storeError() error {
	if f == nil {
		return nil
	}
	err := f.failure.Load()
	if err == nil {
		return nil
	}
	return fmt.Errorf("collyrobots: the urlstore.Store of Frontier has failed: %w", *err)
}

// isIdle reports whether the results of all pages that were handed out are in the urlstore.Store.
func (f *frontier) isIdle() bool {
	if f == nil {
		return true
	}
	f.mu.Lock()
	n := len(f.out)
	f.mu.Unlock()
	return n == 0 && f.ending.Load() == 0
}

// isPaused reports whether the frontier has handed out pages before, but does not do so now.
func (f *frontier) isPaused() bool {
	if f == nil || !f.begun.Load() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dispatcher == nil
}

// isBroken reports whether no more pages are recorded.
func (f *frontier) isBroken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// drop records that a request that no hook has seen was visited by a clone that is not attached.
func (f *frontier) drop(req *http.Request) {
	if f != nil {
		f.visits.Drop(arrivals.HashOfURL(req.URL.String()))
	}
}

// pageResultOf returns the urlstore.Result of an attempt. If the character set of a page was not
// detected, Colly has dropped it, so it is done. If the request was never sent, Colly may have
// dropped it, or it may still wait for a LimitRule.
func pageResultOf(r feed.Result) urlstore.Result {
	switch r {
	case feed.Done, feed.Silent:
		return urlstore.Done
	case feed.Skipped:
		return urlstore.Denied
	case feed.Unfinished:
		return urlstore.Returned
	case feed.Unsent:
		return urlstore.Postponed
	}
	return urlstore.Failed
}

// isUnreadable reports whether OnError was called because the body of a response could not be
// parsed. OnScraped follows.
func isUnreadable(c *colly.Collector, status int, err error) bool {
	return err != nil && status != 0 && (status < http.StatusNonAuthoritativeInfo || c.ParseHTTPErrorResponse)
}

// collector returns the hooks of the collector with a number, or nil if there is none.
func (f *frontier) collector(number int) *hooks {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < 0 || number >= len(f.collectors) {
		return nil
	}
	return f.collectors[number].Value()
}
