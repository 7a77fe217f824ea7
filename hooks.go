package collyrobots

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// hooks are one collector's, in the order in which a request meets them.
//
// A page waits for its host in OnRequest, where nothing is held, and takes its turn in
// OnRequestHeaders, with Colly's LimitRule slot in hand: the moment that counts. Waiting only in
// the second would let a slow host's pages fill the slots that a fast host needs; waiting only in
// the first would let pages gather behind a busy slot and leave it together.
type hooks struct {
	*core
	governor backend.Governor
	c        *colly.Collector
	handle   *backend.Handle
	inPlace  atomic.Pointer[backend.Seam]           // as it was found last
	attached int                                    // OnRequest callbacks of c when it was attached, ours included
	debugger atomic.Pointer[fanout.Listener[Event]] // the events for its debugger; nil if it has none
	byName   bool                                   // the collector's UserAgent counts, for some hosts
	checked  atomic.Bool                            // selfCheck was called
	replaced atomic.Bool                            // by those of another plugin
	heads    heads
	dry      dryDenials
	overdue  overdue
}

// attach registers the hooks.
func (h *hooks) attach() {
	h.byName = slices.ContainsFunc(h.settings.all(), (*hostSettings).byCollector)
	h.overdue.hold, h.overdue.read = h.handle.Hold, h.readSitemaps
	h.c.OnRequest(h.onRequest)
	h.attached = h.handle.RequestCallbacks()
	h.c.OnRequestHeaders(h.onRequestHeaders)
	h.c.OnResponse(h.onResponse)
	h.c.OnError(h.onError)
	h.c.OnScraped(h.onScraped)
}

// seam returns the seam of the collector, put in place if need be. It implements fetcher.
func (h *hooks) seam() *backend.Seam {
	before := h.inPlace.Load()
	s := h.handle.Watch(before, h.governor)
	if s != before && h.inPlace.Swap(s) != s && h.handle.Moved() {
		h.report.warn("Collector.Init was called after Attach and has undone the collector's settings: call it before, or attach the collector once more after it")
	}
	return s
}

// tellDebugger tells the collector's debugger of the events that it has not heard of. Each hook does
// so, on the goroutine on which Colly calls the debugger.
func (h *hooks) tellDebugger() {
	if events := h.debugger.Load(); events != nil {
		events.Deliver()
	}
}

// retired reports whether the plugin is closed and the collector has another one since.
func (h *hooks) retired() bool {
	if !h.closed.Load() || h.replaced.Load() {
		return h.replaced.Load()
	}
	if owner := h.handle.Owner(); owner != nil && owner != h.governor {
		h.replaced.Store(true)
	}
	return h.replaced.Load()
}

// fetch implements fetcher.
func (h *hooks) fetch(userAgent string, from origin, page http.Header) policy.Fetch {
	how := h.limiter.fetch(h.seam(), userAgent, lead{kind: RequestRobots, origin: from, user: h}, page)
	how.Way.Caller = h.c.ID // whose context may differ from those of others that share its client
	return how
}

// from implements fetcher: the program makes the request.
func (h *hooks) from() origin { return origin{} }

// forbids implements fetcher.
func (h *hooks) forbids(u *url.URL) bool { return forbidden(h.c.DisallowedDomains, u) }

// collector implements fetcher.
func (h *hooks) collector() *string { return &h.c.UserAgent }

// onRequest is the first stage. Nothing is held yet, so this is where a page waits.
func (h *hooks) onRequest(r *colly.Request) {
	defer h.tellDebugger()
	if h.retired() {
		return
	}
	page := h.fed.claim(r, h.c.DetectCharset)
	if r.IsAbort() {
		page.end(feed.Skipped)
		return
	}
	if !hasRobots(r.URL) {
		return
	}
	h.checkOnce(userAgentOf(*r.Headers))
	if h.closed.Load() {
		h.report.warn("the plugin is closed, so all further requests of its collectors are denied: call Close after the crawl", "url", r.URL.Redacted())
	}
	now := time.Now()
	q := h.requests.open(r.URL, now)
	q.fed = page
	q.trace.collector, q.trace.request = h.c.ID, r.ID
	if h.denials.isLoop(r) {
		now = h.brake()
	}
	now, err := h.admit(q, r, now)
	if err != nil {
		if h.denials.inVain(r, err) {
			if !isTemporary(err) {
				h.endRetries(q, r, err)
				return
			}
			now = h.brake()
			h.denials.braked(r, err)
		}
		q.refuse(err)
		if isSilence(err) {
			q.asked = r.Headers.Clone()
		}
		q.uncached = !isSilence(err) && h.keepFromCache(r)
	}
	if page != nil && h.handle.RequestCallbacks() > h.attached {
		page.await() // they may abort it, of which Colly tells nobody; else it may wait for a LimitRule
	}
	q.letGo(now)
}

// admit judges a page and waits for its turn. If robots.txt has changed meanwhile, the page is
// judged by what it says now. It returns the time when it is done.
func (h *hooks) admit(q *request, r *colly.Request, now time.Time) (time.Time, error) {
	ctx, userAgent := h.c.Context, userAgentOf(*r.Headers)
	v, err := h.decideAs(ctx, now, r.URL, hostHeaderOf(r.Host, r.URL, *r.Headers), userAgent, h.fetcherOf(q, r))
	if err != nil {
		return now, err
	}
	if v.policy.Fetched().After(now) {
		now = time.Now() // it has waited for that
	}
	q.set(v)
	h.sitemaps.offer(v.policy)
	h.shadows.compare(ctx, v, r.URL, userAgent, &q.fetcher)
	if err := h.refuse(v, r.URL, &q.trace, func(err error) { h.dry.put(r, err) }); err != nil {
		return now, err
	}
	if cached(h.c, r) || v.host.MayEnter(&q.ticket) { // what does not go on the wire does not wait
		return now, nil
	}
	h.limiter.sayWhy(now, v.host, v.policy)
	h.tellWaiting(now, q)
	return h.enter(q, r)
}

// enter waits for the page's turn. If robots.txt was read again meanwhile, or has to be, the page is
// judged again; to read the file takes a turn, so the page then waits for the next one. It returns
// the time when it is done.
func (h *hooks) enter(q *request, r *colly.Request) (time.Time, error) {
	ctx := h.c.Context
	for {
		err := q.host.Enter(ctx, &q.ticket)
		now := time.Now()
		if err != nil {
			return now, err
		}
		newest := q.newest(ctx, now)
		if newest == q.policy {
			return now, nil
		}
		err = h.judgeAgain(q, r, now)
		if err != nil || newest != nil {
			return now, err
		}
	}
}

// isTemporary reports whether a page that is denied with err may be allowed soon.
func isTemporary(err error) bool {
	denied := (*DisallowedError)(nil)
	if errors.As(err, &denied) {
		return denied.Decision.unread()
	}
	unpaced := (*PaceError)(nil)
	return errors.As(err, &unpaced)
}

// endRetries aborts a page that OnDenied or OnError retries again and again though it is denied.
// Otherwise such a loop would never end, and would use up the stack of a synchronous collector.
func (h *hooks) endRetries(q *request, r *colly.Request, err error) {
	q.close()
	r.Abort()
	h.warnRetries(r, err)
	h.finish(r, resultOf(h.c.Context, 0, err)) // Colly calls no other hook for an aborted request
}

// brake makes a page wait that is retried again and again although it is denied, for a reason that
// may pass. Nothing else slows such a loop down. It returns the time when the wait is over.
func (h *hooks) brake() time.Time {
	ctx, release := h.policies.until(h.c.Context)
	defer release()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return time.Now()
}

// tellWaiting tells listeners of a page that is about to wait in earnest.
func (h *hooks) tellWaiting(now time.Time, q *request) {
	events := h.report.events
	if !events.Active() || h.dryRun {
		return
	}
	s := q.host.Stats(now)
	if max(s.NextStart.Sub(now), 0)+time.Duration(s.Waiting)*s.Delay < noticeable {
		return
	}
	events.Send(Event{
		Kind: EventWaiting, Time: now, Host: s.Host, URL: q.url.Redacted(), Collector: q.trace.collector, Request: q.trace.request,
		Delay: s.Delay, Source: DelaySource(s.Cause), Line: s.Line, Count: s.Waiting + 1, Until: s.NextStart,
	})
	h.tellDebugger() // now, and not after the wait
}

// noticeable is for how long a page has to wait to be told of.
const noticeable = 100 * time.Millisecond

// fetcherOf returns what fetches robots.txt for a page, until q is let go.
func (h *hooks) fetcherOf(q *request, r *colly.Request) fetcher {
	q.fetcher = pageFetcher{fetcher: h, page: *r.Headers, changed: q.asked != nil}
	if q.fed != nil {
		q.fetcher.host = q.fed.from
	}
	return &q.fetcher
}

// judgeAgain judges a page by what is known now: it has waited, or a callback has changed it.
func (h *hooks) judgeAgain(q *request, r *colly.Request, now time.Time) error {
	v, err := h.decideAs(h.c.Context, now, r.URL, hostHeaderOf(r.Host, r.URL, *r.Headers), userAgentOf(*r.Headers), h.fetcherOf(q, r))
	if err != nil {
		return err
	}
	if q.host != v.host {
		q.ticket.End()
	}
	if v.reason == ReasonUnreachable || v.reason == ReasonSiteDown {
		// The next page tries to read robots.txt again when its turn comes.
		v.host.Skip(time.Now(), &q.ticket)
	}
	q.set(v)
	q.refusal = nil
	return h.refuse(v, r.URL, &q.trace, func(error) {})
}

// onRequestHeaders is the second stage: the last moment before the wire, with a LimitRule slot in
// hand.
func (h *hooks) onRequestHeaders(r *colly.Request) {
	defer h.tellDebugger()
	if r.IsAbort() || !hasRobots(r.URL) || h.retired() {
		return // aborted: OnError follows
	}
	page := h.fed.of(r)
	page.keep()
	h.seam()
	now := time.Now()
	q := h.requests.take(r.URL)
	if q == nil { // it lay for so long, behind a LimitRule, that it was given up
		q = h.requests.open(r.URL, now)
		q.fed = page
		q.trace.collector, q.trace.request = h.c.ID, r.ID
	}
	if q.uncached {
		allowCache(r)
	}
	q.early = h.handle.ResponseHeadersCallbacks() > 0
	if h.byName {
		name := h.c.UserAgent
		q.name = &name
	}
	if h.c.Async && h.sitemaps.pending() {
		h.overdue.watch(r)
		q.after = func() { h.expectHook(r) }
	}
	now, err := h.start(q, r, now)
	if err != nil {
		q.refuse(err)
		if h.closed.Load() && !h.handle.Stay(h.governor) {
			r.Abort() // no transport of the plugin's will see it
		}
	}
	q.letGo(now)
}

// start takes the page's turn. It returns the time when it is done.
func (h *hooks) start(q *request, r *colly.Request, now time.Time) (time.Time, error) {
	if q.unchanged() && q.refusal != nil && (q.asked == nil || q.askedAs(*r.Headers)) {
		return now, q.refusal
	}
	if q.refusal != nil || !q.unchanged() || q.userAgent != userAgentOf(*r.Headers) || q.newest(h.c.Context, now) != q.policy {
		if err := h.judgeAgain(q, r, now); err != nil {
			return now, err
		}
		now = time.Now()
	}
	return q.takeTurn(h.c.Context, now, false, func() error { return h.judgeAgain(q, r, time.Now()) })
}

// onResponse is called before the callbacks that may take their time, in which a request that lay
// here would be given up.
func (h *hooks) onResponse(r *colly.Response) {
	defer h.tellDebugger()
	h.overdue.heard(r.Request)
	h.fed.of(r.Request).keep()
	if h.retired() {
		return
	}
	if err := h.dry.take(r.Request); err != nil {
		h.deny(r.Request, err)
	}
	q := h.requests.take(r.Request.URL)
	h.countLate(r, q)
	if q != nil {
		q.close()
	}
}

func (h *hooks) onError(r *colly.Response, err error) {
	defer h.tellDebugger()
	h.overdue.heard(r.Request)
	if h.retired() {
		return
	}
	if err := h.dry.take(r.Request); err != nil {
		h.deny(r.Request, err)
	}
	q := h.requests.take(r.Request.URL)
	if q != nil && q.refusal != nil {
		err = &refusedError{cause: q.refusal} // the transport has not seen the request
	}
	if why := whyUnsent(err); why != nil {
		h.deny(r.Request, why)
	} else {
		h.countLate(r, q)
	}
	if q != nil {
		q.close()
	}
	h.finish(r.Request, resultOf(h.c.Context, r.StatusCode, err))
}

func (h *hooks) onScraped(r *colly.Response) {
	defer h.tellDebugger()
	if h.retired() {
		return
	}
	h.finish(r.Request, resultOf(h.c.Context, r.StatusCode, nil))
}

// countLate counts a response that the transport has not counted: one from the collector's cache,
// with the request q that never got there, or a redirect that was not followed, without.
func (h *hooks) countLate(r *colly.Response, q *request) {
	switch {
	case q != nil && r.StatusCode != 0:
		q.host.Count(1, 0)
	case q == nil && isRedirect(r.StatusCode):
		h.limiter.hosts.At(time.Now(), hostOf(r.Request.URL)).Count(1, 0)
	}
}

// deny logs a page that is not sent, or would not be without a dry run, and calls OnDenied.
func (h *hooks) deny(r *colly.Request, err error) {
	h.report.notSent(r.URL, err, h.dryRun)
	if h.c.CheckHead && (h.c.Async || h.dryRun) && h.heads.told(r) {
		return
	}
	if h.denials.count(r, err, isAfterPage(err)) > maxDenials {
		h.warnRetries(r, err)
		return
	}
	h.report.onDenied(r, err)
}

// isAfterPage reports whether a request was denied with err after its page was allowed: because of
// the target of a redirect, or of an address.
func isAfterPage(err error) bool {
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		return denied.redirect
	}
	return isForbidden(err) || errors.Is(err, ErrRedirectWait)
}

// warnRetries says once that retries of a denied page are in vain.
func (h *hooks) warnRetries(r *colly.Request, err error) {
	h.report.warn("OnDenied or OnError calls Retry again and again: a request is denied until its robots.txt has been read again, so OnDenied is not called for it any more",
		"url", r.URL.Redacted(), "count", maxDenials, "error", err)
}

// heads are the pages of which OnDenied was told once, as a HEAD or as a GET request, where
// Collector.CheckHead makes both of one Visit. By URL, the method of the one.
type heads struct {
	mu   sync.Mutex
	urls map[string]string
}

// maxHeads bounds heads: a program that calls Head itself has no GET that goes with it.
const maxHeads = 1000

// told reports whether OnDenied was told of r's page by the other request of one Visit.
func (h *heads) told(r *colly.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	url := r.URL.String()
	if before := h.urls[url]; before != "" && before != r.Method {
		delete(h.urls, url)
		return true
	}
	if h.urls == nil || len(h.urls) >= maxHeads {
		h.urls = make(map[string]string)
	}
	h.urls[url] = r.Method
	return false
}

// finish ends a page that was fed, and reads sitemaps here, so that Collector.Wait covers it.
func (h *hooks) finish(r *colly.Request, result feed.Result) {
	h.fed.of(r).end(result)
	h.readSitemaps()
	if h.closed.Load() && h.requests.empty() {
		h.handle.Release(h.governor, h.requests.empty) // Close has found requests under way, and left that to the last
	}
}

// readSitemaps reads the sitemaps that are pending.
func (h *hooks) readSitemaps() { h.sitemaps.run(h.c, h) }

// expectHook is called when an exchange of r has ended.
func (h *hooks) expectHook(r *colly.Request) {
	if h.sitemaps.pending() && !h.closed.Load() {
		h.overdue.expect(r)
	} else {
		h.overdue.heard(r)
	}
}

// checkOnce calls selfCheck the first time. No request waits for another one that is in it, because
// selfCheck logs.
func (h *hooks) checkOnce(userAgent string) {
	if !h.checked.Load() && h.checked.CompareAndSwap(false, true) {
		h.selfCheck(userAgent)
	}
}

// selfCheck warns, at a collector's first request, of what is not set up as its user wants. The
// request has this user agent.
func (h *hooks) selfCheck(userAgent string) {
	if h.bubbled != inBubble() {
		panic(errBubble) // the request would wait forever, without a word
	}
	if h.debugger.Load() == nil {
		h.debugger.Store(h.debuggers.add(h.handle, h.report)) // it was set after Attach
	}
	if !h.c.IgnoreRobotsTxt {
		h.report.warn("Colly's built-in robots.txt check was turned on after Attach: it denies and fails what the dialect allows; leave IgnoreRobotsTxt true")
	}
	if n := h.handle.RequestCallbacks(); n > h.attached {
		h.report.warn("OnRequest callbacks were registered after Attach: a request that they abort costs its host one delay, one that they change is judged twice", "count", n-h.attached)
	}
	for _, s := range h.settings.all() {
		h.checkTokens(s, userAgent)
	}
}

// checkTokens warns of a name of the crawler that no User-agent line can match.
func (h *hooks) checkTokens(s *hostSettings, userAgent string) {
	for _, token := range s.productTokens(s.dialect, userAgent) {
		if token == "" {
			continue // a user agent that names no crawler has a warning of its own
		}
		if err := s.dialect.CheckToken(token); err != nil {
			h.report.warn("no User-agent line can match the crawler's name, so only the groups for * of each robots.txt apply: set ProductToken to another name", "error", err)
		}
	}
}

// keepFromCache makes Colly pass a denied page to the transport, though it may be in CacheDir. It
// reports whether it has changed the headers for that.
func (h *hooks) keepFromCache(r *colly.Request) bool {
	if h.c.CacheDir == "" {
		return false
	}
	values := (*r.Headers)["Cache-Control"]
	(*r.Headers)["Cache-Control"] = append([]string{"no-cache"}, values...)
	return true
}

// allowCache undoes what keepFromCache did, since a retry of the page has the same headers.
func allowCache(r *colly.Request) {
	values := (*r.Headers)["Cache-Control"]
	switch {
	case len(values) == 0 || values[0] != "no-cache": // a later callback has changed it
	case len(values) == 1:
		delete(*r.Headers, "Cache-Control")
	default:
		(*r.Headers)["Cache-Control"] = values[1:]
	}
}

// cached reports whether a page will come from the collector's CacheDir, where Colly v2 keeps it
// under the SHA-1 of its URL. It may still be asked for, if what is kept is a server's error.
func cached(c *colly.Collector, r *colly.Request) bool {
	if c.CacheDir == "" || r.Method != http.MethodGet || r.Headers.Get("Cache-Control") == "no-cache" {
		return false
	}
	sum := sha1.Sum([]byte(r.URL.String()))
	name := hex.EncodeToString(sum[:])
	info, err := os.Stat(filepath.Join(c.CacheDir, name[:2], name))
	return err == nil && (c.CacheExpiration <= 0 || time.Since(info.ModTime()) <= c.CacheExpiration)
}
