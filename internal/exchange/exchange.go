// Package exchange sends requests: it keeps the pace of their hosts, keeps sites from leading the
// crawler to private addresses, signs, and makes the events of each exchange. It has the requests of
// the plugin itself, such as those for robots.txt, and what requests of collectors and clients have
// in common with them. It does not know which requests robots.txt allows.
package exchange

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// An Exchange is one request on the wire, and its place with its host. It implements backend.Trip
// for the plugin's own requests. A request, which is one of a collector or a client, contains one.
type Exchange struct {
	Wire    *Wire
	Host    *pace.Host // nil before the first verdict on a request
	Ticket  pace.Ticket
	Guard   *report.PrivateNetworkError // its error if it would go to a private address; nil if it may go there
	Trace   Trace
	Through http.RoundTripper // the transport that sends it; set before the wire
	Permit  *Permit           // consulted after each wait; nil if the exchange needs none

	Conditions http.Header // fields that make it conditional, which only the transport sees; nil if there are none

	// The following fields describe the exchange on the wire.
	sent    atomic.Bool // it was written, or handed to a transport that does not report that
	refused atomic.Bool // Again has returned an error, so nothing is sent any more
	signed  bool        // it was signed when it was last sent

	connected      bool   // the transport has reported a connection
	needsProxyAuth bool   // a proxy has responded that it requires authentication
	noSecondSign   bool   // it is not sent again if the site asks for a signature
	sentBefore     bool   // it was written, and its place was given back since then
	Replied        bool   // there was a response
	peer           string // "host:port" of the last connection: the server or a proxy; "" if not known

	payer string // of a request of the plugin's own to another site: the site that is charged; otherwise ""
}

// A Permit says whether a request of the plugin's own may still be sent when its turn has come. turn is
// that of Fetcher.
type Permit struct {
	Current func(turn time.Time) bool  // reports whether robots.txt is known, so that Check does not have to read it
	Check   func(turn time.Time) error // returns an error if the request must not be sent
}

// Send makes a request of the plugin's own: for robots.txt, a sitemap or a TDMRep file. The request
// keeps the pace of its host, and uses the proxy and the TLS settings of the collector. It sends no
// cookies, and follows no redirect. from is the reason for the request.
//
// timeout limits the exchange from its start to the end of the body, without the wait before it. If
// it is 0, there is no limit. began is when the exchange started, or the zero time if it did not.
func (x *Exchange) Send(req *http.Request, s *backend.Seam, timeout time.Duration, from Lead) (resp *http.Response, began time.Time, err error) {
	a, err := dialect.AuthorityOf(req.URL)
	if err != nil {
		return nil, time.Time{}, err
	}
	x.Host = x.Wire.Hosts.At(time.Now(), a.Host)
	x.Through = x.Wire.transport(s)
	x.Trace.Report = x.Wire.Report
	x.Trace.URL = req.URL
	x.Trace.Kind = from.Kind
	x.Trace.madeFor(from.Page)
	if from.Kind == report.RequestRobots {
		x.Ticket.Renew()
	}
	if x.Wire.Quota.Applies(from.Payer, a.Host) {
		x.payer = from.Payer
	}
	x.Guard, err = x.Wire.Allow(from, a.Host, req.URL)
	if err != nil {
		x.Ticket.End()
		return nil, time.Time{}, err
	}
	err = x.takeTurn(req.Context())
	if err != nil {
		return nil, time.Time{}, err
	}
	began = time.Now()
	resp, err = backend.Do(x.Through, req, timeout, x)
	return resp, began, err
}

// takeTurn waits until x may go on the wire, and hands it over. After an error x holds nothing.
func (x *Exchange) takeTurn(ctx context.Context) error {
	err := x.awaitPermit(ctx)
	if err != nil {
		x.GiveBack()
		return err
	}
	x.HandOver()
	return nil
}

// awaitPermit waits until it is the turn of x and its permit, if it needs one, lets it be sent. The
// permit decides again even if robots.txt is the same. If robots.txt has to be read first, x gives its
// turn back. It is not read once more in the same wait.
func (x *Exchange) awaitPermit(ctx context.Context) error {
	if x.Permit == nil {
		return x.awaitTurn(ctx)
	}
	turn := time.Time{} // see Fetcher.Turn
	look := func() Standing {
		switch {
		case x.Permit.Current(turn):
			return Changed
		case !turn.IsZero():
			return Same // the memory has dropped the newer file
		}
		turn = time.Now()
		x.GiveBack()
		return Unread
	}
	return Await(func() error { return x.awaitTurn(ctx) }, look, func() error { return x.Permit.Check(turn) })
}

// awaitTurn waits until it is the turn of x, unless another answer has made x needless by then.
func (x *Exchange) awaitTurn(ctx context.Context) error {
	err := policy.Wait(ctx, x.start)
	if err != nil {
		return err
	}
	return policy.Overtaken(ctx)
}

// start waits until x may go on the wire, ahead of the pages that wait for their host.
func (x *Exchange) start(ctx context.Context) error {
	x.Wire.Join(ctx, x.Host, x.Through, x.Trace.URL)
	if x.payer == "" {
		return x.Host.StartIf(ctx, &x.Ticket, policy.Wanted(ctx))
	}
	err := x.Wire.Quota.Charge(x.payer, x.Host.Name())
	if err != nil {
		return err
	}
	return x.Host.StartLed(ctx, &x.Ticket, policy.Wanted(ctx))
}

// HandOver is called when x is about to go to a transport.
func (x *Exchange) HandOver() {
	if !reportsSent(x.Through) {
		x.sent.Store(true)
		x.Trace.started(x.Host, &x.Ticket)
	}
}

// reportsSent reports whether a transport calls WroteHeaders of net/http/httptrace.
func reportsSent(rt http.RoundTripper) bool {
	_, reports := rt.(*http.Transport)
	return reports || rt == nil
}

// GiveBack gives the place of x back to its host. A request that was not written does not count.
func (x *Exchange) GiveBack() {
	if x.sent.Swap(false) {
		x.sentBefore = true
	} else {
		x.Ticket.NotSent()
	}
	x.Ticket.End()
}

// Peer implements backend.Trip.
func (x *Exchange) Peer(hostPort string, addr net.Addr) error {
	x.peer = hostPort
	x.connected = true
	x.Trace.connected(addr)
	x.Wire.met(x.Host, hostPort, addr)
	if !hostname.IsServer(x.Host.Name(), hostPort) {
		return nil
	}
	return x.Wire.connected(x.Host, addr, x.Guard)
}

// Ready implements backend.Trip.
func (x *Exchange) Ready() (terms backend.Terms, ok bool) {
	terms.CheckDials = x.Guard != nil
	terms.Sign = x.signature()
	if !x.Wire.IsShared {
		return terms, !x.Ticket.Late()
	}
	terms.Deadline = x.Ticket.Deadline()
	terms.Late = x.Wire.ErrLate
	return terms, !x.Ticket.Late() && x.Ticket.Valid()
}

// Header implements backend.Trip.
func (x *Exchange) Header() http.Header { return x.Conditions }

// Sent implements backend.Trip.
func (x *Exchange) Sent() {
	if x.refused.Load() {
		return // net/http calls this although the connection was closed before
	}
	x.sent.Store(true)
	x.Ticket.Sent(time.Now())
	x.Trace.started(x.Host, &x.Ticket)
}

// Again implements backend.Trip. A request that is sent a second time, or that was not ready in
// time, takes another turn.
func (x *Exchange) Again(ctx context.Context) error {
	return x.Repeat(func() error { return x.takeTurn(ctx) })
}

// Repeat takes another turn for the exchange by calling takeTurn. After an error, nothing is sent
// any more.
func (x *Exchange) Repeat(takeTurn func() error) error {
	if x.refused.Load() {
		return context.Canceled
	}
	x.Trace.again(x.Host, errDropped)
	x.GiveBack()
	err := takeTurn()
	x.refused.Store(err != nil)
	return err
}

// Answered implements backend.Trip. It backs off if the host is throttling.
func (x *Exchange) Answered(resp *http.Response) (again bool, log func()) {
	x.needsProxyAuth = resp.StatusCode == http.StatusProxyAuthRequired && x.ThroughProxy()
	log = x.RecordResponse(resp, 0)
	return x.SignsAgain(resp), log
}

// RecordResponse records a response, which counts as a number of pages. log logs what follows
// from it, and may be nil.
func (x *Exchange) RecordResponse(resp *http.Response, pages int) (log func()) {
	x.sent.Store(true) // an HTTP/2 transport may call Sent later, or not at all
	x.Replied = true
	x.Trace.answered(resp, &x.Wire.dates)
	backOff := x.changePace(resp, pages)
	if usage.LicenseRequired(resp.StatusCode, resp.Header) {
		backOff = Both(backOff, x.licenseRequired())
	}
	if x.Guard == nil || x.connected {
		return backOff
	}
	reporter := x.Wire.Report
	through := x.Through
	return func() {
		reporter.Warn("a transport reports no connections, so names that lead to private addresses are not refused: "+
			"let it pass the context of its request on to an http.Transport, or refuse such addresses in its dialer",
			"transport", fmt.Sprintf("%T", through))
		if backOff != nil {
			backOff()
		}
	}
}

// licenseRequired counts a response that asks for a license, and sends the event. It returns a
// function that logs the first such response.
func (x *Exchange) licenseRequired() (log func()) {
	x.Wire.licenses.Add(1)
	x.Trace.license(x.Host)
	reporter := x.Wire.Report
	url := x.Trace.URL.Redacted()
	return func() {
		reporter.Warn("a site asks for a license, so it does not send the page; Stats.LicenseRequired counts further responses of this kind", "url", url)
	}
}

// changePace records a response with the pace of its host, and backs off on 429 or 503. These count
// as no page. log logs the back-off, saves it for the next process, and may be nil.
func (x *Exchange) changePace(resp *http.Response, pages int) (log func()) {
	if !Throttled(resp) {
		if x.Host.Answered(&x.Ticket, resp.StatusCode, pages) {
			x.Wire.Report.TellPace(report.EventRecovered, x.Host, x.Trace.URL, resp.StatusCode, x.Trace.IDs)
		}
		return nil
	}
	x.Host.SetStatus(resp.StatusCode)
	now := time.Now()
	after := policy.RetryAfter(resp.Header, now)
	var slower bool
	if resp.StatusCode == http.StatusServiceUnavailable && after == 0 {
		slower = x.Host.Unavailable(now, &x.Ticket)
	} else {
		slower = x.Host.SlowDown(now, &x.Ticket, after)
	}
	if !slower {
		return x.Host.Save
	}
	x.Wire.Report.TellPace(report.EventSlowed, x.Host, x.Trace.URL, resp.StatusCode, x.Trace.IDs)
	return Both(x.Host.Save, x.Wire.backOff(x.Host.Stats(now), x.Host, resp))
}

// Throttled reports whether a response asks for fewer requests.
func Throttled(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

func IsRedirect(status int) bool { return status >= 300 && status < 400 }

// Ended implements backend.Trip.
func (x *Exchange) Ended(bytes int64, err error) {
	x.TraceEnd(bytes, err)
	x.GiveBack()
}

// TraceEnd reports the end of the exchange, whose place was not given back yet.
func (x *Exchange) TraceEnd(bytes int64, err error) {
	x.Trace.ended(x.Host, &x.Ticket, x.sent.Load(), bytes, err)
}

// Leave is called when x has started and the program itself sends the request. No transport will
// report a connection, or that the request was written, and x cannot be sent again.
func (x *Exchange) Leave() {
	x.connected = true
	x.noSecondSign = true
	x.sent.Store(true)
	x.Trace.started(x.Host, &x.Ticket)
}

// Repeats reports whether the request was sent before and its place was given back since then.
func (x *Exchange) Repeats() bool { return x.sentBefore }

// WasSent reports whether the request was sent at least once.
func (x *Exchange) WasSent() bool { return x.sentBefore || x.sent.Load() }

// SetUnsent records that the program has not sent the request after all.
func (x *Exchange) SetUnsent() { x.sent.Store(false) }

// ThroughProxy reports whether the last connection led to a proxy: a server other than the host.
func (x *Exchange) ThroughProxy() bool {
	return x.peer != "" && !hostname.IsServer(x.Host.Name(), x.peer)
}

// Patience is the longest time that a request waits for its next attempt after a response, because
// the request of a page holds a slot of a LimitRule while it waits.
const Patience = 5 * time.Minute

// EndAttempt gives the turn of x back after a response, or after the error err, before x is sent again.
// What is logged about that may take any time.
func (x *Exchange) EndAttempt(err error) {
	x.Trace.again(x.Host, err)
	if err == nil {
		x.Ticket.End()
		return
	}
	x.GiveBack()
}

// Failed implements backend.Trip.
func (x *Exchange) Failed(*http.Request, error) (again bool, log func()) { return false, nil }

// Ends reports whether x must not be sent again, because Again has failed.
func (x *Exchange) Ends() bool { return x.refused.Load() }

// Both returns a function that calls those of its arguments that are not nil, or nil if both are.
func Both(f, g func()) func() {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func() {
		f()
		g()
	}
}
