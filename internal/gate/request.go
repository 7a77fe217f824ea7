package gate

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/revalidate"
	"github.com/collyrobots/collyrobots/report"
)

// A Request is the record of one exchange of a collector or a client: its target, the verdict on
// it, and its place with its host. The record exists from the moment when a hook or the controller
// first sees the request until the exchange is over. It implements backend.Trip.
//
// Colly's hooks and the controller find it by the URL of the request, in a handoff.Table. Only the
// goroutine that holds it may use it.
type Request struct {
	exchange.Exchange
	Page
	entry *handoff.Entry[Request] // nil if the request is that of a client
	gate  *Gate

	ctx        context.Context // of the request on the wire; nil before that, and for a turn of Acquire
	target     judge.Target
	retargeted bool            // the target has changed since the verdict
	redirect   bool            // it follows a redirect
	carried    bool            // it is sent in the turn of its carrier
	client     exchange.Client // fetches robots.txt for it; nil on the wire and while the record is idle
	seam       *backend.Seam   // sends it, and fetches robots.txt if client is nil; nil before the wire
	header     http.Header     // the headers of the request, as of the current step
	now        time.Time       // the clock of the current step; set when the step begins and after each wait

	verdict    judge.Verdict // zero before the first check
	judged     url.URL       // the URL of the verdict or the refusal; a callback may change *target.URL later
	dry        error         // in a dry run, the first reason to deny the URL; nil if there is none
	refusal    error         // why it must not be sent; nil if it may be sent
	unanswered http.Header   // the headers of the page when robots.txt got no response; nil if it got one
	turn       time.Time     // see exchange.Fetcher.Turn; zero if robots.txt was known when its turn came
	known      knownPage     // what an earlier visit has left in the Store
	backOff    time.Duration // before the next repetition of Retry; 0 if there is none

	status int  // of the last response; 0 if there is none
	leads  bool // that response leads to another URL

	// Uncached is for the hooks: the headers of the request keep Colly from serving it from CacheDir.
	Uncached bool
}

// A Page is what all exchanges of one page share: the request and the redirects that follow it.
type Page struct {
	reporter.IDs
	Store *revalidate.Collector // of the collector; nil if the page is not requested conditionally
	From  string                // the host that led to the current request; "" if the program has requested it
	OnEnd func()                // is called when the last exchange has ended; may be nil

	// The following fields are valid InOnRequest, and may be nil.
	OnWait  func()              // is called when an event says that the page waits for its host
	Returns func(*Request) bool // reports whether the page goes back to the urlstore.Store instead of waiting
	Cached  func() bool         // reports whether the collector gets the page without a request

	// Repeated says that the program itself repeats the page, so Retry does not.
	Repeated bool

	early bool        // each place is given back when the headers are there: callbacks may visit the host
	name  *string     // the collector's UserAgent; nil if it does not count or is not known
	marks judge.Marks // of the limits and the responders
}

// NewRequest returns the record of a request with this URL, held by the caller.
func (g *Gate) NewRequest(u *url.URL, p Page) *Request {
	now := time.Now()
	e := g.requests.Open(u, now)
	q := &e.Record
	q.entry = e
	q.gate = g
	q.Wire = g.Wire
	q.target.URL = u
	q.Page = p
	q.setClock(now)
	return q
}

// Take returns the idle record of a request with this URL, held by the caller from now on, or nil if
// there is none.
func (g *Gate) Take(u *url.URL) *Request {
	e := g.requests.Take(u)
	if e == nil {
		return nil
	}
	return &e.Record
}

// Release leaves q to the next hook, or to the controller.
func (q *Request) Release() {
	q.client = nil // this and the callbacks of OnRequest would keep the collector alive
	q.OnWait = nil
	q.Returns = nil
	q.Cached = nil
	q.entry.Release(q.now)
}

// Close gives the place of q back to its host, and ends the record. The caller must not use q
// afterwards.
func (q *Request) Close() {
	q.abandon()
	if q.entry != nil {
		q.entry.Close()
	}
}

// abandon gives the place of q back to its host. If q was never sent, it also undoes charge.
func (q *Request) abandon() {
	q.refund()
	q.GiveBack()
}

// setClock sets the clock of a new request.
func (q *Request) setClock(now time.Time) {
	q.now = now
	q.IDs.Since = now
	q.IDs.Robots = 0
}

// Tick sets the clock of q. It is called when a step begins, and after a wait.
func (q *Request) Tick() { q.now = time.Now() }

// Describe sets the target of q, the client that fetches robots.txt for it, and its headers.
func (q *Request) Describe(t judge.Target, by exchange.Client, header http.Header) {
	if q.target != t {
		q.target = t
		q.retargeted = true
	}
	q.client = by
	q.header = header
}

// Prepare sets what is known only just before q is sent. early says that each place is given back when
// the headers are there. name is the collector's UserAgent, or nil if it does not count. also is called
// when the last exchange has ended, and may be nil.
func (q *Request) Prepare(early bool, name *string, also func()) {
	q.early = early
	q.name = name
	q.OnEnd = exchange.Both(q.OnEnd, also)
}

// joinShared makes q a request of its host before robots.txt is read, if the host shares its pace. It
// reports whether it does.
func (q *Request) joinShared(ctx context.Context) bool {
	host := q.Wire.Hosts.At(q.now, hostname.Of(q.target.URL))
	if !host.Rules().Shares {
		return false
	}
	q.Wire.Join(ctx, host, q.transport(), q.target.URL)
	q.Host = host
	return true
}

// IsPaused reports whether the host of q is paused.
func (q *Request) IsPaused() bool { return q.Host.IsPaused() }

// BusyFor reports whether the host of q may start no request for longer than d.
func (q *Request) BusyFor(d time.Duration) bool { return q.Host.BusyFor(q.now, d) }

// URL returns the URL of q.
func (q *Request) URL() *url.URL { return q.target.URL }

// Dry returns, in a dry run, the first reason to deny the URL of q, or nil if there is none.
func (q *Request) Dry() error { return q.dry }

// Refusal returns why q must not be sent, or nil if it may be sent.
func (q *Request) Refusal() error { return q.refusal }

// Decision returns the decision that allows q. Its delays are those in force now.
func (q *Request) Decision() report.Decision { return q.verdict.Decision(q.target.URL) }

// Verdict returns the verdict that allows q.
func (q *Request) Verdict() judge.Verdict { return q.verdict }

// fetcher returns how to fetch robots.txt for q.
func (q *Request) fetcher() exchange.Fetcher {
	f := exchange.Fetcher{Wire: q.Wire, From: exchange.GuardedBy(q.Guard, ""), Page: q.IDs.Page, Header: q.header, Turn: q.turn}
	if q.client == nil {
		f.Client = exchange.SeamClient{Through: q.seam, Name: q.name}
		return f
	}
	f.Client = q.client
	f.Changed = q.unanswered != nil
	return f
}

// set records a verdict. It writes q.Host only if the host has changed, because a request is also
// judged before it is sent again, and a transport may then read q.Host at the same time.
func (q *Request) set(v *judge.Verdict) {
	if q.Host != v.Host {
		q.Ticket.End()
		q.Host = v.Host
	}
	q.verdict = *v
	q.judged = *q.target.URL
	q.retargeted = false
	q.refusal = nil
	v.ObeyedBy(&q.Ticket)
}

// isJudged reports whether there is a verdict on q.
func (q *Request) isJudged() bool { return q.verdict.Policy != nil }

// hasSameURL reports whether the URL of q is still the one that was judged.
func (q *Request) hasSameURL() bool { return *q.target.URL == q.judged }

// Refuse makes q fail with err, unless a later callback changes the URL. The page then fails like one
// that cannot be fetched: OnError is called, and a Visit of a synchronous collector returns the
// error. In an Async collector, the hooks make it fail in OnRequest; otherwise the controller does. No
// hook can do this: Colly does not treat an abort in OnRequest as a failure, and reports an abort in
// OnRequestHeaders with an error of its own.
func (q *Request) Refuse(err error) {
	q.Ticket.End()
	q.refusal = err
	q.judged = *q.target.URL
}

// RefuseUnanswered is Refuse for a page with this header whose robots.txt got no response.
func (q *Request) RefuseUnanswered(err error, header http.Header) {
	q.Refuse(err)
	q.unanswered = header.Clone()
}

// StillRefused reports whether the refusal of q holds for a page with this header. A callback may
// have changed the URL. If robots.txt got no response, the callback may also have changed the
// header, which may name a proxy. Then robots.txt is requested once more.
func (q *Request) StillRefused(header http.Header) bool {
	if q.refusal == nil || !q.hasSameURL() {
		return false
	}
	return q.unanswered == nil || maps.EqualFunc(q.unanswered, header, slices.Equal[[]string])
}

// newest returns the policy that decides about q now: the one that q was judged by, a newer one, or
// nil if robots.txt has to be read first. It returns nil at most once for each attempt to send q.
// Reading the file takes a turn, and the file may have expired again by the next turn, which is that of
// q. Then the newest file since the first turn decides.
func (q *Request) newest(ctx context.Context) *policy.Policy {
	v := &q.verdict
	if v.Policy.Fresh(q.now) {
		return v.Policy
	}
	if v.Reader == nil { // robots.txt is no longer ignored
		q.turn = q.now
		return nil
	}
	known := v.Reader.Known(ctx, q.now, v.Policy.Authority, q.Host, q.turn)
	switch {
	case known == nil && q.turn.IsZero():
		q.turn = q.now
	case known == nil:
		return v.Policy // the memory has dropped the newer file
	case known.Fresh(q.now):
		q.turn = time.Time{}
	}
	return known
}

// standing compares the policy that q was judged by with the one that decides now.
func (q *Request) standing(ctx context.Context) exchange.Standing {
	switch q.newest(ctx) {
	case q.verdict.Policy:
		return exchange.Same
	case nil:
		return exchange.Unread
	}
	return exchange.Changed
}

// transport returns the transport that will send q, or nil if it is not known.
func (q *Request) transport() http.RoundTripper {
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
func (q *Request) wait(ctx context.Context, direct bool) error {
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
