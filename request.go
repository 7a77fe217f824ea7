package collyrobots

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// A request is the record of one exchange of a collector or a client: its target, the verdict on
// it, and its place with its host. The record exists from the moment when a hook or the controller
// first sees the request until the exchange is over. It implements backend.Trip.
//
// Colly's hooks and the controller find it by the URL of the request, in a handoff.Table. Only the
// goroutine that holds it may use it.
type request struct {
	exchange
	page
	entry *handoff.Entry[request] // nil if the request is that of a client
	gate  *gate

	ctx      context.Context // of the request on the wire; nil before that, and for a Turn
	target   target
	redirect bool          // it follows a redirect
	carried  bool          // it is sent in the turn of its carrier
	from     string        // the host that led to it; "" if the program has requested it
	client   client        // fetches robots.txt for it; nil on the wire and while the record is idle
	seam     *backend.Seam // sends it, and fetches robots.txt if client is nil; nil before the wire
	header   http.Header   // the headers of the request, as of the current step
	now      time.Time     // the clock of the current step; set when the step begins and after each wait

	verdict    verdict     // zero before the first check
	judged     url.URL     // the URL of the verdict or the refusal; a callback may change *target.url later
	dry        error       // in a dry run, the first reason to deny the URL; nil if there is none
	refusal    error       // why it must not be sent; nil if it may be sent
	unanswered http.Header // the headers of the page when robots.txt got no response; nil if it got one
	uncached   bool        // its headers keep Colly from serving it from CacheDir
	reread     bool        // robots.txt was read when its turn came, so that is not done again
	known      knownPage   // what an earlier visit has left in the Store
	retries    int         // how often it may be sent again after 429 or 503; set when it is sent
	charged    string      // the host that counts it for MaxPages; "" if none does
	tries      string      // the host that it has become the probe of; "" if none. See page.probe.
}

// A page is what all exchanges of one colly.Request share: the request and the redirects that
// follow it.
type page struct {
	numbers
	early bool       // each place is given back when the headers are there: callbacks may visit the host
	name  *string    // the collector's UserAgent; nil if it does not count or is not known
	fed   *fedPage   // nil if no sitemap lists it
	store *pageStore // of the collector; nil if the page is not requested conditionally
	after func()     // is called when the last exchange has ended; may be nil
	probe string     // the host that is stopped, and that the page is the probe of; "" if there is none
}

// numbers are the IDs that Colly gives to a collector and a request. They are 0 for requests of
// clones and clients, and for the plugin's own requests.
type numbers struct{ collector, request uint32 }

// newRequest returns the record of a request with this URL, held by the caller.
func (c *core) newRequest(u *url.URL, p page) *request {
	now := time.Now()
	e := c.requests.Open(u, now)
	q := &e.Record
	q.entry = e
	q.gate = &c.gate
	q.limiter = c.limiter
	q.target.url = u
	q.page = p
	q.now = now
	return q
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
func (q *request) fetcher() fetcher {
	f := fetcher{limiter: q.limiter, from: guardedBy(q.guard, ""), header: q.header}
	if q.client == nil {
		f.client = seamClient{through: q.seam, name: q.name}
		return f
	}
	f.client = q.client
	f.changed = q.unanswered != nil
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

// abandon gives the place of q back to its host. If q was never sent, it also undoes claim.
func (q *request) abandon() {
	q.unclaim()
	q.giveBack()
}

// set records a verdict. It writes q.host only if the host has changed, because a request is also
// judged before it is sent again, and a transport may then read q.host at the same time.
func (q *request) set(v *verdict) {
	if q.host != v.host {
		q.ticket.End()
		q.host = v.host
	}
	q.verdict = *v
	q.judged = *q.target.url
	q.refusal = nil
	v.obeyedBy(&q.ticket)
}

// isJudged reports whether there is a verdict on q.
func (q *request) isJudged() bool { return q.verdict.policy != nil }

// unchanged reports whether the URL of q is still the one that was judged.
func (q *request) unchanged() bool { return *q.target.url == q.judged }

// denied returns the error of a request that robots.txt denies.
func (q *request) denied(err error) error {
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		denied.redirect = q.redirect
	}
	return err
}

// refuse makes q fail with err, unless a later callback changes the URL. The page then fails like one
// that cannot be fetched: OnError is called, and a Visit of a synchronous collector returns the
// error. In an Async collector, hooks.failEarly makes it fail; otherwise the controller does.
func (q *request) refuse(err error) {
	q.ticket.End()
	q.refusal = err
	q.judged = *q.target.url
}

// stillRefused reports whether the refusal of q holds for a page with this header. A callback may
// have changed the URL. If robots.txt got no response, the callback may also have changed the
// header, which may name a proxy. Then robots.txt is requested once more.
func (q *request) stillRefused(header http.Header) bool {
	if q.refusal == nil || !q.unchanged() {
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
	if v.settings.ignoreRobots || v.policy.Fresh(q.now) {
		return v.policy
	}
	known := v.reader.known(ctx, q.now, v.policy.Authority, q.host)
	if known == nil && q.reread {
		return v.policy
	}
	q.reread = known == nil
	return known
}

// transport returns the transport that will send q, or nil if it is not known.
func (q *request) transport() http.RoundTripper {
	seam := q.seam
	if seam == nil && q.client != nil {
		seam = q.client.seam()
	}
	if seam == nil {
		return nil
	}
	return seam.Transport()
}

// wait waits until q may start, as pace.Host.Start does.
func (q *request) wait(ctx context.Context, direct bool) error {
	if q.host.Rules().Shares {
		q.limiter.join(ctx, q.host, q.transport(), q.target.url)
	}
	if ctx.Err() == nil {
		if _, ok := q.host.StartNow(q.now, &q.ticket, direct); ok {
			return nil
		}
	}
	err := q.host.Start(ctx, &q.ticket, direct)
	q.now = time.Now()
	return err
}

// throttledPatience is the longest time that a page with status 429 or 503 waits for its next
// attempt, because it holds a slot of a LimitRule while it waits.
const throttledPatience = 5 * time.Minute

// Answered implements backend.Trip. A redirect gives its place back here and not when its body is
// closed, because the user's redirect handler may visit the same host before that.
func (q *request) Answered(resp *http.Response) (again bool, log func()) {
	if q.verdict.policy.Failing() {
		q.verdict.policy.SiteAnswered()
	}
	redirect := isRedirect(resp.StatusCode)
	pages := 1
	if redirect { // or a 304, which is counted when the collector gets it
		pages = 0
	}
	log = q.recordResponse(resp, pages)
	if q.signsAgain(resp) {
		return true, log
	}
	log = both(log, q.recordResult(resp))
	if q.isUnchanged(resp) {
		q.confirm(resp)
		if q.early {
			q.ticket.End()
		}
		return false, log
	}
	if throttled(resp) {
		if q.retries > 0 && !isChallenge(resp.Header) && backend.Repeatable(resp.Request) && !q.host.BusyFor(time.Now(), throttledPatience) {
			q.retries--
			q.trace.again(q.host, nil)
			q.ticket.End() // log may take any time
			return true, log
		}
		q.host.Count(1, 0) // the spider gets the response, so it counts as a page
	}
	if !redirect && q.verdict.settings.purpose != 0 {
		q.gate.recordUse(q.verdict, resp)
	}
	if redirect || q.early {
		q.ticket.End()
	}
	if redirect {
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
	ctx := context.WithValue(redirect.Request.Context(), pageKey{}, &next)
	redirect.Request = redirect.Request.WithContext(ctx)
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
		q.from = hostOf(before.Request.URL)
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
	return *before, true
}

// Again implements backend.Trip. The request waits for its turn once more, which may take long, so
// it is judged by the robots.txt in force after the wait.
func (q *request) Again(ctx context.Context) error {
	q.reread = false
	return q.again(func() error {
		q.now = time.Now()
		err := q.gate.start(ctx, q, true)
		if err != nil {
			return q.deniedAgain(err)
		}
		q.trace.decide(&q.verdict, q.target.url)
		q.handOver()
		return nil
	})
}

// deniedAgain returns the error of a request that is not sent once more because of err.
func (q *request) deniedAgain(err error) error {
	denied := (*DisallowedError)(nil)
	if !errors.As(err, &denied) {
		return err
	}
	q.gate.countDenied(q.host, denied, q.numbers)
	return &refusedError{cause: err, url: q.target.url.Redacted()}
}

// Ended implements backend.Trip.
func (q *request) Ended(bytes int64, err error) {
	fed := q.fed
	after := q.after
	q.trace.ended(q.host, &q.ticket, q.sent.Load(), bytes, err)
	log := q.recordFailure(err)
	host := q.host
	limiter := q.limiter
	q.close()
	if log != nil {
		log()
	}
	limiter.tellNextStart(host)
	fed.awaitHook()
	if after != nil {
		after()
	}
}
