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
)

// An exchange is one request on the wire, and its place with its host. It implements backend.Trip for
// the plugin's own requests. A request of a collector contains one.
type exchange struct {
	limiter *limiter
	host    *pace.Host
	ticket  pace.Ticket
	guard   *PrivateNetworkError // its error if it would go to a private address; nil if it may go there
	met     bool                 // the transport has reported a connection
	payer   string               // the site that is charged, because the request goes to another site; "" if none is
	peer    string               // "host:port" that it went to: the server or a proxy; "" if it is not known
	locked  bool                 // a proxy on its way requires authentication
	trace   trace
	through http.RoundTripper
	refused atomic.Bool // Again has returned an error, so nothing is sent any more
	sent    atomic.Bool // it was written, or handed to a transport that does not report that
	permit  *permit     // is asked after each wait; nil if the request may always be sent
}

// A permit says whether a request of the plugin's own may still be sent when its turn has come.
type permit struct {
	current func() bool  // reports whether judge need not read robots.txt again
	judge   func() error // returns why the request may not be sent
}

// send makes a request of the plugin's own, for robots.txt or a sitemap: it is paced like every
// request to its host, uses the proxy and the TLS settings of the collector, sends no cookies, and
// follows no redirect. from says how the plugin came to its URL.
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
	if from.kind == RequestRobots {
		x.ticket.Renew()
	}
	if x.limiter.quota.Applies(from.payer, a.Host) {
		x.payer = from.payer
	}
	x.guard, err = x.limiter.ask(from, a.Host, req.URL)
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

// ask returns an error if the plugin must not request u, which is on host, because of what led there.
// guard is for what only the connection shows.
func (l *limiter) ask(from lead, host string, u *url.URL) (guard *PrivateNetworkError, err error) {
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
//
// If robots.txt has to be read again first, x gives its turn back, because to read the file takes a
// turn. When x has its next turn, the file may be too old again. Then it is not read once more.
func (x *exchange) takeTurn(ctx context.Context) error {
	for reread := false; ; reread = true {
		err := policy.Wait(ctx, x.start)
		if err != nil {
			return err
		}
		current := x.permit == nil || x.permit.current()
		if x.permit == nil || !current && reread {
			break
		}
		if !current {
			x.giveBack()
		}
		err = x.permit.judge()
		if err != nil {
			x.giveBack()
			return err
		}
		if current {
			break
		}
	}
	x.handOver()
	return nil
}

// start waits until x may go on the wire, ahead of the pages that wait for their host.
func (x *exchange) start(ctx context.Context) error {
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

// giveBack gives back the place of x with its host. A request that was not written does not count.
func (x *exchange) giveBack() {
	if !x.sent.Swap(false) {
		x.ticket.NotSent()
	}
	x.ticket.End()
}

// Peer implements backend.Trip.
func (x *exchange) Peer(hostPort string, addr net.Addr) error {
	x.peer = hostPort
	x.met = true
	if !isServer(x.host.Name(), hostPort) {
		return nil
	}
	return x.limiter.connected(x.host, addr, x.guard)
}

// Ready implements backend.Trip.
func (x *exchange) Ready() (terms backend.Terms, ok bool) {
	terms.CheckDials = x.guard != nil
	if !x.limiter.shared {
		return terms, !x.ticket.Late()
	}
	terms.Deadline = x.ticket.Deadline()
	terms.Late = ErrLeaseEnded
	return terms, !x.ticket.Late() && x.ticket.Valid()
}

// Sent implements backend.Trip.
func (x *exchange) Sent() {
	if x.refused.Load() {
		return // net/http says so even if the connection is closed
	}
	x.sent.Store(true)
	x.ticket.Sent(time.Now())
	x.trace.started(x.host, &x.ticket)
}

// Again implements backend.Trip: what is sent a second time, or too late, is a start of its own.
func (x *exchange) Again(ctx context.Context) error {
	return x.again(func() error { return x.takeTurn(ctx) })
}

// again makes the exchange once more if takeTurn returns no error.
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

// Answered implements backend.Trip: it lets the host slow the crawl down.
func (x *exchange) Answered(resp *http.Response) (again bool, report func()) {
	x.locked = resp.StatusCode == http.StatusProxyAuthRequired && x.peer != "" && !isServer(x.host.Name(), x.peer)
	return false, x.answer(resp, 0)
}

// answer records a response, which counts as a number of pages. report, which may be nil, logs it.
func (x *exchange) answer(resp *http.Response, pages int) (report func()) {
	x.sent.Store(true) // an HTTP/2 transport may report that later, or not at all
	x.trace.answered(resp)
	backOff := x.pace(resp, pages)
	if x.guard == nil || x.met {
		return backOff
	}
	log := x.limiter.report
	through := x.through
	return func() {
		log.warn("a transport reports no connections, so names that lead to private addresses are not refused: "+
			"let it pass the context of its request on to an http.Transport, or refuse such addresses in its dialer",
			"transport", fmt.Sprintf("%T", through))
		if backOff != nil {
			backOff()
		}
	}
}

// pace records a response with the pace of its host: it backs off on 429 or 503, which count as no
// page. report, which may be nil, logs the back-off.
func (x *exchange) pace(resp *http.Response, pages int) (report func()) {
	if !throttled(resp) {
		if x.host.Answered(&x.ticket, resp.StatusCode, pages) {
			x.limiter.report.tellPace(EventRecovered, x, resp)
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
	x.limiter.report.tellPace(EventSlowed, x, resp)
	return x.limiter.backOff(x.host.Stats(now), x.host, resp)
}

// backOff returns a function that logs the back-off of a host.
func (l *limiter) backOff(s pace.Stats, host *pace.Host, resp *http.Response) (report func()) {
	length := slog.Duration("delay", s.BackOff.Round(time.Millisecond))
	logged := uint8(loggedBackOff)
	if !s.NotBefore.IsZero() {
		length = slog.Time("until", s.NotBefore)
		logged = loggedRetryAfter
	}
	host.Mark(logged)
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
