package collyrobots

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/usage"
)

// Transport returns an http.RoundTripper that makes any http.Client polite. It sends requests with
// next. If next is nil, it uses the http.DefaultTransport of the time of the call, so a program may
// set http.DefaultTransport to the result:
//
//	client := &http.Client{Transport: robots.Transport(nil)}
//
// RoundTrip waits until the request may start, and then sends it. If the request must not be sent,
// the error is a *DeniedError, a *PrivateNetworkError, a *ShardError, a
// *PaceError or ErrClosed. http.Client wraps it in a *url.Error, so use errors.As and
// errors.Is. Each redirect is a request of its own, and is judged and paced like the first one.
//
// The wait ends with the context of the request, or its deprecated channel Cancel, and counts for
// the Timeout of an http.Client. A request is in flight until its body is read to the end or
// closed. Without a User-Agent header and the option ProductToken, the group for Go-http-client
// applies, which is the name that net/http sends, or the group for * if there is none.
//
// robots.txt is requested with next, or with the client of the option RobotsClient. Requests with
// other schemes than http, https and ftp are passed to next. The RoundTripper may be used by
// several goroutines, and CloseIdleConnections of http.Client reaches next.
//
// OnDenied is not called for requests of http.Clients, and FollowSitemaps does not read the
// sitemaps of their sites; see Pages. docs/any-client.md is the guide.
func (p *Plugin) Transport(next http.RoundTripper) http.RoundTripper {
	rt := &roundTripper{plugin: p}
	if p != nil && p.core != nil {
		rt.seam = backend.NewSeam(next, p.clients)
	}
	return rt
}

// A roundTripper is the result of Plugin.Transport.
type roundTripper struct {
	plugin *Plugin
	seam   *backend.Seam // nil if the plugin is zero
}

// RoundTrip implements http.RoundTripper.
func (rt *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	err := rt.usable(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	carried, err := rt.plugin.gate.AdmitWithin(rt.seam, req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if !carried {
		return rt.seam.RoundTrip(req)
	}
	return rt.seam.Transport().RoundTrip(req)
}

// usable returns an error if rt cannot send a request.
func (rt *roundTripper) usable(req *http.Request) error {
	err := rt.plugin.usable()
	if err != nil {
		return err
	}
	if req == nil || req.URL == nil {
		return ErrNilRequest
	}
	return nil
}

// CloseIdleConnections makes http.Client.CloseIdleConnections reach next.
func (rt *roundTripper) CloseIdleConnections() {
	if rt.seam != nil {
		rt.seam.CloseIdleConnections()
	}
}

// closeBody closes the body of a request that is not sent, as a RoundTripper has to. req may be nil.
func closeBody(req *http.Request) {
	if req != nil && req.Body != nil {
		req.Body.Close()
	}
}

// A Turn is the right to send one request. All methods may be called from any goroutine. The
// methods of a nil Turn do nothing.
type Turn struct {
	// mu protects the fields below it. It is held while the turn is answered or ended, so that both are
	// recorded as a whole.
	mu     sync.Mutex
	q      *gate.Request // nil if the request needs no turn
	status int           // of the response; 0 before Answered
	header http.Header   // of the response; may be nil
	ended  bool          // End was called, or the request needs no turn; then the methods do nothing
}

// Acquire is for clients that send their requests themselves, such as a headless browser. It
// decides about req and waits until it may start. Then the caller sends the request at once, calls
// Answered with the response, and calls End when the response was read. If there is no response, or
// the request was not sent, the caller calls Failed instead. Acquire neither sends req nor changes
// it. It uses the URL, the Host and the User-Agent header of req. For a
// redirect, set req.Response to the response that has led to it, and its Request field to the
// request before.
//
// Acquire returns an error if the request must not be sent: see Transport. If ctx ends, the error
// is its cause. The plugin requests robots.txt with the client of the option RobotsClient, or that
// of the first attached collector, or http.DefaultTransport. A request that is not http, https or
// ftp gets a Turn at once.
//
// A Turn that is never ended keeps its place with the host until that expires, like a page whose
// response is never read. It also expires under MaxInFlightPerHost.
func (p *Plugin) Acquire(ctx context.Context, req *http.Request) (*Turn, error) {
	err := p.usable()
	if err != nil {
		return nil, err
	}
	if req == nil || req.URL == nil {
		return nil, ErrNilRequest
	}
	if !judge.HasRobots(req.URL) {
		return &Turn{ended: true}, nil
	}
	ctx, _, f := p.own(ctx)
	q, err := p.gate.Acquire(ctx, req, f.Client)
	if err != nil {
		return nil, public(err)
	}
	return &Turn{q: q}, nil
}

// Decision returns the decision that allows the request. Its delays are those in force now. It is
// zero if the URL is not http, https or ftp.
func (t *Turn) Decision() Decision {
	if t == nil || t.q == nil {
		return Decision{}
	}
	return t.q.Decision()
}

// Usage returns what is known about the use of the page: the preferences in robots.txt, in the TDMRep
// file with the option TDMRep, and in the header that Answered got. It returns the zero Terms if robots.txt
// does not apply to the URL. It follows drafts; see package usage.
func (t *Turn) Usage() usage.Terms {
	if t == nil {
		return usage.Terms{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.q == nil {
		return usage.Terms{}
	}
	s := sourcesIn(t.q.Verdict())
	s.Status = t.status
	s.Header = t.header
	return s.Terms(t.q.URL())
}

// Answered reports the status and the header of the response. On 429 and 503 the plugin slows down,
// and it keeps the Retry-After of the header, which may be nil.
func (t *Turn) Answered(status int, header http.Header) {
	if t == nil {
		return
	}
	log := t.answered(status, header)
	if log != nil {
		log()
	}
}

// answered records a response. It returns a function that logs it, or nil.
func (t *Turn) answered(status int, header http.Header) (log func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	t.status = status
	t.header = header
	return t.q.Reply(status, header)
}

// End gives the place of the request back to its host. Only the first call of End or Failed has an
// effect.
func (t *Turn) End() { t.end(nil) }

// Failed is End for a request that got no response, or whose body could not be read, because of
// err. Events have err in an event of the kind report.EventAnswered. Failed(nil) is like End.
//
// If err wraps ErrNotSent, or is a *net.DNSError, syscall.ECONNREFUSED or a *net.OpError of dialing,
// the request was not sent. It is then not counted, but the next request to the host keeps the
// delay, because an attempt to connect is work for a server. If it was the probe of a host that
// StopAfterRefusals has stopped, the next page is. With any other err, the request may have
// reached the host. See docs/any-client.md.
func (t *Turn) Failed(err error) { t.end(typednil.Error(err)) }

// end ends the turn. err is that of Failed, or nil.
func (t *Turn) end(err error) {
	if t == nil {
		return
	}
	log := t.finish(err)
	if log != nil {
		log()
	}
}

// finish is end without the log message of a refusal. It returns a function that logs it, or nil.
func (t *Turn) finish(err error) (log func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	t.ended = true
	return t.q.Finish(err)
}

// A collectorClient sends the plugin's own requests as the collector would. It implements
// exchange.Client.
type collectorClient struct {
	c          *colly.Collector
	handle     *backend.Handle
	controller *controller
	inPlace    atomic.Pointer[backend.Seam] // the seam of the collector, as it was last found
}

// init sets the fields of the client of a collector that is being attached.
func (cc *collectorClient) init(ctl *controller, c *colly.Collector, h *backend.Handle, s *backend.Seam) {
	cc.c = c
	cc.handle = h
	cc.controller = ctl
	cc.inPlace.Store(s)
}

// Seam implements exchange.Client. It returns the seam of the collector, and puts one in place if necessary.
func (cc *collectorClient) Seam() *backend.Seam {
	before := cc.inPlace.Load()
	s := cc.handle.Watch(before, cc.controller)
	if s == before {
		return s
	}
	isNew := cc.inPlace.Swap(s) != s // otherwise another request has found it
	if isNew && cc.handle.Moved() {
		cc.controller.core.judge.Report.Warn("Collector.Init was called after Attach and has undone the collector's settings: call it before, or attach the collector once more after it")
	}
	return s
}

// UserAgent implements exchange.Client.
func (cc *collectorClient) UserAgent() *string { return &cc.c.UserAgent }

// Forbids implements exchange.Client.
func (cc *collectorClient) Forbids(u *url.URL) error { return backend.Forbids(cc.c, u) }

// Caller implements exchange.Client. Collectors that share a client may have different contexts, and a
// transport may choose the proxy by the context, so each collector is a caller of its own.
func (cc *collectorClient) Caller() any { return cc.c.ID }
