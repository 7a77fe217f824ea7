package collyrobots

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
)

// A target is what a request asks for, as far as robots.txt is concerned.
type target struct {
	url        *url.URL
	hostHeader string // the Host header that the user has set; "" if the header is the host of url
	userAgent  string // the User-Agent header
	linkedFrom string // the page whose link must not be followed; "" if it may be
	isFile     bool   // a file that the plugin reads, so usage preferences and MaxPages do not apply
}

// targetOf returns the target of a request with these properties. host is the Host header that will
// be sent. It counts only if the user has set it, so it must also be among the headers. Otherwise
// Colly has taken it from the URL, and if it differs from u, a callback has changed the URL since.
func targetOf(u *url.URL, host string, header http.Header) target {
	t := target{url: u, userAgent: userAgentOf(header)}
	if host == u.Host || host == "" {
		return t
	}
	if set := header["Host"]; len(set) > 0 && set[0] == host {
		t.hostHeader = host
	}
	return t
}

// userAgentOf returns the user agent in the headers of a request.
func userAgentOf(header http.Header) string {
	if values := header["User-Agent"]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// hasRobots reports whether robots.txt applies to u. It applies to ftp URLs because the collector's
// transport may speak ftp (RFC 9309, section 2.3). If it does not, robots.txt cannot be read, and
// the request is denied instead of failing in the transport.
func hasRobots(u *url.URL) bool { return isWeb(u) || u.Scheme == "ftp" }

// isWeb reports whether u is an http or https URL.
func isWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// A gate admits the requests of collectors and clients. There are three steps:
//
//   - check decides whether the request may be sent.
//   - enter waits for the host, in OnRequest, where the request holds nothing.
//   - start waits until the request may start, just before it is sent.
//
// Each step that waits checks the request again if its robots.txt has changed in the meantime. The
// hooks call all three, and so do requests of clients. The controller calls only check and start
// for a request that no hook has seen, because that holds a LimitRule slot while it waits.
//
// The caller sets the fields target, client, header and now of the request before each step.
type gate struct {
	*judge
	sitemaps *sitemaps // nil if they are not followed
}

// redirectPatience returns how long a redirect of a collector may wait for a host with this delay.
// The limit is there because the redirect holds a slot of a LimitRule while it waits. The host may
// have to get a request for robots.txt first.
func redirectPatience(delay time.Duration) time.Duration {
	return time.Minute + 2*min(delay, math.MaxInt64/4)
}

// check decides whether q may be sent, by the robots.txt in force now, which it fetches if
// necessary. It returns nil if q may be sent. Otherwise the error says why not: a *DisallowedError,
// a *PrivateNetworkError, ErrRedirectWait, or an error of decide. In a dry run it returns nil
// instead of the *DisallowedError, which is then in q.dry.
func (g *gate) check(ctx context.Context, q *request) error {
	if err := g.protect(q); err != nil {
		return err
	}
	again := q.isJudged() && q.unchanged()
	f := q.fetcher()
	followed := q.target.linkedFrom == "" || g.dryRun
	f.readsTDM = !again && followed && !q.carried // if q was judged before, it may have its turn, and the file would take that turn
	v, err := g.decide(ctx, q.now, q.target, f)
	if err != nil {
		return err
	}
	if v.waited || v.policy.Fetched().After(q.now) {
		q.now = time.Now() // a file was fetched just now, which took time
	}
	if err := robotsAtPrivateAddress(v.policy, q.guard); err != nil {
		return err
	}
	rule, reason := v.rule, v.reason
	g.restrict(q.now, &v, q.exemptions(&v))
	q.set(&v)
	if v.reason != reason && !q.redirect && q.isKnownFresh(ctx) {
		v.allow(rule, reason) // a page that is not sent needs no limit
		q.set(&v)
	}
	if (v.reason == report.ReasonUnreachable || v.reason == report.ReasonSiteDown) && !v.policy.Refused() {
		v.host.Skip(q.now, &q.ticket) // the next page reads robots.txt again, when its turn comes
	}
	if q.entry != nil && v.reason != report.ReasonNofollow { // otherwise no collector could visit the pages, or the file was not read
		g.sitemaps.offer(v.policy)
	}
	dry, err := g.enforce(&v, q.target.url, q.numbers)
	if q.dry == nil || !again { // without a dry run, the first denial of a URL would be final
		q.dry = dry
	}
	if err != nil {
		return q.denied(err)
	}
	if q.redirect && q.entry != nil {
		now := time.Now()
		if q.host.BusyFor(now, redirectPatience(q.host.Delay(now))) {
			return ErrRedirectWait
		}
	}
	return nil
}

// protect returns an error if q must not be sent because of the site that led to it. Some addresses
// are known only when there is a connection, so protect also sets the guard of q, which is applied
// then.
func (g *gate) protect(q *request) error {
	if q.from == "" || q.isJudged() && q.unchanged() {
		return nil
	}
	guard, err := g.limiter.guard(q.from, hostOf(q.target.url), q.target.url)
	q.guard = guard
	return err
}

// robotsAtPrivateAddress returns an error if a robots.txt was not fetched because it is at a
// private address, and a request with this guard must not go there.
func robotsAtPrivateAddress(pol *policy.Policy, guard *PrivateNetworkError) error {
	if guard == nil || !pol.Forbidden() {
		return nil
	}
	private := (*PrivateNetworkError)(nil)
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
	if q.host.MayEnter(&q.ticket) {
		return nil
	}
	g.limiter.join(ctx, q.host, q.transport(), q.target.url)
	g.endWaitIfDenied(q)
	g.limiter.logLongWait(q.now, q.host, q.verdict.policy)
	if g.report.tellWaiting(q) && told != nil {
		told()
	}
	for {
		err := q.host.Enter(ctx, &q.ticket)
		q.now = time.Now()
		if err == errDenied {
			err = g.check(ctx, q)
			if err == nil {
				continue // another page has given its place in the budget back
			}
		}
		if err != nil {
			return err
		}
		newest := q.newest(ctx)
		if newest == q.verdict.policy {
			return nil
		}
		err = g.check(ctx, q)
		if err != nil {
			return err
		}
		if newest != nil {
			return nil // check had nothing to read, so q still has its turn
		}
	}
}

// start waits until q may start, and takes the time of the start. If robots.txt has expired by
// then, q first gives its turn back, because the file takes that turn. If direct is true, q goes on
// the wire as soon as it has started. Otherwise the controller calls claim when q goes on the wire,
// because a later callback may abort q. In a dry run, the hooks need the result earlier.
func (g *gate) start(ctx context.Context, q *request, direct bool) error {
	err := g.startAllowed(ctx, q, direct)
	if err != nil || !direct && !g.dryRun {
		return err
	}
	err = g.claim(q)
	if err != nil {
		q.giveBack()
	}
	return err
}

// startAllowed is start without the limits of StopRefused and MaxPages.
func (g *gate) startAllowed(ctx context.Context, q *request, direct bool) error {
	for {
		err := q.wait(ctx, direct)
		if err != nil {
			return err
		}
		newest := q.newest(ctx)
		if newest == q.verdict.policy || newest == nil && q.verdict.policy.MayServe(q.now) {
			return nil
		}
		if newest == nil {
			q.giveBack()
		}
		err = g.check(ctx, q)
		if err != nil {
			return err
		}
		if newest != nil {
			return nil // check had nothing to read, so q still has its turn
		}
		q.now = time.Now()
	}
}
