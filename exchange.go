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

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/netguard"
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

// guard returns the guard of a request for u on the host to, which the host from leads to. from is
// empty if the program makes the request. The guard is nil if the request may go to any address.
// Otherwise it is the error of the request if its connection shows that to is private. If that is
// already known, guard returns an error.
func (l *limiter) guard(from, to string, u *url.URL) (*PrivateNetworkError, error) {
	guarded, address := l.networks.Check(from, to)
	if !guarded {
		return nil, nil
	}
	guard := &PrivateNetworkError{URL: u.Redacted(), Address: address, From: from}
	if address != "" {
		return nil, guard
	}
	return guard, nil
}

// connected records the address of a connection to a host. It returns an error if a request with
// this guard, which may be nil, must not be sent on the connection.
func (l *limiter) connected(h netguard.Host, addr net.Addr, guard *PrivateNetworkError) error {
	from := ""
	if guard != nil {
		from = guard.From
	}
	address := l.networks.Connected(h, addr, from)
	if address == "" {
		return nil
	}
	err := &PrivateNetworkError{Address: address, From: from}
	if guard != nil {
		err.URL = guard.URL
	}
	return err
}

// isForbidden reports whether a request was not sent because its target must not be requested, or
// not from the site that led to it.
func isForbidden(err error) bool {
	private := (*PrivateNetworkError)(nil)
	return errors.As(err, &private) || errors.Is(err, colly.ErrForbiddenDomain) || errors.Is(err, feed.ErrElsewhere)
}

// forbidden reports whether u is on one of domains, which are names without a port.
func forbidden(domains []string, u *url.URL) bool {
	if len(domains) == 0 {
		return false
	}
	name := normalName(u.Host)
	return slices.ContainsFunc(domains, func(d string) bool { return d == u.Hostname() || normalName(d) == name })
}

// normalName returns the name of a host without its port, in the form that all spellings of the
// name have in common.
func normalName(host string) string {
	a, err := dialect.AuthorityOf(&url.URL{Scheme: "http", Host: host})
	if err != nil {
		return strings.ToLower(host)
	}
	return nameOf(a.Host)
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// isServer reports whether a connection to target, "host:port", is a connection to the host itself
// and not to a proxy.
func isServer(host, target string) bool {
	if port, ok := strings.CutPrefix(target, host); ok && (port == "" || port == ":80" || port == ":443") {
		return true
	}
	for _, scheme := range [...]string{"https", "http"} {
		a, err := dialect.AuthorityOf(&url.URL{Scheme: scheme, Host: target})
		if err == nil && a.Host == host {
			return true
		}
	}
	return false
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
	report *reporter
	url    *url.URL
	kind   report.RequestKind // Event.RequestKind
	from   string             // Event.From
	numbers

	// mu protects the fields below it. It is held while an event of the exchange is sent, so that the
	// events have the order of what happened.
	mu       sync.Mutex
	running  bool      // report.EventStarted was sent, and report.EventAnswered was not
	at       time.Time // of the start; valid while running
	status   int       // of the response; 0 before that
	signed   bool      // the request was signed when it was last sent
	date     time.Time // Event.Date
	remote   net.Addr  // of the connection; nil if it is not known
	decision *Decision // the decision that allows the request; nil for requests of the plugin's own
}

// decide records v, the verdict on u, when the request is about to start.
func (t *trace) decide(v *verdict, u *url.URL) {
	if !t.report.events.Active() {
		return
	}
	d := v.decision(u)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decision = &d
}

// connected is called when there is a connection to an address.
func (t *trace) connected(addr net.Addr) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = addr
}

// started is called when the exchange is on the wire.
func (t *trace) started(host *pace.Host, ticket *pace.Ticket) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(host, ticket, true)
}

// begin reports the start, unless it was reported before. If sent is true, the exchange reaches the
// wire now. Otherwise it has started when ticket says. t.mu is held.
//
// The lock of all starts makes listeners get them in the order of their times.
func (t *trace) begin(host *pace.Host, ticket *pace.Ticket, sent bool) {
	if t.running {
		return
	}
	t.report.starts.Lock()
	defer t.report.starts.Unlock()
	if sent {
		ticket.Sent(time.Now())
	}
	s := ticket.Report()
	t.running = true
	t.at = s.At
	t.report.tellStarted(t, host, s)
}

// answered is called when the headers of the response are there.
func (t *trace) answered(resp *http.Response) {
	if !t.report.events.Active() {
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
	if !t.report.events.Active() {
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
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if private := (*PrivateNetworkError)(nil); !t.running && errors.As(err, &private) {
		t.report.tellUnsent(t.url, err, t.numbers)
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
	t.report.tellAnswered(t, host, bytes, err)
	t.running = false
	t.status = 0
	t.date = time.Time{}
}
