package collyrobots

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/report"
)

// hooks are the callbacks that the plugin registers with one collector, in the order of Colly's
// calls for a request.
//
// A page waits for its host in OnRequest, where it holds nothing. It takes the time of its start in
// OnRequestHeaders, where it holds the slot of Colly's LimitRule. If pages waited only in
// OnRequestHeaders, the pages of a slow host would fill the slots that a fast host needs. If they
// waited only in OnRequest, they would pile up behind a busy slot and leave it together.
type hooks struct {
	*core
	collectorClient
	debugger atomic.Pointer[fanout.Listener[*Event]] // the listener for the collector's debugger; nil if it has none
	checked  atomic.Bool                             // selfCheck was called
	replaced atomic.Bool                             // the plugin is closed, and the collector has another one

	// The following fields are set by attach.
	callbacks    int                      // the number of OnRequest callbacks of c up to that of the plugin
	byCollector  bool                     // for some hosts, robots.txt is read under the collector's UserAgent
	enforcesTags bool                     // the option EnforceNofollow is set for some hosts
	repeats      bool                     // the option Retry is set for some hosts
	onWait       func()                   // tellDebugger, made once because each page has it
	returns      func(*gate.Request) bool // mustReturn of frontier, made once; nil without the option Frontier

	visits *arrivals.Storage // the collector's storage; nil without the options Frontier and EnforceNofollow

	recording    *frontierHooks   // nil without the option Frontier
	revalidating *revalidateHooks // nil without the option Revalidate
	lasts        sync.Once        // calls addLastCallbacks, with one of these options
}

// attach registers the hooks.
func (h *hooks) attach() {
	h.byCollector = slices.ContainsFunc(h.judge.Settings.All(), (*judge.HostSettings).ByCollector)
	h.repeats = h.judge.Settings.IsForAny((*judge.HostSettings).HasRetry)
	h.onWait = h.tellDebugger
	h.c.OnRequest(h.onRequest)
	if h.frontier != nil {
		h.returns = h.frontier.mustReturn
		h.handle.OnRequestFirst(h.recording.onArrival)
	}
	h.callbacks = h.handle.RequestCallbacks()
	h.handle.AfterOnRequest(h.callbacks, h.afterOnRequest)
	if h.frontier != nil && h.c.CheckHead {
		h.recording.prepare() // Visit sends HEAD before the storage is asked
	}
	h.c.OnRequestHeaders(h.onRequestHeaders)
	h.handle.OnErrorFirst(h.onErrorFirst)
	h.c.OnError(h.onError)
	h.handle.AddOwn(func() {
		if h.enforcesTags {
			h.handle.OnResponseFirst(h.readTags)
		}
		h.c.OnResponse(h.onResponse)
		h.c.OnScraped(h.onScraped)
	})
}

// onRequest is the first stage: the page is judged, and waits for its host.
func (h *hooks) onRequest(r *colly.Request) {
	defer h.tellDebugger()
	if h.retired() {
		return
	}
	h.guardCallbacks()
	isFollowed := h.failsEarly() && h.handle.IsFollowed()
	page, goOn := h.arrive(r)
	if !goOn {
		return
	}
	h.checkOnce(r)
	if h.closed.Load() {
		h.judge.Report.Warn("the plugin is closed, so all further requests of its collectors are denied: call Close after the crawl", "url", r.URL.Redacted())
	}
	q := h.newPage(r, page)
	if !h.admitOrRefuse(q, r, page) {
		return
	}
	if h.laterCallbacks() > 0 {
		page.Await() // a later callback may abort the page, which Colly does not report
	}
	if !isFollowed && h.mayFailEarly(q, r) {
		h.failEarly(q, r)
		return
	}
	q.Release()
}

// arrive returns the page that the hooks report the result of, which may be nil. goOn is false if
// the request needs no decision: it was aborted, or its URL has no robots.txt.
func (h *hooks) arrive(r *colly.Request) (page *fed.Page, goOn bool) {
	page = h.fed.Claim(r)
	if h.enforcesTags {
		h.decideVisit(r)
	}
	if h.frontier != nil {
		page, goOn = h.recording.record(r, page)
		if !goOn {
			return nil, false
		}
	}
	if r.IsAbort() {
		page.Aborted()
		return nil, false
	}
	return page, judge.HasRobots(r.URL)
}

// admitOrRefuse admits or refuses a page. goOn is false if the page is not sent now and needs no record for
// its next hook: it was given back to the urlstore.Store, it is fresh, or a loop of retries was ended.
func (h *hooks) admitOrRefuse(q *gate.Request, r *colly.Request, page *fed.Page) (goOn bool) {
	row := h.retries.Refused(r)
	if row.Exhausted() && row.Later {
		h.brake(q)
	}
	err := h.admit(q, r, gate.InOnRequest)
	switch {
	case err == nil:
		return true
	case err == gate.ErrReturned:
		h.recording.returnPage(q, r, page)
		return false
	case err == gate.ErrFresh:
		h.revalidating.skipFresh(q, r)
		return false
	}
	o := outcomeOf(err)
	if row.Exhausted() && row.Denial == o.denial() {
		if !o.temporary() {
			h.endRetries(q, r, err)
			return false
		}
		h.brake(q)
	}
	h.refuse(q, r, err)
	return true
}

// laterCallbacks returns the number of OnRequest callbacks that were registered after that of the
// plugin.
func (h *hooks) laterCallbacks() int {
	return h.handle.RequestCallbacks() - h.callbacks - h.recording.callbacks()
}

// newPage returns the record of a page.
func (h *hooks) newPage(r *colly.Request, page *fed.Page) *gate.Request {
	of := reporter.IDs{Collector: h.c.ID, Request: r.ID, Page: h.judge.Report.NewPage(h.c.Context)}
	p := gate.Page{IDs: of, Store: h.revalidating.recordsFor(r), OnWait: h.onWait}
	if page != nil {
		p.From = page.From
	}
	p.Repeated = h.repeats && h.retries.IsMarked(r, track.Sent)
	if page != nil && h.c.DetectCharset { // otherwise a hook follows the exchange
		p.OnEnd = page.AwaitHook
	}
	if page.IsRecorded() {
		p.Returns = h.returns
	}
	if h.c.CacheDir != "" {
		p.Cached = func() bool { return cached(h.c, r) }
	}
	return h.gate.NewRequest(r.URL, p)
}

// targetOf returns the target of a page.
func (h *hooks) targetOf(r *colly.Request) judge.Target {
	t := judge.TargetOf(r.URL, r.Host, *r.Headers)
	if h.enforcesTags {
		t.LinkedFrom = h.links.Origin(r)
	}
	return t
}

// admit judges a page, and waits for its host as the mode says.
func (h *hooks) admit(q *gate.Request, r *colly.Request, m gate.Mode) error {
	t := h.targetOf(r)
	q.Describe(t, h, *r.Headers)
	err := h.gate.Admit(h.c.Context, q, m)
	if h.judge.DryRun {
		h.tracked.Deny(r, q.Dry()) // until the page has a response
	}
	return err
}

// afterOnRequest is called after the last OnRequest callback, unless that is the one of the plugin.
// The callbacks before it may have changed or aborted the page.
func (h *hooks) afterOnRequest(r *colly.Request) {
	if r.IsAbort() || h.retired() {
		return
	}
	q := h.gate.Take(r.URL)
	switch {
	case q == nil:
	case h.mayFailEarly(q, r):
		h.failEarly(q, r)
	default:
		q.Release()
	}
}

// onRequestHeaders is the second stage, just before the page is sent. It holds a LimitRule slot.
func (h *hooks) onRequestHeaders(r *colly.Request) {
	defer h.tellDebugger()
	if r.IsAbort() || h.retired() {
		return // after an abort, OnError follows
	}
	h.Seam() // also for a file, whose transport a setter may just have replaced
	if !judge.HasRobots(r.URL) {
		return
	}
	page := h.fedPageOf(r)
	page.Hook()
	q := h.gate.Take(r.URL)
	if q == nil { // the record was dropped while the request waited for a LimitRule slot
		q = h.newPage(r, page)
	}
	q.Tick()
	if q.Uncached {
		allowCache(r)
	}
	h.prepare(q, r)
	err := h.admit(q, r, gate.InOnRequestHeaders)
	if err != nil {
		q.Refuse(err)
		if h.closed.Load() && !h.handle.Stay(h.controller) {
			r.Abort() // no transport of the plugin will see it
		}
	}
	q.Release()
}

// prepare tells q what is known only just before the page is sent.
func (h *hooks) prepare(q *gate.Request, r *colly.Request) {
	if h.repeats {
		h.retries.Mark(r, track.Sent)
	}
	early := h.handle.ResponseHeadersCallbacks() > 0
	name := (*string)(nil)
	if h.byCollector {
		current := h.c.UserAgent
		name = &current
	}
	also := (func())(nil)
	if h.c.Async && h.sitemaps.pending() {
		h.tracked.Watch(r)
		also = func() { h.expectHook(r) }
	}
	q.Prepare(early, name, also)
}

// onResponse is called before the user's callbacks, which may take long.
func (h *hooks) onResponse(r *colly.Response) {
	defer h.tellDebugger()
	wouldDeny := h.tracked.Hook(r.Request)
	h.fedPageOf(r.Request).Hook()
	if h.revalidating.isUnchanged(r) {
		hideFromXML(r.Request.URL)
	}
	if h.retired() {
		return
	}
	if wouldDeny != nil {
		h.deny(r.Request, wouldDeny)
	}
	if !h.enforcesTags && hasTagHeaders(r) {
		h.readTags(r)
	}
	q := h.gate.Take(r.Request.URL)
	h.countLate(r, q)
	if q != nil {
		q.Close()
	}
}

// onErrorFirst is called before the user's callbacks for a page that failed. It gives a page without
// a response an empty header, because Colly gives it none, and callbacks read headers such as
// Retry-After. It counts a page that was not sent, because an OnError callback that was registered
// before the plugin may retry it before onError is called.
func (h *hooks) onErrorFirst(r *colly.Response, err error) {
	if r.Headers == nil {
		r.Headers = &http.Header{}
	}
	if h.retired() {
		return
	}
	o := outcomeOf(err)
	if q := h.gate.Take(r.Request.URL); q != nil {
		if q.Refusal() != nil {
			o = outcomeOf(&refusedError{cause: q.Refusal()})
		}
		q.Release()
	}
	if o.refusal != nil {
		h.retries.Refuse(r.Request, o.denial())
	}
}

// onError is called for a page that failed, or that was refused.
func (h *hooks) onError(r *colly.Response, err error) {
	defer h.tellDebugger()
	wouldDeny := h.tracked.Hook(r.Request)
	if h.retired() {
		return
	}
	if wouldDeny != nil {
		h.deny(r.Request, wouldDeny)
	}
	q := h.gate.Take(r.Request.URL)
	if q != nil && q.Refusal() != nil {
		err = &refusedError{cause: q.Refusal()} // the request has not reached the controller
	}
	o := outcomeOf(err)
	if o.refusal != nil {
		h.deny(r.Request, o.refusal)
	} else {
		h.countLate(r, q)
	}
	if q != nil {
		q.Close()
	}
	h.finish(r.Request, r.StatusCode, o)
}

// onScraped is called when the user's callbacks for a page have ended.
func (h *hooks) onScraped(r *colly.Response) {
	defer h.tellDebugger()
	unchanged := h.revalidating.isUnchanged(r)
	if unchanged {
		undoHideFromXML(r.Request.URL)
	}
	if h.retired() {
		return
	}
	if unchanged {
		h.revalidating.tellUnchanged(r.Request, http.StatusNotModified)
	}
	h.finish(r.Request, r.StatusCode, outcome{})
}

// guardCallbacks is called first for each request. It registers the last callbacks, and makes Colly
// skip the callbacks of the user for unchanged pages.
func (h *hooks) guardCallbacks() {
	if h.revalidating == nil && h.recording == nil {
		return
	}
	h.lasts.Do(h.addLastCallbacks)
	if h.revalidating != nil {
		h.handle.GuardNew()
	}
}

// addLastCallbacks adds callbacks that run after those of the user, so that the pages which those
// visit are recorded before the page itself is done. All requests of the collector wait for it,
// because Colly reads its callbacks without a lock.
func (h *hooks) addLastCallbacks() {
	h.c.OnError(func(r *colly.Response, _ error) { h.endCallbacks(r.Request, h.fedPageOf(r.Request)) })
	h.handle.AddLast(h.onDone)
}

// onDone is the last callback of a page.
func (h *hooks) onDone(r *colly.Response) {
	page := h.fedPageOf(r.Request)
	keep := h.revalidating.keeper(r)
	if page.OutlivesHooks() {
		page.Keep = keep
	} else {
		keep()
	}
	h.endCallbacks(r.Request, page)
}

// endCallbacks is called after the last callback for the page of r. page may be nil.
func (h *hooks) endCallbacks(r *colly.Request, page *fed.Page) {
	if page.IsRecorded() && h.c.AllowURLRevisit {
		h.retries.Mark(r, track.Recorded) // again, because a redirect has changed the URL and the header map
	}
	page.Settle()
}

// finish is called in the last hook of a page. It reports the result of a page that a sitemap
// lists, and reads the sitemaps that are pending, because Collector.Wait waits for this hook. If
// the plugin was closed while requests were under way, the last of them releases the collector.
// status is 0 if there was no response.
func (h *hooks) finish(r *colly.Request, status int, o outcome) {
	h.reportResult(h.fedPageOf(r), status, o)
	h.readSitemaps()
	if h.closed.Load() && h.gate.Empty() {
		h.handle.Release(h.controller, h.gate.Empty)
	}
}

// reportResult reports the result of a page that a sitemap lists, or that is in a urlstore.Store. It does nothing
// if page is nil.
func (h *hooks) reportResult(page *fed.Page, status int, o outcome) {
	switch {
	case page == nil:
	case page.IsListed():
		page.End(o.ofPage(h.c.Context, status))
	case !isUnreadable(h.c, status, o.err):
		page.End(o.ofAttempt(h.c.Context, status))
	}
}

// readSitemaps reads the sitemaps that are pending.
func (h *hooks) readSitemaps() { h.sitemaps.run(h.c, h) }

// expectHook is called when an exchange of r has ended.
func (h *hooks) expectHook(r *colly.Request) {
	if h.sitemaps.pending() && !h.closed.Load() {
		h.tracked.Expect(r, h.handle.Hold, h.readSitemaps)
	}
}

// countLate counts a response that gate.Request.Answered has not counted. If q is not nil, the response
// is from the collector's cache. Otherwise it may be a redirect that was not followed, which
// gate.Request.Answered has not counted as a page.
func (h *hooks) countLate(r *colly.Response, q *gate.Request) {
	switch {
	case q != nil && r.StatusCode != 0:
		q.Host.Count(report.HostCounts{Pages: 1})
	case q == nil && exchange.IsRedirect(r.StatusCode):
		h.judge.Wire.Hosts.At(time.Now(), hostname.Of(r.Request.URL)).Count(report.HostCounts{Pages: 1})
	}
}

// tellDebugger sends the collector's debugger the events that it has not received. Each hook calls
// it, because Colly calls the debugger on the same goroutine.
func (h *hooks) tellDebugger() {
	if l := h.debugger.Load(); l != nil {
		l.Deliver()
	}
}

// retired reports whether the plugin is closed, and another plugin was attached to the collector
// since then. The hooks then do nothing.
func (h *hooks) retired() bool {
	if !h.closed.Load() {
		return false
	}
	if h.replaced.Load() {
		return true
	}
	owner := h.handle.Controller()
	if owner == nil || owner == h.controller {
		return false
	}
	h.replaced.Store(true)
	return true
}

// A controller is the gate.Controller of the collectors of a plugin.
type controller struct {
	gate.Controller
	core *core
}

// Redirected implements backend.Controller. Colly has marked the target of the redirect as visited.
func (ctl *controller) Redirected(req *http.Request, err error) {
	o := outcomeOf(err)
	if ctl.core.frontier != nil && !o.visited {
		ctl.core.frontier.visits.Drop(arrivals.HashOfURL(req.URL.String()))
	}
	if err == http.ErrUseLastResponse || !o.isFailure() {
		return // the program handles the redirect, or another page is its target
	}
	from := hostname.Of(req.Response.Request.URL)
	ctl.core.judge.Wire.Hosts.At(time.Now(), from).Count(report.HostCounts{Failed: 1})
	ctl.core.judge.Report.TellGivenUp(req.URL, err, true, gate.IDsOf(req.Response))
}

// A root implements gate.Root.
type root struct{ *core }

// Refused implements gate.Root.
func (c root) Refused(ctx context.Context, q *gate.Request, err error) error {
	o := outcomeOf(err)
	u := q.URL()
	failed := o.isFailure() && !o.isEnd(ctx)
	if failed {
		c.judge.Wire.Hosts.At(time.Now(), hostname.Of(u)).Count(report.HostCounts{Failed: 1})
	}
	switch {
	case o.denied != nil: // the gate has counted it
	case o.forbidden, o.late:
		c.judge.Report.TellUnsent(u, err, failed, q.IDs)
	case o.foreign: // another process requests it
	default:
		c.judge.Report.TellGivenUp(u, err, failed, q.IDs)
		if q.Host != nil && o.isEnd(ctx) {
			reporter.MarkEnded(q.Host, o.Closed)
			c.unsent.Add(o.Closed)
		}
	}
	return &refusedError{cause: public(err), url: u.Redacted()}
}

// IsFailure implements gate.Root.
func (root) IsFailure(err error) bool {
	o := outcomeOf(err)
	return o.isFailure()
}

// WouldDeny implements gate.Root.
func (c root) WouldDeny(u *url.URL, err error) { c.onDenied.notSent(c.judge.Report, u, err, true) }

// Unseen implements gate.Root.
func (c root) Unseen(req *http.Request) { c.frontier.drop(req) }
