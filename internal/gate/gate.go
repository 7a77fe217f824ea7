// Package gate admits the requests of collectors and clients, and follows each of them until its
// exchange is over. It does not know Colly. The root package calls it in the hooks of a collector.
// Controller and Clients call it when a request goes on the wire.
package gate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// A Gate admits the requests of collectors and clients. There are three steps:
//
//   - Check decides whether the request may be sent.
//   - Enter waits for the host, in OnRequest, where the request holds nothing.
//   - start waits until the request may start, just before it is sent.
//
// Each step that waits checks the request again if its robots.txt has changed in the meantime.
// Otherwise a request is decided about once. If its robots.txt is known, OnRequest does not allocate.
//
// The hooks call all three, and so do requests of clients. The controller calls only Check and start
// for a request that no hook has seen, because that holds a LimitRule slot while it waits.
type Gate struct {
	*judge.Judge
	Root
	Offer      func(*policy.Policy) // is called with the policy of each page; nil if sitemaps are not followed
	Shadows    judge.Shadows
	requests   *handoff.Table[Request]
	responders []responder
	refusals   *refusals
	pageLimit  *pageLimit
}

// A Root is what the root package does for the gate.
type Root interface {
	// Refused reports that q is not sent because of err. It returns the error that a *url.Error has to
	// wrap. ctx is the context of q.
	Refused(ctx context.Context, q *Request, err error) error
	// IsDenied reports whether err is that of a request that is denied.
	IsDenied(err error) bool
	// IsFailure reports whether a page has failed because of err, unless the crawl has ended. See
	// report.HostStats.Failed.
	IsFailure(err error) bool
	// WouldDeny logs err, for which a request to u would not be sent without the dry run.
	WouldDeny(u *url.URL, err error)
	// Unseen is called for a request that no hook has seen.
	Unseen(req *http.Request)
}

// ErrRedirectWait reports that the host of a redirect of a collector accepts no requests for too long,
// see pace.Host.IsAway. Such a redirect does not wait, because it holds a slot of a LimitRule.
var ErrRedirectWait = errors.New("collyrobots: the redirect would wait too long for its host")

// New returns the gate of a new plugin, with its rules, limits and responders.
func New(j *judge.Judge, r Root) *Gate {
	g := &Gate{
		Judge:     j,
		Root:      r,
		requests:  handoff.New((*Request).abandon),
		refusals:  &refusals{report: j.Report},
		pageLimit: &pageLimit{sent: budget.New()},
	}
	g.addFeatures()
	return g
}

// Empty reports whether no request of a collector is under way.
func (g *Gate) Empty() bool { return g.requests.Empty() }

// Refusals returns the status of a host under StopRefused.
func (g *Gate) Refusals(host string) stop.Status { return g.refusals.hosts.Status(host) }

// PagesSent returns the number of pages that MaxPages has counted for a host.
func (g *Gate) PagesSent(host string) int { return g.pageLimit.sent.Used(host) }

// Check decides whether q may be sent, by the robots.txt in force now, which it fetches if
// necessary. It returns nil if q may be sent. Otherwise the error says why not: that of
// Judge.Disallow, a *report.PrivateNetworkError, ErrRedirectWait, or an error of Judge.Verdict. In a dry
// run it returns nil instead of the first of these, which is then in q.dry.
func (g *Gate) Check(ctx context.Context, q *Request) error {
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
	if g.Offer != nil && q.entry != nil && v.Reason != report.ReasonNofollow { // otherwise no collector could visit the pages, or the file was not read
		g.Offer(v.Policy)
	}
	dry, err := g.Enforce(&q.verdict, q.target.URL, q.IDs, q.redirect)
	if q.dry == nil || !again { // without a dry run, the first denial of a URL would be final
		q.dry = dry
	}
	if err != nil {
		return err
	}
	if q.holdsSlot() && q.Host.IsAway(time.Now()) {
		return ErrRedirectWait
	}
	return nil
}

// protect returns an error if q must not be sent because of the site that led to it. Some addresses
// are known only when there is a connection, so protect also sets the guard of q, which is applied
// then.
func (g *Gate) protect(q *Request) error {
	if q.From == "" && !g.Wire.Networks.DeniesAll() || q.isJudged() && q.hasSameURL() {
		return nil
	}
	guard, err := g.Wire.Guard(q.From, hostname.Of(q.target.URL), q.target.URL)
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

// Enter waits until it is the turn of q with its host. While q waits it holds nothing. If
// robots.txt has expired by then, Enter reads it again, which takes the turn. q stays at the front,
// and waits for the next turn.
//
// If Enter sends a report.EventWaiting, it calls told before the wait. told may be nil.
func (g *Gate) Enter(ctx context.Context, q *Request, told func()) error {
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
	return exchange.Await(wait, func() exchange.Standing { return q.standing(ctx) }, func() error { return g.Check(ctx, q) })
}

// awaitTurn waits until it is the turn of q. If a limit of the host ends the wait and q may still be
// sent, because another page has given its place in the budget back, q waits again.
func (g *Gate) awaitTurn(ctx context.Context, q *Request) error {
	for {
		err := q.Host.Enter(ctx, &q.Ticket)
		q.now = time.Now()
		if err != errDenied {
			return err
		}
		err = g.Check(ctx, q)
		if err != nil {
			return err
		}
	}
}

// start waits until q may start, and takes the time of the start. If robots.txt has expired by
// then, q first gives its turn back, because the file takes that turn. If direct is true, q goes on
// the wire as soon as it has started. Otherwise the controller calls charge when q goes on the wire,
// because a later callback may abort q. In a dry run, the hooks need the result earlier.
func (g *Gate) start(ctx context.Context, q *Request, direct bool) error {
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
func (g *Gate) startAllowed(ctx context.Context, q *Request, direct bool) error {
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
		err := g.Check(ctx, q)
		q.now = time.Now()
		return err
	}
	return exchange.Await(wait, look, check)
}

// Resume takes the start of a page that OnRequest has admitted or refused, just before it is sent. It
// judges the page again if a callback has changed its target, or if another policy applies now.
func (g *Gate) Resume(ctx context.Context, q *Request, t judge.Target, by exchange.Client, header http.Header) error {
	if q.StillRefused(header) {
		return q.refusal
	}
	judged := q.target
	q.Describe(t, by, header)
	if q.refusal != nil || !q.hasSameURL() || t != judged || q.newest(ctx) != q.verdict.Policy {
		err := g.Check(ctx, q)
		if err != nil {
			return err
		}
		q.recall(ctx, q.verdict.Settings)
	}
	return g.start(ctx, q, false)
}

// Reject ends q, which is not sent because of err. ctx is the context of q. Reject returns the error
// that a *url.Error has to wrap.
func (g *Gate) Reject(ctx context.Context, q *Request, err error) error {
	refused := g.Refused(ctx, q, err)
	q.Close()
	return refused
}
