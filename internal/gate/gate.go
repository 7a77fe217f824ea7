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
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// A Gate admits the requests of collectors and clients; see Admit. If the robots.txt of a request is
// known, its admission does not allocate.
type Gate struct {
	*judge.Judge
	Root
	Offer      func(*policy.Policy) // is called with the policy of each page; nil if sitemaps are not followed
	Shadows    judge.Shadows
	requests   *handoff.Table[Request]
	retries    *retries // nil without the options Retry and RetryThrottled
	responders []responder
	refusals   *refusals
	pageLimit  *pageLimit
}

// A Root is what the root package does for the gate.
type Root interface {
	// Refused reports that q is not sent because of err, unless that is a *judge.Denied, which is
	// reported already. It returns the error that a *url.Error has to wrap. ctx is the context of q.
	Refused(ctx context.Context, q *Request, err error) error
	// IsFailure reports whether a page has failed because of err, unless the crawl has ended. See
	// report.HostStats.Failed.
	IsFailure(err error) bool
	// WouldDeny logs err, for which a request to u would not be sent without the dry run.
	WouldDeny(u *url.URL, err error)
	// Unseen is called for a request that no hook has seen.
	Unseen(req *http.Request)
}

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

// Refusals returns the status of a host under StopAfterRefusals.
func (g *Gate) Refusals(host string) stop.Status { return g.refusals.hosts.Status(host) }

// PagesSent returns the number of pages that MaxPagesPerHost has counted for a host.
func (g *Gate) PagesSent(host string) int { return g.pageLimit.sent.Used(host) }

// check decides whether q may be sent, by the robots.txt in force now, which it fetches if
// necessary. It returns nil if q may be sent. Otherwise the error says why not: a *judge.Denied,
// a *report.PrivateNetworkError, ErrRedirectWait, or an error of Judge.Verdict. In a dry
// run it returns nil instead of the first of these, which is then in q.dry.
func (g *Gate) check(ctx context.Context, q *Request) error {
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

// Reject ends q, which is not sent because of err. ctx is the context of q. Reject returns the error
// that a *url.Error has to wrap.
func (g *Gate) Reject(ctx context.Context, q *Request, err error) error {
	refused := g.refused(ctx, q, err)
	q.Close()
	return refused
}

// refused counts q, which is not sent because of err, and returns the error that a *url.Error has to
// wrap.
func (g *Gate) refused(ctx context.Context, q *Request, err error) error {
	d := deniedBy(err)
	if d != nil {
		d.First = g.CountDenied(q.Host, &d.Decision, q.IDs)
	}
	return g.Refused(ctx, q, err)
}

// deniedBy returns the decision of err, or nil if err is not that of a request that is denied.
func deniedBy(err error) *judge.Denied {
	var d *judge.Denied
	if errors.As(err, &d) {
		return d
	}
	return nil
}
