package collyrobots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// hasRobots reports whether robots.txt has a say about u.
func hasRobots(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// A limiter keeps the pace of all hosts: http and https of a host are one, another port is another
// host.
type limiter struct {
	hosts  *pace.Hosts
	client *http.Client // for the plugin's own exchanges; nil: the collector's
	report *report
	shared bool // other processes ask the hosts, too: SharedPace

	networks *netguard.Guard
	quota    *netguard.Quota // of requests to other sites
}

func newLimiter(s *settings, client *http.Client, allowPrivate bool, r *report) *limiter {
	hosts := pace.New(func(host string) *pace.Rules { return &s.of(host).pace })
	l := &limiter{hosts: hosts, client: client, report: r}
	l.networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, allowPrivate)
	l.quota = netguard.NewQuota(feed.Registrable, feed.ErrElsewhere)
	return l
}

// share makes all hosts ask p.
func (l *limiter) share(p pace.Pacer) {
	l.hosts.Share(p)
	l.shared = true
}

// learn puts the crawl delay of a robots.txt that was just read in force at its host. It is called
// before the place of the last request for the file is given back, so no other request comes between.
func (l *limiter) learn(s *hostSettings, reader string, pol *policy.Policy) {
	now := time.Now()
	server, _ := policy.Server(pol.Authority)
	l.setCrawlDelay(now, l.hosts.At(now, server), s, reader, pol)
}

// found is called for a site whose robots.txt another process, such as an earlier run, has left in
// the Store. private says that the file came from a private address.
func (l *limiter) found(a dialect.Authority, private bool) {
	server, _ := policy.Server(a)
	host := l.hosts.At(time.Now(), server)
	if private {
		l.networks.SetPrivate(host)
	}
	if !l.shared {
		host.AskedBefore() // the Store does not say when
	}
}

// private reports whether the server of an authority is at a private address.
func (l *limiter) private(a dialect.Authority) bool {
	server, _ := policy.Server(a)
	return l.networks.Private(server)
}

// setCrawlDelay puts the crawl delay of a robots.txt in force at its host, and returns its source. If
// the file cannot be read now, the last one that was read decides.
func (l *limiter) setCrawlDelay(now time.Time, host *pace.Host, s *hostSettings, reader string, pol *policy.Policy) pace.Source {
	delay, line, known := pol.LastCrawlDelay()
	source := sourceOf(pol.Authority, reader, line)
	if !known || delay == 0 && host.Plain() {
		return source
	}
	changed := host.SetCrawlDelay(now, source, delay, pol.Expires())
	if changed {
		l.warnOfDelay(s, pol.RobotsURL(), delay)
	}
	return source
}

// warnOfDelay warns of a crawl delay that is longer than the options accept.
func (l *limiter) warnOfDelay(s *hostSettings, robotsURL string, delay time.Duration) {
	switch {
	case s.skips(delay):
		l.report.log.Warn("crawl delay is longer than SkipAbove, host is skipped", "robots", robotsURL, "delay", delay, "limit", s.skipAbove)
	case s.caps(delay):
		l.report.log.Warn("crawl delay is longer than MaxDelay, capped", "robots", robotsURL, "delay", delay, "limit", s.maxDelay)
	}
}

// sourceOf returns the source of a crawl delay. The sites that one server has under several names
// are separate sources: the longest of their delays is kept.
func sourceOf(a dialect.Authority, reader string, line int) pace.Source {
	if policy.IsVirtual(a) {
		reader += " " + a.Host
	}
	return pace.Source{Scheme: a.Scheme, Reader: reader, Line: line}
}

// throttled reports whether an answer asks for fewer requests.
func throttled(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
}

// answered records a response, which counts as a number of pages, and backs off on 429 or 503, which
// count as no page. report, which may be nil, logs the back-off.
func (l *limiter) answered(q *exchange, resp *http.Response, pages int) (report func()) {
	if !throttled(resp) {
		if q.host.Answered(&q.ticket, resp.StatusCode, pages) {
			l.tellPace(EventRecovered, q, resp)
		}
		return nil
	}
	q.host.SetStatus(resp.StatusCode)
	now := time.Now()
	after := policy.RetryAfter(resp.Header, now)
	slower := false
	if resp.StatusCode == http.StatusServiceUnavailable && after == 0 {
		slower = q.host.Unavailable(now, &q.ticket)
	} else {
		slower = q.host.SlowDown(now, &q.ticket, after)
	}
	if !slower {
		return nil
	}
	l.tellPace(EventSlowed, q, resp)
	s := q.host.Stats(now)
	why, told := slog.Duration("delay", s.BackOff.Round(time.Millisecond)), uint8(toldBackOff)
	if !s.NotBefore.IsZero() {
		why, told = slog.Time("until", s.NotBefore), toldRetryAfter
	}
	q.host.First(told)
	facts := []any{"host", s.Host, "url", resp.Request.URL.Redacted(), "status", resp.StatusCode, why, "count", s.Waiting}
	return func() { l.report.log.Warn("slowing down for a host that is busy", facts...) }
}

// tellPace tells listeners that an answer has changed the pace of its host.
func (l *limiter) tellPace(kind EventKind, q *exchange, resp *http.Response) {
	if !l.report.events.Active() {
		return
	}
	now := time.Now()
	s := q.host.Stats(now)
	l.report.events.Send(Event{
		Kind: kind, Time: now, Host: s.Host, URL: q.trace.url.Redacted(), Collector: q.trace.collector, Request: q.trace.request,
		Delay: s.Delay, Source: DelaySource(s.Cause), Line: s.Line, Status: resp.StatusCode, Until: s.NotBefore,
	})
}

// longWait is for how long a host may keep its pages waiting without a word.
const longWait = 10 * time.Second

// sayWhy says, once for each host and cause, that its pages wait for long. It is called when one
// more is about to.
func (l *limiter) sayWhy(now time.Time, host *pace.Host, pol *policy.Policy) {
	if host.StartsWithin(now, longWait) {
		return
	}
	s := host.Stats(now)
	why, first, option := "Crawl-delay", false, slog.String("option", "MaxDelay")
	switch s.Cause {
	case pace.RetryAfter:
		why, first, option = "Retry-After", host.First(toldRetryAfter), slog.Attr{} // no option shortens it
	case pace.BackOff:
		why, first, option = "status 429 or 503", host.First(toldBackOff), slog.String("option", "MaxBackOff")
	case pace.MinDelay:
		why, first, option = "MinDelay", l.report.first("MinDelay"), slog.String("option", "MinDelay") // it is the user's own, for all hosts
	default:
		first = host.First(toldCrawlDelay)
	}
	if first {
		l.report.log.Info("pages wait long for their host because of "+why, "host", s.Host, "robots", pol.RobotsURL(),
			"count", s.Waiting+1, "delay", s.Delay, "until", s.NextStart, option)
	}
}

// fetch returns how robots.txt is fetched for a collector with this seam, which may be nil, and
// this user agent. led says what led to the file. Redirects to other sites are charged to the site
// that pays for the file, or else to the site of the file. page is the header of the page that
// robots.txt is needed for; nil if there is none.
func (l *limiter) fetch(s *backend.Seam, userAgent string, led lead, page http.Header) policy.Fetch {
	f := policy.Fetch{UserAgent: userAgent}
	var proxy atomic.Value
	f.Proxy = func() string {
		name, _ := proxy.Load().(string)
		return name
	}
	from := led // what led to the next request
	var open []answered
	f.Do = func(req *http.Request) (*http.Response, error) {
		if req.Response == nil {
			from = led
		}
		at := hostOf(req.URL)
		proxy.Store("")
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GetConn: func(hop string) {
				if !isServer(at, hop) {
					proxy.Store(hop)
				}
			},
			ConnectStart: func(string, string) {}, // instead of the one of the page's own trace
		}))
		x := new(exchange)
		open = slices.DeleteFunc(open, func(before answered) bool { return before.leadsTo(x, at) })
		resp, _, err := l.exchange(x, s, req, 0, from)
		if err == nil && x.locked {
			resp.Body.Close()
			resp, err = nil, errProxyAuth
		}
		if err == nil {
			open = append(open, answered{x, resp.Body})
			if isRedirect(resp.StatusCode) {
				from.host = at
				from.payer = cmp.Or(from.payer, at)
			}
		}
		unpaced, excess := (*PaceError)(nil), (*netguard.QuotaError)(nil)
		switch {
		case errors.As(err, &unpaced), errors.As(err, &excess) && led.payer != "":
			err = policyError{err, policy.ErrUnsent}
		case from.host != "" && isForbidden(err):
			err = policyError{err, policy.ErrForbidden}
		}
		return resp, err
	}
	switch {
	case l.client != nil:
		f.Limit = l.client.Timeout
		f.Way.Client = f.Limit
	case s != nil:
		f.Limit = s.Timeout()
		addHeaders(&f, page, s.Jar())
		f.Way.Client = clientWay{s.Way(), fmt.Sprint(f.Header)}
	}
	return f
}

// A clientWay is how a client fetches robots.txt for a page.
type clientWay struct {
	client backend.Way
	header string // of the page, for its proxy
}

// errProxyAuth is why a robots.txt has no answer where a proxy gave one that says nothing of it.
var errProxyAuth = errors.New("collyrobots: the proxy wants to know who asks: status 407")

// answered is an exchange of a fetch whose body may still be open.
type answered struct {
	*exchange
	body io.ReadCloser
}

// leadsTo ends the exchange before x, which is to the host at. It reports false where that is
// another host and processes share it: they shall not fetch the same file meanwhile. Then only the
// connection is given back: through a proxy it may be the one that x needs.
func (a answered) leadsTo(x *exchange, at string) bool {
	if a.limiter.shared && a.host.Name() != at {
		io.CopyN(io.Discard, a.body, maxRedirectBody)
		return false
	}
	a.ticket.Pass(&x.ticket)
	a.body.Close()
	return true
}

// maxRedirectBody is how much of a redirect's body is read so that its connection can be used again.
const maxRedirectBody = 2 << 10

// A lead says how the plugin came to a URL.
type lead struct {
	kind RequestKind // RequestRobots or RequestSitemap
	origin
	user interface {
		forbids(u *url.URL) bool // reports whether u's domain is never to be asked
	}
}

// An origin says which host led to a URL, and which one pays for the requests to other sites.
type origin struct {
	host  string // that led there; "" if the program requests it
	payer string // "" if the requests are not counted
}

// hostOf returns the name under which u's host is known; "": it has none.
func hostOf(u *url.URL) string {
	a, _ := dialect.AuthorityOf(u)
	return a.Host
}

// A policyError is an error and what it is to package policy.
type policyError struct {
	error
	kind error
}

func (e policyError) Unwrap() []error { return []error{e.error, e.kind} }

func isRedirect(status int) bool { return status >= 300 && status < 400 }

// exchange makes one HTTP exchange, x, on the plugin's own account (robots.txt, sitemaps): paced as
// everything that goes to the host, through the collector's proxy and TLS settings, without its
// cookies, and following no redirect. timeout is for the exchange alone, from its start to the end
// of the body, without the wait before it; 0: none. began is when the exchange started, the zero time
// if it did not.
func (l *limiter) exchange(x *exchange, s *backend.Seam, req *http.Request, timeout time.Duration, from lead) (resp *http.Response, began time.Time, err error) {
	a, err := dialect.AuthorityOf(req.URL)
	if err != nil {
		return nil, time.Time{}, err
	}
	x.limiter, x.host, x.through = l, l.hosts.At(time.Now(), a.Host), l.transport(s)
	x.trace.events = l.report.events
	x.trace.url = req.URL
	x.trace.kind = from.kind
	if from.kind == RequestRobots {
		x.ticket.Renew()
	}
	if l.quota.Applies(from.payer, a.Host) {
		x.payer = from.payer
	}
	if x.guard, err = l.ask(from, a.Host, req.URL); err != nil {
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

// ask returns an error if u, which is on host, must not be requested because of what led there.
// guard is for what only the connection shows.
func (l *limiter) ask(from lead, host string, u *url.URL) (guard *PrivateNetworkError, err error) {
	if from.host != "" && from.host != host && from.user.forbids(u) {
		return nil, fmt.Errorf("collyrobots: %s leads to %s: %w", from.host, u.Redacted(), colly.ErrForbiddenDomain)
	}
	err = l.quota.Check(from.payer, host)
	if err != nil {
		return nil, err
	}
	return l.guard(from.host, host, u)
}

// transport returns what the plugin's own exchanges go through.
func (l *limiter) transport(s *backend.Seam) http.RoundTripper {
	switch {
	case l.client != nil:
		return l.client.Transport
	case s != nil:
		return s.Transport()
	}
	return http.DefaultTransport
}

// An exchange is one request on the wire and its place with its host. It implements backend.Trip.
type exchange struct {
	limiter *limiter
	host    *pace.Host
	ticket  pace.Ticket
	guard   *PrivateNetworkError // what becomes of it if it would go to a private address; nil: it may
	met     bool                 // the transport has reported a connection
	payer   string               // the site that the request is charged to, since it goes to another site; "": none
	hop     string               // "host:port" that it went to, the server's or a proxy's; "": not known
	locked  bool                 // a proxy that it went through wants to know who asks
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

// Peer implements backend.Trip.
func (x *exchange) Peer(hop string, addr net.Addr) error {
	x.hop, x.met = hop, true
	if !isServer(x.host.Name(), hop) {
		return nil
	}
	return x.limiter.connected(x.host, addr, x.guard)
}

// takeTurn waits until x may go on the wire, and hands it over. After an error x holds nothing.
//
// If robots.txt has to be read again first, x gives its turn back, since that takes a turn too. When
// x has its next turn, the file may be too old again. Then it is not read once more.
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
	if x.payer != "" {
		if err := x.limiter.quota.Charge(x.payer, x.host.Name()); err != nil {
			return err
		}
		return x.host.StartLed(ctx, &x.ticket, policy.Wanted(ctx))
	}
	return x.host.StartIf(ctx, &x.ticket, policy.Wanted(ctx))
}

// Ready implements backend.Trip.
func (x *exchange) Ready() (terms backend.Terms, ok bool) {
	terms.CheckDials = x.guard != nil
	if x.limiter.shared {
		terms.Deadline = x.ticket.Deadline()
		terms.Late = ErrLeaseEnded
	}
	return terms, !x.ticket.Late() && (!x.limiter.shared || x.ticket.Valid())
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
	x.locked = resp.StatusCode == http.StatusProxyAuthRequired && x.hop != "" && !isServer(x.host.Name(), x.hop)
	return false, x.answer(resp, 0)
}

// answer records a response, which counts as a number of pages. report, which may be nil, logs what
// is to be said about it.
func (x *exchange) answer(resp *http.Response, pages int) (report func()) {
	x.trace.answered(resp)
	backOff := x.limiter.answered(x, resp, pages)
	if x.guard == nil || x.met {
		return backOff
	}
	r, through := x.limiter.report, x.through
	return func() {
		r.warn("a transport reports no connections, so names that lead to private addresses are not refused: "+
			"let it pass the context of its request on to an http.Transport, or refuse such addresses in its dialer",
			"transport", fmt.Sprintf("%T", through))
		if backOff != nil {
			backOff()
		}
	}
}

// Ended implements backend.Trip.
func (x *exchange) Ended(bytes int64, err error) {
	x.trace.ended(x.host, &x.ticket, x.sent.Load(), bytes, err)
	x.giveBack()
}
