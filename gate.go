package collyrobots

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/revalidate"
	"github.com/collyrobots/collyrobots/report"
)

// A gate admits the requests of collectors and clients. There are three steps:
//
//   - check decides whether the request may be sent.
//   - enter waits for the host, in OnRequest, where the request holds nothing.
//   - start waits until the request may start, just before it is sent.
//
// Each step that waits checks the request again if its robots.txt has changed in the meantime.
// Otherwise a request is decided about once. If its robots.txt is known, OnRequest does not allocate.
//
// The hooks call all three, and so do requests of clients. The controller calls only check and start
// for a request that no hook has seen, because that holds a LimitRule slot while it waits.
//
// The caller sets the fields target, client, header and now of the request before each step.
type gate struct {
	*judge.Judge
	sitemaps   *sitemaps // nil if they are not followed
	responders []responder
	refusals   *refusals
	pageLimit  *pageLimit
}

// newGate returns the gate of a new plugin, with its rules, limits and responders.
func newGate(j *judge.Judge) *gate {
	g := &gate{
		Judge:     j,
		refusals:  &refusals{report: j.Report},
		pageLimit: &pageLimit{sent: budget.New()},
	}
	g.addFeatures()
	return g
}

// redirectPatience returns how long a redirect of a collector may wait for a host with this delay.
// The limit is there because the redirect holds a slot of a LimitRule while it waits. The host may
// have to get a request for robots.txt first.
func redirectPatience(delay time.Duration) time.Duration {
	return time.Minute + 2*min(delay, math.MaxInt64/4)
}

// check decides whether q may be sent, by the robots.txt in force now, which it fetches if
// necessary. It returns nil if q may be sent. Otherwise the error says why not: a *DisallowedError,
// a *report.PrivateNetworkError, ErrRedirectWait, or an error of verdict. In a dry run it returns nil
// instead of the *DisallowedError, which is then in q.dry.
func (g *gate) check(ctx context.Context, q *request) error {
	if err := g.protect(q); err != nil {
		return err
	}
	again := q.isJudged() && q.hasSameURL()
	f := q.fetcher()
	followed := q.target.LinkedFrom == "" || g.DryRun
	f.ReadsTDM = !again && followed && !q.carried // if q was judged before, it may have its turn, and the file would take that turn
	v, err := g.Verdict(ctx, q.now, q.target, f, q)
	if err != nil {
		q.IDs.Robots += time.Since(q.now)
		return err
	}
	q.IDs.Robots += v.At.Sub(q.now) // more than 0 if a file was fetched
	q.now = v.At
	if err := robotsAtPrivateAddress(v.Policy, q.Guard); err != nil {
		return err
	}
	q.set(&v)
	if (v.Reason == report.ReasonUnreachable || v.Reason == report.ReasonSiteDown) && !v.Policy.Refused() {
		v.Host.Skip(q.now, &q.Ticket) // the next page reads robots.txt again, when its turn comes
	}
	if q.entry != nil && v.Reason != report.ReasonNofollow { // otherwise no collector could visit the pages, or the file was not read
		g.sitemaps.offer(v.Policy)
	}
	dry, err := enforce(g.Judge, &q.verdict, q.target.URL, q.IDs)
	if q.dry == nil || !again { // without a dry run, the first denial of a URL would be final
		q.dry = dry
	}
	if err != nil {
		return q.denied(err)
	}
	if q.redirect && q.entry != nil {
		now := time.Now()
		if q.Host.BusyFor(now, redirectPatience(q.Host.Delay(now))) {
			return ErrRedirectWait
		}
	}
	return nil
}

// protect returns an error if q must not be sent because of the site that led to it. Some addresses
// are known only when there is a connection, so protect also sets the guard of q, which is applied
// then.
func (g *gate) protect(q *request) error {
	if q.from == "" && !g.Wire.Networks.DeniesAll() || q.isJudged() && q.hasSameURL() {
		return nil
	}
	guard, err := g.Wire.Guard(q.from, hostname.Of(q.target.URL), q.target.URL)
	q.Guard = guard
	return err
}

// robotsAtPrivateAddress returns an error if a robots.txt was not fetched because it is at a
// private address, and a request with this guard must not go there.
func robotsAtPrivateAddress(pol *policy.Policy, guard *report.PrivateNetworkError) error {
	if guard == nil || !pol.Forbidden() {
		return nil
	}
	private := (*report.PrivateNetworkError)(nil)
	if !errors.As(pol.Err(), &private) {
		return nil
	}
	err := *guard
	err.Address = private.Address
	return &err
}

// enter waits until it is the turn of q with its host. While q waits it holds nothing. If
// robots.txt has expired by then, enter reads it again, which takes the turn. q stays at the front,
// and waits for the next turn.
//
// If enter sends an report.EventWaiting, it calls told before the wait. told may be nil.
func (g *gate) enter(ctx context.Context, q *request, told func()) error {
	if q.Host.MayEnter(&q.Ticket) {
		return nil
	}
	g.Wire.Join(ctx, q.Host, q.transport(), q.target.URL)
	g.endWaitIfDenied(q)
	g.Delays.LogLongWait(q.now, q.Host, q.verdict.Policy)
	if g.Report.TellWaiting(q.now, q.Host, q.target.URL, q.IDs) && told != nil {
		told()
	}
	wait := func() error { return g.awaitTurn(ctx, q) }
	return exchange.Await(wait, func() exchange.Standing { return q.standing(ctx) }, func() error { return g.check(ctx, q) })
}

// awaitTurn waits until it is the turn of q. If a limit of the host ends the wait and q may still be
// sent, because another page has given its place in the budget back, q waits again.
func (g *gate) awaitTurn(ctx context.Context, q *request) error {
	for {
		err := q.Host.Enter(ctx, &q.Ticket)
		q.now = time.Now()
		if err != errDenied {
			return err
		}
		err = g.check(ctx, q)
		if err != nil {
			return err
		}
	}
}

// start waits until q may start, and takes the time of the start. If robots.txt has expired by
// then, q first gives its turn back, because the file takes that turn. If direct is true, q goes on
// the wire as soon as it has started. Otherwise the controller calls charge when q goes on the wire,
// because a later callback may abort q. In a dry run, the hooks need the result earlier.
func (g *gate) start(ctx context.Context, q *request, direct bool) error {
	err := g.startAllowed(ctx, q, direct)
	if err != nil || !direct && !g.DryRun {
		return err
	}
	err = g.charge(q)
	if err != nil {
		q.GiveBack()
	}
	return err
}

// startAllowed is start without the limits of StopRefused and MaxPages.
func (g *gate) startAllowed(ctx context.Context, q *request, direct bool) error {
	wait := func() error { return q.wait(ctx, direct) }
	look := func() exchange.Standing {
		s := q.standing(ctx)
		if s != exchange.Unread {
			return s
		}
		if q.verdict.Policy.MayServe(q.now) {
			return exchange.Same
		}
		q.GiveBack()
		return exchange.Unread
	}
	check := func() error {
		err := g.check(ctx, q)
		q.now = time.Now()
		return err
	}
	return exchange.Await(wait, look, check)
}

// A request is the record of one exchange of a collector or a client: its target, the verdict on
// it, and its place with its host. The record exists from the moment when a hook or the controller
// first sees the request until the exchange is over. It implements backend.Trip.
//
// Colly's hooks and the controller find it by the URL of the request, in a handoff.Table. Only the
// goroutine that holds it may use it.
type request struct {
	exchange.Exchange
	page
	entry *handoff.Entry[request] // nil if the request is that of a client
	gate  *gate

	ctx      context.Context // of the request on the wire; nil before that, and for a Turn
	target   judge.Target
	redirect bool            // it follows a redirect
	carried  bool            // it is sent in the turn of its carrier
	from     string          // the host that led to it; "" if the program has requested it
	client   exchange.Client // fetches robots.txt for it; nil on the wire and while the record is idle
	seam     *backend.Seam   // sends it, and fetches robots.txt if client is nil; nil before the wire
	header   http.Header     // the headers of the request, as of the current step
	now      time.Time       // the clock of the current step; set when the step begins and after each wait

	verdict    judge.Verdict // zero before the first check
	judged     url.URL       // the URL of the verdict or the refusal; a callback may change *target.url later
	dry        error         // in a dry run, the first reason to deny the URL; nil if there is none
	refusal    error         // why it must not be sent; nil if it may be sent
	unanswered http.Header   // the headers of the page when robots.txt got no response; nil if it got one
	uncached   bool          // its headers keep Colly from serving it from CacheDir
	reread     bool          // robots.txt was read when its turn came, so that is not done again
	known      knownPage     // what an earlier visit has left in the Store
}

// A page is what all exchanges of one colly.Request share: the request and the redirects that
// follow it.
type page struct {
	reporter.IDs
	early bool                  // each place is given back when the headers are there: callbacks may visit the host
	name  *string               // the collector's UserAgent; nil if it does not count or is not known
	fed   *fedPage              // nil if no sitemap lists it
	store *revalidate.Collector // of the collector; nil if the page is not requested conditionally
	after func()                // is called when the last exchange has ended; may be nil
	marks judge.Marks           // of the limits and the responders
}

// newRequest returns the record of a request with this URL, held by the caller.
func (c *core) newRequest(u *url.URL, p page) *request {
	now := time.Now()
	e := c.requests.Open(u, now)
	q := &e.Record
	q.entry = e
	q.gate = c.gate
	q.Wire = c.wire
	q.target.URL = u
	q.page = p
	q.setClock(now)
	return q
}

// setClock sets the clock of a new request.
func (q *request) setClock(now time.Time) {
	q.now = now
	q.IDs.Since = now
	q.IDs.Robots = 0
}

// takeRequest returns the idle record of a request with this URL, held by the caller from now on,
// or nil if there is none.
func (c *core) takeRequest(u *url.URL) *request {
	e := c.requests.Take(u)
	if e == nil {
		return nil
	}
	return &e.Record
}

// release leaves q to the next hook, or to the controller.
func (q *request) release() {
	q.client = nil // it would keep the collector alive
	q.entry.Release(q.now)
}

// fetcher returns how to fetch robots.txt for q.
func (q *request) fetcher() exchange.Fetcher {
	f := exchange.Fetcher{Wire: q.Wire, From: exchange.GuardedBy(q.Guard, ""), Page: q.IDs.Page, Header: q.header}
	if q.client == nil {
		f.Client = exchange.SeamClient{Through: q.seam, Name: q.name}
		return f
	}
	f.Client = q.client
	f.Changed = q.unanswered != nil
	return f
}

// close gives the place of q back to its host, and ends the record. The caller must not use q
// afterwards.
func (q *request) close() {
	q.abandon()
	if q.entry != nil {
		q.entry.Close()
	}
}

// abandon gives the place of q back to its host. If q was never sent, it also undoes charge.
func (q *request) abandon() {
	q.refund()
	q.GiveBack()
}

// set records a verdict. It writes q.host only if the host has changed, because a request is also
// judged before it is sent again, and a transport may then read q.host at the same time.
func (q *request) set(v *judge.Verdict) {
	if q.Host != v.Host {
		q.Ticket.End()
		q.Host = v.Host
	}
	q.verdict = *v
	q.judged = *q.target.URL
	q.refusal = nil
	v.ObeyedBy(&q.Ticket)
}

// isJudged reports whether there is a verdict on q.
func (q *request) isJudged() bool { return q.verdict.Policy != nil }

// hasSameURL reports whether the URL of q is still the one that was judged.
func (q *request) hasSameURL() bool { return *q.target.URL == q.judged }

// denied returns the error of a request that robots.txt denies.
func (q *request) denied(err error) error {
	if o := outcomeOf(err); o.denied != nil {
		o.denied.redirect = q.redirect
	}
	return err
}

// refuse makes q fail with err, unless a later callback changes the URL. The page then fails like one
// that cannot be fetched: OnError is called, and a Visit of a synchronous collector returns the
// error. In an Async collector, hooks.failEarly makes it fail; otherwise the controller does. No hook
// can do this: Colly does not treat an abort in OnRequest as a failure, and reports an abort in
// OnRequestHeaders with an error of its own.
func (q *request) refuse(err error) {
	q.Ticket.End()
	q.refusal = err
	q.judged = *q.target.URL
}

// stillRefused reports whether the refusal of q holds for a page with this header. A callback may
// have changed the URL. If robots.txt got no response, the callback may also have changed the
// header, which may name a proxy. Then robots.txt is requested once more.
func (q *request) stillRefused(header http.Header) bool {
	if q.refusal == nil || !q.hasSameURL() {
		return false
	}
	return q.unanswered == nil || maps.EqualFunc(q.unanswered, header, slices.Equal[[]string])
}

// newest returns the policy that decides about q now: the one that q was judged by, a newer one, or
// nil if robots.txt has to be read first. It returns nil at most once for each attempt to send q.
// Reading the file takes a turn, and with a long delay the file may have expired again by the next
// turn, which is that of q.
func (q *request) newest(ctx context.Context) *policy.Policy {
	v := &q.verdict
	if v.Settings.IgnoreRobots || v.Policy.Fresh(q.now) {
		return v.Policy
	}
	known := v.Reader.Known(ctx, q.now, v.Policy.Authority, q.Host)
	if known == nil && q.reread {
		return v.Policy
	}
	q.reread = known == nil
	return known
}

// standing compares the policy that q was judged by with the one that decides now.
func (q *request) standing(ctx context.Context) exchange.Standing {
	switch q.newest(ctx) {
	case q.verdict.Policy:
		return exchange.Same
	case nil:
		return exchange.Unread
	}
	return exchange.Changed
}

// transport returns the transport that will send q, or nil if it is not known.
func (q *request) transport() http.RoundTripper {
	seam := q.seam
	if seam == nil && q.client != nil {
		seam = q.client.Seam()
	}
	if seam == nil {
		return nil
	}
	return seam.Transport()
}

// wait waits until q may start, as pace.Host.Start does.
func (q *request) wait(ctx context.Context, direct bool) error {
	if q.Host.Rules().Shares {
		q.Wire.Join(ctx, q.Host, q.transport(), q.target.URL)
	}
	if ctx.Err() == nil {
		if _, ok := q.Host.StartNow(q.now, &q.Ticket, direct); ok {
			return nil
		}
	}
	err := q.Host.Start(ctx, &q.Ticket, direct)
	q.now = time.Now()
	return err
}

// Answered implements backend.Trip. A redirect gives its place back here and not when its body is
// closed, because the user's redirect handler may visit the same host before that.
func (q *request) Answered(resp *http.Response) (again bool, log func()) {
	if q.verdict.Policy.Failing() {
		q.verdict.Policy.SiteAnswered()
	}
	redirect := exchange.IsRedirect(resp.StatusCode)
	pages := 1
	if redirect { // or a 304, which is counted when the collector gets it
		pages = 0
	}
	log = q.RecordResponse(resp, pages)
	for _, r := range q.gate.responders {
		again, also := r.answered(q, resp)
		log = exchange.Both(log, also)
		if again {
			return true, log
		}
	}
	if q.isUnchanged(resp) {
		log = exchange.Both(log, q.confirm(resp))
		if q.early {
			q.Ticket.End()
		}
		return false, log
	}
	if exchange.Throttled(resp) {
		q.Host.Count(1, 0) // the spider gets the response, so it counts as a page
	}
	if !redirect && q.verdict.Settings.Purpose != 0 {
		q.gate.RecordUse(q.verdict, resp)
	}
	if redirect || q.early {
		q.Ticket.End()
	}
	if redirect && q.seam != nil { // the program sends the redirect of a Turn, which is another page
		q.handOn(resp)
	}
	return false, log
}

// pageKey is the key of the *page that a redirect hands on, in the context of its request.
type pageKey struct{}

// handOn passes the page of q on to the request that will follow a redirect. net/http sets the
// Response of that request to this response, whose Request has the page in its context.
func (q *request) handOn(redirect *http.Response) {
	next := q.page
	next.marks = q.marks.HandOn(judge.OfRedirect)
	ctx := context.WithValue(redirect.Request.Context(), pageKey{}, &next)
	redirect.Request = redirect.Request.WithContext(ctx)
	if redirect.Header.Get("Location") != "" {
		q.Trace.HandOn()
	}
	q.fed = nil
	q.after = nil
}

// follow makes q a redirect, unless the response that has led to it is nil.
func (q *request) follow(before *http.Response) {
	if before == nil {
		return
	}
	q.redirect = true
	if before.Request != nil && before.Request.URL != nil {
		q.from = hostname.Of(before.Request.URL)
	}
}

// handedOn returns the page that a redirect has handed on.
func handedOn(redirect *http.Response) (p page, ok bool) {
	if redirect == nil || redirect.Request == nil {
		return page{}, false
	}
	before, ok := redirect.Request.Context().Value(pageKey{}).(*page)
	if !ok {
		return page{}, false
	}
	p = *before
	p.marks = before.marks.HandOn(judge.OfRedirect)
	return p, true
}

// Again implements backend.Trip. The request waits for its turn once more, which may take long, so
// it is judged by the robots.txt in force after the wait.
func (q *request) Again(ctx context.Context) error {
	q.reread = false
	return q.Repeat(func() error {
		q.now = time.Now()
		if q.Repeats() {
			q.setClock(q.now)
		}
		err := q.gate.start(ctx, q, true)
		if err != nil {
			return q.deniedAgain(err)
		}
		q.Trace.Continue(q.IDs, q.now)
		q.traceDecision()
		q.HandOver()
		return nil
	})
}

// traceDecision gives the decision that allows q to its trace, if there is a listener.
func (q *request) traceDecision() {
	if q.Trace.IsOn() {
		q.Trace.Decide(q.verdict.Decision(q.target.URL))
	}
}

// compare compares the verdict on q with those of the shadows.
func (q *request) compare(ctx context.Context, all judge.Shadows) {
	if all.InUse() {
		all.Compare(ctx, q.now, &q.verdict, &q.target, q.fetcher())
	}
}

// deniedAgain returns the error of a request that is not sent once more because of err.
func (q *request) deniedAgain(err error) error {
	o := outcomeOf(err)
	q.Trace.GiveUp(q.IDs, o.denied != nil)
	if o.denied == nil {
		return err
	}
	countDenied(q.gate.Judge, q.Host, o.denied, q.IDs)
	return &refusedError{cause: err, url: q.target.URL.Redacted()}
}

// Ended implements backend.Trip.
func (q *request) Ended(bytes int64, err error) {
	fed := q.fed
	after := q.after
	q.TraceEnd(bytes, err)
	log := q.recordFailure(err)
	host := q.Host
	wire := q.Wire
	q.close()
	if log != nil {
		log()
	}
	wire.TellNextStart(host)
	fed.awaitHook()
	if after != nil {
		after()
	}
}
