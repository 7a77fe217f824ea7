package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// A wire is what all requests of one plugin share: the pace of the hosts, and what may be requested.
type wire struct {
	hosts      *pace.Hosts
	client     *http.Client // for the plugin's own exchanges; if nil, they use the collector's client
	report     *reporter.Reporter
	isShared   bool  // other processes share the pace
	errLate    error // of a response that is not finished when the lease ends
	groupings  *groupings
	networks   *netguard.Guard
	quota      *netguard.Quota // of requests to other sites
	signatures *signatures     // nil if no request is signed
	licenses   atomic.Int64    // the responses that have asked for a license
}

// newWire returns the wire of a plugin whose hosts share their pace as groupings says. If groupings
// is nil, they share none. The caller sets the fields client, networks, quota and errLate.
func newWire(hosts *pace.Hosts, groupings func(host string) sharing, r *reporter.Reporter) *wire {
	return &wire{hosts: hosts, report: r, groupings: newGroupings(groupings)}
}

// sign makes the wire sign all requests. If whenAsked is true, it signs only the requests to hosts
// that have asked for it.
func (w *wire) sign(signer *webbotauth.Signer, whenAsked bool) {
	w.signatures = newSignatures(signer, whenAsked, w.report)
}

// signs reports whether some requests are signed.
func (w *wire) signs() bool { return w.signatures != nil }

// share makes all hosts ask p for their turns.
func (w *wire) share(p pace.Pacer) {
	w.hosts.UsePacer(p)
	w.isShared = true
}

// close ends all waits for hosts with report.ErrClosed.
func (w *wire) close() {
	w.hosts.Close(report.ErrClosed)
	w.groupings.close()
}

// statistics returns the counts of signatures, or nil if no request is signed, and the number of
// responses that have asked for a license.
func (w *wire) statistics() (signatures *report.SignatureStats, licenses int) {
	return w.signatures.statistics(), int(w.licenses.Load())
}

// hasGroups reports whether some hosts may share their pace.
func (w *wire) hasGroups() bool { return w.groupings.inUse() }

// An exchange is one request on the wire, and its place with its host. It implements backend.Trip
// for the plugin's own requests. A request, which is one of a collector or a client, contains one.
type exchange struct {
	wire    *wire
	host    *pace.Host // nil before the first verdict on a request
	ticket  pace.Ticket
	guard   *report.PrivateNetworkError // its error if it would go to a private address; nil if it may go there
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
	x.host = x.wire.hosts.At(time.Now(), a.Host)
	x.through = x.wire.transport(s)
	x.trace.report = x.wire.report
	x.trace.url = req.URL
	x.trace.kind = from.kind
	if from.kind == report.RequestRobots {
		x.ticket.Renew()
	}
	if x.wire.quota.Applies(from.payer, a.Host) {
		x.payer = from.payer
	}
	x.guard, err = x.wire.allow(from, a.Host, req.URL)
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

// allow returns an error if the plugin must not request u, which is on host, for the reason from.
// guard is the guard of the exchange, because the address may be known only when there is a
// connection.
func (w *wire) allow(from lead, host string, u *url.URL) (guard *report.PrivateNetworkError, err error) {
	if from.host != "" && from.host != host {
		err = from.client.forbids(u)
		if err != nil {
			return nil, &domainError{from: from.host, url: u.Redacted(), err: err}
		}
	}
	err = w.quota.Check(from.payer, host)
	if err != nil {
		return nil, err
	}
	return w.guard(from.host, host, u)
}

// transport returns the transport of the plugin's own requests.
func (w *wire) transport(s *backend.Seam) http.RoundTripper {
	switch {
	case w.client != nil:
		return w.client.Transport
	case s != nil:
		return s.Transport()
	}
	return http.DefaultTransport
}

// takeTurn waits until x may go on the wire, and hands it over. After an error x holds nothing.
func (x *exchange) takeTurn(ctx context.Context) error {
	wait := func() error { return x.awaitTurn(ctx) }
	look := func() standing { return same }
	check := func() error { return nil }
	if x.permit != nil {
		look = x.look()
		check = x.permit.check
	}
	err := await(wait, look, check)
	if err != nil {
		x.giveBack()
		return err
	}
	x.handOver()
	return nil
}

// awaitTurn waits until it is the turn of x, unless another answer has made x needless by then.
func (x *exchange) awaitTurn(ctx context.Context) error {
	err := policy.Wait(ctx, x.start)
	if err != nil {
		return err
	}
	return policy.Overtaken(ctx)
}

// look returns the function that looks at the permit of x each time when x has its turn. The permit
// decides again even if robots.txt is the same. If robots.txt has to be read first, x gives its turn
// back. It may have expired again at the next turn, but is not read once more.
func (x *exchange) look() func() standing {
	reread := false
	return func() standing {
		switch {
		case x.permit.current():
			return changed
		case reread:
			return same
		}
		reread = true
		x.giveBack()
		return unread
	}
}

// start waits until x may go on the wire, ahead of the pages that wait for their host.
func (x *exchange) start(ctx context.Context) error {
	x.wire.join(ctx, x.host, x.through, x.trace.url)
	if x.payer == "" {
		return x.host.StartIf(ctx, &x.ticket, policy.Wanted(ctx))
	}
	err := x.wire.quota.Charge(x.payer, x.host.Name())
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
	x.wire.met(x.host, hostPort, addr)
	if !hostname.IsServer(x.host.Name(), hostPort) {
		return nil
	}
	return x.wire.connected(x.host, addr, x.guard)
}

// Ready implements backend.Trip.
func (x *exchange) Ready() (terms backend.Terms, ok bool) {
	terms.CheckDials = x.guard != nil
	terms.Sign = x.signature()
	if !x.wire.isShared {
		return terms, !x.ticket.Late()
	}
	terms.Deadline = x.ticket.Deadline()
	terms.Late = x.wire.errLate
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
	x.locked = resp.StatusCode == http.StatusProxyAuthRequired && x.isByPeer()
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
		backOff = both(backOff, x.licenseRequired())
	}
	if x.guard == nil || x.met {
		return backOff
	}
	reporter := x.wire.report
	through := x.through
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
func (x *exchange) licenseRequired() (log func()) {
	x.wire.licenses.Add(1)
	x.trace.license(x.host)
	reporter := x.wire.report
	url := x.trace.url.Redacted()
	return func() {
		reporter.Warn("a site asks for a license, so it does not send the page; Stats.LicenseRequired counts further responses of this kind", "url", url)
	}
}

// changePace records a response with the pace of its host, and backs off on 429 or 503. These count
// as no page. log logs the back-off, and may be nil.
func (x *exchange) changePace(resp *http.Response, pages int) (log func()) {
	if !throttled(resp) {
		if x.host.Answered(&x.ticket, resp.StatusCode, pages) {
			x.wire.report.TellPace(report.EventRecovered, x.host, x.trace.url, resp.StatusCode, x.trace.IDs)
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
	x.wire.report.TellPace(report.EventSlowed, x.host, x.trace.url, resp.StatusCode, x.trace.IDs)
	return x.wire.backOff(x.host.Stats(now), x.host, resp)
}

// backOff returns a function that logs the back-off of a host.
func (w *wire) backOff(s pace.Stats, host *pace.Host, resp *http.Response) (log func()) {
	length := slog.Duration("delay", s.BackOff.Round(time.Millisecond))
	logged := uint16(reporter.LoggedBackOff)
	if !s.NotBefore.IsZero() {
		length = slog.Time("until", s.NotBefore)
		logged = reporter.LoggedRetryAfter
	}
	host.MarkPace(logged)
	facts := []any{"host", s.Host, "url", resp.Request.URL.Redacted(), "status", resp.StatusCode, length, "count", s.Waiting}
	return func() { w.report.Log.Warn("host is throttling, slowing down", facts...) }
}

// throttled reports whether a response asks for fewer requests.
func throttled(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

func isRedirect(status int) bool { return status >= 300 && status < 400 }

// Ended implements backend.Trip.
func (x *exchange) Ended(bytes int64, err error) {
	x.traceEnd(bytes, err)
	x.giveBack()
}

// traceEnd reports the end of the exchange, whose place was not given back yet.
func (x *exchange) traceEnd(bytes int64, err error) {
	x.trace.ended(x.host, &x.ticket, x.sent.Load(), bytes, err)
}

// leave is called when x has started and the program itself sends the request. No transport will
// report a connection, or that the request was written, and x cannot be sent again.
func (x *exchange) leave() {
	x.met = true
	x.asked = true
	x.sent.Store(true)
	x.trace.started(x.host, &x.ticket)
}

// wasSent reports whether the request was sent at least once.
func (x *exchange) wasSent() bool { return x.before || x.sent.Load() }

// setUnsent records that the program has not sent the request after all.
func (x *exchange) setUnsent() { x.sent.Store(false) }

// isByPeer reports whether the last connection led to a proxy, that is, to a server other than the
// host.
func (x *exchange) isByPeer() bool { return x.peer != "" && !hostname.IsServer(x.host.Name(), x.peer) }

// patience is the longest time that a request waits for its next attempt after a response, because
// the request of a page holds a slot of a LimitRule while it waits.
const patience = 5 * time.Minute

// endAttempt gives the turn of x back after a response, before x is sent again. What is logged about
// the response may take any time.
func (x *exchange) endAttempt() {
	x.trace.again(x.host, nil)
	x.ticket.End()
}

// guard returns the guard of a request for u on the host to, which the host from leads to. from is
// empty if the program makes the request. The guard is nil if the request may go to any address.
// Otherwise it is the error of the request if its connection shows that to is private. If that is
// already known, guard returns an error.
func (w *wire) guard(from, to string, u *url.URL) (*report.PrivateNetworkError, error) {
	guarded, address := w.networks.Check(from, to)
	if !guarded {
		return nil, nil
	}
	guard := &report.PrivateNetworkError{URL: u.Redacted(), Address: address, From: from}
	if address != "" {
		return nil, guard
	}
	return guard, nil
}

// connected records the address of a connection to a host. It returns an error if a request with
// this guard, which may be nil, must not be sent on the connection.
func (w *wire) connected(h netguard.Host, addr net.Addr, guard *report.PrivateNetworkError) error {
	from := ""
	if guard != nil {
		from = guard.From
	}
	address := w.networks.Connected(h, addr, from)
	if address == "" {
		return nil
	}
	err := &report.PrivateNetworkError{Address: address, From: from}
	if guard != nil {
		err.URL = guard.URL
	}
	return err
}

// A domainError is the error of a request to a domain that the user has forbidden.
type domainError struct {
	from string // the host that led to the domain
	url  string
	err  error
}

func (e *domainError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s: %v", e.from, e.url, e.err)
}

func (e *domainError) Unwrap() error { return e.err }

// isForbidden reports whether a request was not sent because its target must not be requested, or
// not from the site that led to it.
func isForbidden(err error) bool {
	private := (*report.PrivateNetworkError)(nil)
	domain := (*domainError)(nil)
	excess := (*netguard.QuotaError)(nil)
	return errors.As(err, &private) || errors.As(err, &domain) || errors.As(err, &excess)
}

// both returns a function that calls those of its arguments that are not nil, or nil if both are.
func both(f, g func()) func() {
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

// addHeaders adds headers of a page and cookies of a jar to the fetch of its robots.txt. The
// headers for a proxy are always sent, because the request may not find its proxy without them. The
// cookies and the other headers are sent if the site refuses robots.txt without them, as it may
// refuse the page. Both page and jar may be nil. The page may be over before AsPage is called, and
// its program may use the header for another request, so addHeaders copies it.
func addHeaders(f *policy.Fetch, page http.Header, jar http.CookieJar) {
	page = page.Clone()
	f.Header = headerFor(page, isForProxy)
	f.AsPage = func(u *url.URL) http.Header {
		var cookies []*http.Cookie
		if jar != nil {
			cookies = jar.Cookies(u)
		}
		header := headerFor(page, isOfSite)
		if len(cookies) == 0 && len(header) == len(f.Header) {
			return nil
		}
		return withCookies(header, cookies)
	}
}

// withCookies adds the cookies to a header that does not have cookies of the same name.
func withCookies(header http.Header, cookies []*http.Cookie) http.Header {
	req := http.Request{Header: header}
	for _, c := range cookies {
		if _, err := req.Cookie(c.Name); err != nil {
			req.AddCookie(c)
		}
	}
	return req.Header
}

// headerFor returns a copy of those headers of a page that pass accepts.
func headerFor(page http.Header, pass func(name string, values []string) bool) http.Header {
	header := make(http.Header)
	for name, values := range page {
		if pass(http.CanonicalHeaderKey(name), values) {
			header[name] = slices.Clone(values)
		}
	}
	return header
}

// isForProxy reports whether a header of a page is for its proxy, or for a function that selects
// the proxy.
func isForProxy(name string, _ []string) bool {
	return strings.Contains(strings.ToLower(name), "proxy")
}

// isOfSite reports whether a header of a page may be sent with the request for another file of the
// same site. User-Agent is excluded, because it is set separately. The Accept header that Colly
// adds to each request has no information, and is excluded as well.
func isOfSite(name string, values []string) bool {
	switch name {
	case "Accept-Encoding", "Connection", "Expect", "Host", "Origin", "Range", "Referer", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "User-Agent", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override":
		return false
	case "Accept":
		return len(values) != 1 || values[0] != "*/*"
	}
	return !strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "If-")
}

// errDropped is the Event.Err of a request that net/http sends again.
var errDropped = errors.New("collyrobots: the connection was dropped before an answer")

// A trace sends the events of one exchange: report.EventStarted and report.EventAnswered each time that the
// request is sent.
//
// An exchange has started when its headers are written, which *http.Transport reports. With another
// RoundTripper it has started when it is handed over.
type trace struct {
	report *reporter.Reporter
	url    *url.URL
	kind   report.RequestKind // Event.RequestKind
	from   string             // Event.From
	reporter.IDs

	// mu protects the fields below it. It is held while an event of the exchange is sent, so that the
	// events have the order of what happened.
	mu       sync.Mutex
	running  bool             // report.EventStarted was sent, and report.EventAnswered was not
	at       time.Time        // of the start; valid while running
	status   int              // of the response; 0 before that
	signed   bool             // the request was signed when it was last sent
	date     time.Time        // Event.Date
	remote   net.Addr         // of the connection; nil if it is not known
	decision *report.Decision // the decision that allows the request; nil for requests of the plugin's own
}

// isOn reports whether there is a listener for the events of the exchange.
func (t *trace) isOn() bool { return t.report.Events.Active() }

// decide records the decision that allows the request, which is about to start.
func (t *trace) decide(d report.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decision = &d
}

// license reports that the response asks for a license.
func (t *trace) license(host *pace.Host) {
	if !t.isOn() {
		return
	}
	e := t.event(report.EventLicense, host)
	e.Status = http.StatusUnauthorized
	t.report.Events.Send(e)
}

// connected is called when there is a connection to an address.
func (t *trace) connected(addr net.Addr) {
	if !t.isOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = addr
}

// started is called when the exchange is on the wire.
func (t *trace) started(host *pace.Host, ticket *pace.Ticket) {
	if !t.isOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(host, ticket, true)
}

// begin reports the start, unless it was reported before. If sent is true, the exchange reaches the
// wire now. Otherwise it has started when ticket says. t.mu is held.
func (t *trace) begin(host *pace.Host, ticket *pace.Ticket, sent bool) {
	if t.running {
		return
	}
	t.report.TellStart(func() report.Event {
		if sent {
			ticket.Sent(time.Now())
		}
		s := ticket.Report()
		t.running = true
		t.at = s.At
		return t.start(host, s)
	})
}

// start returns the event about a start. t.mu is held.
func (t *trace) start(host *pace.Host, s pace.Start) report.Event {
	e := t.event(report.EventStarted, host)
	e.Time = s.At
	e.From = t.from
	e.Group = s.Group
	e.Gap = s.Gap
	e.Delay = s.Delay
	e.Source = report.DelaySource(s.Cause)
	e.Line = s.Line
	e.Decision = t.decision
	return e
}

// event returns an Event of the exchange, with the current time.
func (t *trace) event(kind report.EventKind, host *pace.Host) report.Event {
	return report.Event{
		Kind:        kind,
		Time:        time.Now(),
		Host:        host.Name(),
		URL:         t.url.Redacted(),
		RequestKind: t.kind,
		Collector:   t.Collector,
		Request:     t.Request,
	}
}

// answered is called when the headers of the response are there.
func (t *trace) answered(resp *http.Response) {
	if !t.isOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = resp.StatusCode
	t.date = dateOf(resp.Header)
}

// dateOf returns the time at which a server has sent a response, by its clock. It is zero if the
// header does not say: if Date is malformed, or if a cache has kept the response for some time (RFC
// 9111, section 5.1), so that Date is older.
func dateOf(h http.Header) time.Time {
	if age := h.Get("Age"); age != "" && age != "0" {
		return time.Time{}
	}
	date, _ := http.ParseTime(h.Get("Date"))
	return date
}

// setSigned records whether the request was signed.
func (t *trace) setSigned(signed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signed = signed
}

// again is called when the request is about to be sent once more. err is the error of the last
// attempt. It is nil if that got a response, with status 429 or 503.
func (t *trace) again(host *pace.Host, err error) {
	if !t.isOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		t.end(host, 0, err)
		t.kind = report.RequestRetry
		t.from = ""
	}
}

// ended is called when the exchange is over, before its place is given back. sent is false if the
// request was never written, for example because the connection was refused. Then no start is
// reported.
func (t *trace) ended(host *pace.Host, ticket *pace.Ticket, sent bool, bytes int64, err error) {
	if !t.isOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if private := (*report.PrivateNetworkError)(nil); !t.running && errors.As(err, &private) {
		t.report.TellUnsent(t.url, err, t.IDs)
		return
	}
	if !sent && !t.running {
		return
	}
	t.begin(host, ticket, false)
	t.end(host, bytes, err)
}

// end reports the end of an exchange that has started. t.mu is held.
func (t *trace) end(host *pace.Host, bytes int64, err error) {
	e := t.event(report.EventAnswered, host)
	e.Status = t.status
	e.Signed = t.signed
	e.Date = t.date
	if t.remote != nil {
		e.Remote = t.remote.String()
	}
	e.Bytes = bytes
	e.Took = e.Time.Sub(t.at)
	e.Err = redact.Error(err)
	t.report.Events.Send(e)
	t.running = false
	t.status = 0
	t.date = time.Time{}
}
