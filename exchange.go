package collyrobots

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// An exchange is one request on the wire, and its place with its host. It implements backend.Trip
// for the plugin's own requests. A request, which is one of a collector or a client, contains one.
type exchange struct {
	limiter *limiter
	host    *pace.Host // nil before the first verdict on a request
	ticket  pace.Ticket
	guard   *PrivateNetworkError // its error if it would go to a private address; nil if it may go there
	trace   trace
	through http.RoundTripper // the transport that sends it; set before the wire
	permit  *permit           // consulted after each wait; nil if the exchange needs none

	conditions http.Header // fields that make it conditional, which only the transport sees; nil if there are none

	// The following fields describe the exchange on the wire.
	sent    atomic.Bool // it was written, or handed to a transport that does not report that
	refused atomic.Bool // Again has returned an error, so nothing is sent any more
	met     bool        // the transport has reported a connection
	locked  bool        // a proxy has responded that it requires authentication
	signed  bool        // it was signed when it was last sent
	asked   bool        // it is not sent again if the site asks for a signature
	before  bool        // it was written, and its place was given back since then
	replied bool        // there was a response
	peer    string      // "host:port" of the last connection: the server or a proxy; "" if not known

	payer string // of a request of the plugin's own to another site: the site that is charged; otherwise ""
}

// A permit says whether a request of the plugin's own may still be sent when its turn has come.
type permit struct {
	current func() bool  // reports whether robots.txt is known, so that check does not have to read it
	check   func() error // returns an error if the request must not be sent
}

// send makes a request of the plugin's own: for robots.txt, a sitemap or a TDMRep file. The request
// keeps the pace of its host, and uses the proxy and the TLS settings of the collector. It sends no
// cookies, and follows no redirect. from is the reason for the request.
//
// timeout limits the exchange from its start to the end of the body, without the wait before it. If
// it is 0, there is no limit. began is when the exchange started, or the zero time if it did not.
func (x *exchange) send(req *http.Request, s *backend.Seam, timeout time.Duration, from lead) (resp *http.Response, began time.Time, err error) {
	a, err := dialect.AuthorityOf(req.URL)
	if err != nil {
		return nil, time.Time{}, err
	}
	x.host = x.limiter.hosts.At(time.Now(), a.Host)
	x.through = x.limiter.transport(s)
	x.trace.report = x.limiter.report
	x.trace.url = req.URL
	x.trace.kind = from.kind
	if from.kind == report.RequestRobots {
		x.ticket.Renew()
	}
	if x.limiter.quota.Applies(from.payer, a.Host) {
		x.payer = from.payer
	}
	x.guard, err = x.limiter.allow(from, a.Host, req.URL)
	if err != nil {
		x.ticket.End()
		return nil, time.Time{}, err
	}
	err = x.takeTurn(req.Context())
	if err != nil {
		return nil, time.Time{}, err
	}
	began = time.Now()
	resp, err = backend.Do(x.through, req, timeout, x)
	return resp, began, err
}

// sendOwn is like send, but sends the request only if check returns no error. check gets the origin
// of the request. It is called again if robots.txt changes before the request has its turn.
func (j *judge) sendOwn(req *http.Request, timeout time.Duration, from lead, check func(origin) (verdict, error)) (resp *http.Response, began time.Time, err error) {
	guard, err := j.limiter.allow(from, hostOf(req.URL), req.URL)
	if err != nil {
		j.report.tellUnsent(req.URL, err, numbers{})
		return nil, time.Time{}, err
	}
	x := &exchange{limiter: j.limiter}
	x.permit = x.permitOf(req.Context(), func() (verdict, error) { return check(guardedBy(guard, from.payer)) })
	err = x.permit.check()
	if err != nil {
		return nil, time.Time{}, err
	}
	resp, began, err = x.send(req, from.client.seam(), timeout, from)
	if isForbidden(err) {
		began = time.Time{} // the connection has shown a private address, so trying again is useless
	}
	return resp, began, err
}

// permitOf returns the permit of x. It lets x be sent if judge returns no error.
func (x *exchange) permitOf(ctx context.Context, judge func() (verdict, error)) *permit {
	var last verdict
	current := func() bool {
		return last.reader == nil || last.reader.known(ctx, time.Now(), last.policy.Authority, last.host) != nil
	}
	check := func() error {
		v, err := judge()
		if err == nil {
			v.obeyedBy(&x.ticket)
			last = v
		}
		return err
	}
	return &permit{current: current, check: check}
}

// allow returns an error if the plugin must not request u, which is on host, for the reason from.
// guard is the guard of the exchange, because the address may be known only when there is a
// connection.
func (l *limiter) allow(from lead, host string, u *url.URL) (guard *PrivateNetworkError, err error) {
	if from.host != "" && from.host != host && from.client.forbids(u) {
		return nil, fmt.Errorf("collyrobots: %s leads to %s: %w", from.host, u.Redacted(), colly.ErrForbiddenDomain)
	}
	err = l.quota.Check(from.payer, host)
	if err != nil {
		return nil, err
	}
	return l.guard(from.host, host, u)
}

// transport returns the transport of the plugin's own requests.
func (l *limiter) transport(s *backend.Seam) http.RoundTripper {
	switch {
	case l.client != nil:
		return l.client.Transport
	case s != nil:
		return s.Transport()
	}
	return http.DefaultTransport
}

// takeTurn waits until x may go on the wire, and hands it over. After an error x holds nothing.
func (x *exchange) takeTurn(ctx context.Context) error {
	err := policy.Wait(ctx, x.start)
	if err != nil {
		return err
	}
	err = policy.Overtaken(ctx)
	if err != nil {
		x.giveBack()
		return err
	}
	if x.permit != nil {
		err = x.checkPermit(ctx)
		if err != nil {
			x.giveBack()
			return err
		}
	}
	x.handOver()
	return nil
}

// checkPermit checks x, which has its turn, by its permit.
//
// If robots.txt has to be read again first, x gives its turn back, because reading the file takes a
// turn, and waits for the next one. The file may have expired again by then, but is not read again.
func (x *exchange) checkPermit(ctx context.Context) error {
	if x.permit.current() {
		return x.permit.check()
	}
	x.giveBack()
	err := x.permit.check()
	if err != nil {
		return err
	}
	err = policy.Wait(ctx, x.start)
	if err != nil || !x.permit.current() {
		return err
	}
	return x.permit.check()
}

// start waits until x may go on the wire, ahead of the pages that wait for their host.
func (x *exchange) start(ctx context.Context) error {
	x.limiter.join(ctx, x.host, x.through, x.trace.url)
	if x.payer == "" {
		return x.host.StartIf(ctx, &x.ticket, policy.Wanted(ctx))
	}
	err := x.limiter.quota.Charge(x.payer, x.host.Name())
	if err != nil {
		return err
	}
	return x.host.StartLed(ctx, &x.ticket, policy.Wanted(ctx))
}

// handOver is called when x is about to go to a transport.
func (x *exchange) handOver() {
	if !reportsSent(x.through) {
		x.sent.Store(true)
		x.trace.started(x.host, &x.ticket)
	}
}

// reportsSent reports whether a transport calls WroteHeaders of net/http/httptrace.
func reportsSent(rt http.RoundTripper) bool {
	_, reports := rt.(*http.Transport)
	return reports || rt == nil
}

// giveBack gives the place of x back to its host. A request that was not written does not count.
func (x *exchange) giveBack() {
	if x.sent.Swap(false) {
		x.before = true
	} else {
		x.ticket.NotSent()
	}
	x.ticket.End()
}

// Peer implements backend.Trip.
func (x *exchange) Peer(hostPort string, addr net.Addr) error {
	x.peer = hostPort
	x.met = true
	x.trace.connected(addr)
	x.limiter.met(x.host, hostPort, addr)
	if !isServer(x.host.Name(), hostPort) {
		return nil
	}
	return x.limiter.connected(x.host, addr, x.guard)
}

// Ready implements backend.Trip.
func (x *exchange) Ready() (terms backend.Terms, ok bool) {
	terms.CheckDials = x.guard != nil
	terms.Sign = x.signature()
	if !x.limiter.shared {
		return terms, !x.ticket.Late()
	}
	terms.Deadline = x.ticket.Deadline()
	terms.Late = ErrLeaseEnded
	return terms, !x.ticket.Late() && x.ticket.Valid()
}

// Header implements backend.Trip.
func (x *exchange) Header() http.Header { return x.conditions }

// Sent implements backend.Trip.
func (x *exchange) Sent() {
	if x.refused.Load() {
		return // net/http calls this although the connection was closed before
	}
	x.sent.Store(true)
	x.ticket.Sent(time.Now())
	x.trace.started(x.host, &x.ticket)
}

// Again implements backend.Trip. A request that is sent a second time, or that was not ready in
// time, takes another turn.
func (x *exchange) Again(ctx context.Context) error {
	return x.again(func() error { return x.takeTurn(ctx) })
}

// again takes another turn for the exchange by calling takeTurn. After an error, nothing is sent
// any more.
func (x *exchange) again(takeTurn func() error) error {
	if x.refused.Load() {
		return context.Canceled
	}
	x.trace.again(x.host, errDropped)
	x.giveBack()
	err := takeTurn()
	x.refused.Store(err != nil)
	return err
}

// Answered implements backend.Trip. It backs off if the host is throttling.
func (x *exchange) Answered(resp *http.Response) (again bool, log func()) {
	x.locked = resp.StatusCode == http.StatusProxyAuthRequired && x.peer != "" && !isServer(x.host.Name(), x.peer)
	log = x.recordResponse(resp, 0)
	return x.signsAgain(resp), log
}

// recordResponse records a response, which counts as a number of pages. log logs what follows
// from it, and may be nil.
func (x *exchange) recordResponse(resp *http.Response, pages int) (log func()) {
	x.sent.Store(true) // an HTTP/2 transport may call Sent later, or not at all
	x.replied = true
	x.trace.answered(resp)
	backOff := x.changePace(resp, pages)
	if usage.LicenseRequired(resp.StatusCode, resp.Header) {
		backOff = both(backOff, x.limiter.report.licenseRequired(x))
	}
	if x.guard == nil || x.met {
		return backOff
	}
	reporter := x.limiter.report
	through := x.through
	return func() {
		reporter.warn("a transport reports no connections, so names that lead to private addresses are not refused: "+
			"let it pass the context of its request on to an http.Transport, or refuse such addresses in its dialer",
			"transport", fmt.Sprintf("%T", through))
		if backOff != nil {
			backOff()
		}
	}
}

// changePace records a response with the pace of its host, and backs off on 429 or 503. These count
// as no page. log logs the back-off, and may be nil.
func (x *exchange) changePace(resp *http.Response, pages int) (log func()) {
	if !throttled(resp) {
		if x.host.Answered(&x.ticket, resp.StatusCode, pages) {
			x.limiter.report.tellPace(report.EventRecovered, x, resp)
		}
		return nil
	}
	x.host.SetStatus(resp.StatusCode)
	now := time.Now()
	after := policy.RetryAfter(resp.Header, now)
	var slower bool
	if resp.StatusCode == http.StatusServiceUnavailable && after == 0 {
		slower = x.host.Unavailable(now, &x.ticket)
	} else {
		slower = x.host.SlowDown(now, &x.ticket, after)
	}
	if !slower {
		return nil
	}
	x.limiter.report.tellPace(report.EventSlowed, x, resp)
	return x.limiter.backOff(x.host.Stats(now), x.host, resp)
}

// backOff returns a function that logs the back-off of a host.
func (l *limiter) backOff(s pace.Stats, host *pace.Host, resp *http.Response) (log func()) {
	length := slog.Duration("delay", s.BackOff.Round(time.Millisecond))
	logged := uint16(loggedBackOff)
	if !s.NotBefore.IsZero() {
		length = slog.Time("until", s.NotBefore)
		logged = loggedRetryAfter
	}
	host.MarkPace(logged)
	facts := []any{"host", s.Host, "url", resp.Request.URL.Redacted(), "status", resp.StatusCode, length, "count", s.Waiting}
	return func() { l.report.log.Warn("host is throttling, slowing down", facts...) }
}

// throttled reports whether a response asks for fewer requests.
func throttled(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

func isRedirect(status int) bool { return status >= 300 && status < 400 }

// Ended implements backend.Trip.
func (x *exchange) Ended(bytes int64, err error) {
	x.trace.ended(x.host, &x.ticket, x.sent.Load(), bytes, err)
	x.giveBack()
}
