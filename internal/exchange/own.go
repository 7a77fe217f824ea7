package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A Client is a collector or an http.Client. The plugin makes requests of its own on its behalf.
type Client interface {
	// Seam returns the seam of the client, or nil if there is none.
	Seam() *backend.Seam
	// UserAgent returns the collector's UserAgent, or nil if it is not known.
	UserAgent() *string
	// Forbids returns an error if the user has forbidden the domain of u.
	Forbids(u *url.URL) error
	// Caller returns the Caller of a policy.Way, or nil if the seam identifies the client.
	Caller() any
}

// A SeamClient is the client of a request whose collector is not known. Without a seam it is the
// client of a program without a collector.
type SeamClient struct {
	Through *backend.Seam
	Name    *string // the collector's UserAgent; nil if it is not known
}

func (c SeamClient) Seam() *backend.Seam { return c.Through }

func (c SeamClient) UserAgent() *string { return c.Name }

func (c SeamClient) Caller() any { return nil }

// Forbids implements Client. Any of the seam's collectors may have made the request.
func (c SeamClient) Forbids(u *url.URL) error {
	if c.Through == nil {
		return nil
	}
	return c.Through.Forbids(u)
}

// A Lead says why the plugin makes a request of its own.
type Lead struct {
	Kind report.RequestKind // report.RequestRobots, report.RequestSitemap or report.RequestTDM
	Origin
	Client Client
	Page   *reporter.Page // that needs the file; nil if it is not known
}

// An Origin says which host led to a URL, and which host pays for the requests to other sites.
type Origin struct {
	Host  string // "" if the program requests the URL
	Payer string // "" if the requests are not counted
}

// GuardedBy returns the origin of a request with a guard. If guard is nil, the host of the origin
// is empty, and the request may go to any address.
func GuardedBy(guard *report.PrivateNetworkError, payer string) Origin {
	if guard == nil {
		return Origin{Payer: payer}
	}
	return Origin{Host: guard.From, Payer: payer}
}

// A Fetcher says how robots.txt is fetched when a request needs it.
type Fetcher struct {
	Wire     *Wire
	Client   Client
	From     Origin         // of the request
	Page     *reporter.Page // of the request; may be nil
	Header   http.Header    // of the request; nil if it is one of the plugin's own
	Changed  bool           // header has changed since robots.txt was requested with it
	ReadsTDM bool           // the TDMRep file is also fetched if the request needs it

	// ReadsText says that the text of robots.txt is needed: see policy.Fetch.Text.
	ReadsText bool

	// Turn is when the request had its turn and robots.txt had expired. The file is then read once. If the
	// request has to wait again until it has expired again, the newest file since Turn decides. If zero,
	// only a file that has not expired decides.
	Turn time.Time
}

// PolicyFetch returns a policy.Fetch that requests the robots.txt of a under a user agent.
func (f *Fetcher) PolicyFetch(a dialect.Authority, userAgent string) policy.Fetch {
	w := f.Wire
	requests := &robotsRequests{
		wire:  w,
		first: Lead{Kind: report.RequestRobots, Origin: f.From, Client: f.Client, Page: f.Page},
		seam:  f.Client.Seam(),
	}
	fetch := policy.Fetch{UserAgent: userAgent, Do: requests.do, Proxy: requests.proxy, Text: f.ReadsText}
	switch {
	case w.Client != nil:
		fetch.Limit = w.Client.Timeout
		fetch.Way.Client = fetch.Limit
	case requests.seam != nil:
		fetch.Limit = requests.seam.Timeout()
		addHeaders(&fetch, f.Header, requests.seam.Jar())
		fetch.Way.Client = clientWay{client: requests.seam.Way(), header: fmt.Sprint(fetch.Header)}
	}
	fetch.Way.Proxy = fixedProxy(w.transport(requests.seam), a)
	fetch.Way.Caller = f.Client.Caller()
	if f.Changed {
		fetch.Way.Caller = changedPage{caller: fetch.Way.Caller}
	}
	return fetch
}

// fixedProxy returns a name of the proxy that rt sends every request for the robots.txt of a
// through. It returns "" if there is none, or if the proxies may take turns. Paid proxies choose the
// server by the user name, so the name has a checksum of the URL. It has only 16 bits, because a
// Store keeps it, and a password must not be found with it.
func fixedProxy(rt http.RoundTripper, a dialect.Authority) string {
	robots, err := url.Parse(a.RobotsURL())
	if err != nil {
		return ""
	}
	proxy := backend.FixedProxy(rt, robots)
	if proxy == nil {
		return ""
	}
	sum := crc32.ChecksumIEEE([]byte(proxy.String()))
	return fmt.Sprintf("%s/%04x", proxy.Host, uint16(sum))
}

// A clientWay is the Client of a policy.Way: the client that requests robots.txt, and the headers
// that choose its proxy.
type clientWay struct {
	client backend.Way
	header string // the headers of the page that are for the proxy
}

// A changedPage is the Caller of a policy.Way if a callback has changed the headers of the page,
// which may name a proxy. So robots.txt is requested once more.
type changedPage struct{ caller any }

// robotsRequests makes the requests for one robots.txt: each attempt, and the redirects that follow
// it. Redirects to other sites are charged to the payer of the first request, or if it has none, to
// the host of the file.
type robotsRequests struct {
	wire  *Wire
	seam  *backend.Seam
	first Lead           // of the first request of each attempt
	next  Lead           // of the next request
	via   atomic.Value   // string: "host:port" of the proxy of the last request; "" if there is none
	open  []openExchange // the exchanges whose bodies may still be open
}

// proxy returns the proxy of the last request, or "" if there is none.
func (r *robotsRequests) proxy() string {
	name, _ := r.via.Load().(string)
	return name
}

// do makes one request. A request without a Response is the first of an attempt.
func (r *robotsRequests) do(req *http.Request) (*http.Response, error) {
	if req.Response == nil {
		r.next = r.first
	}
	at := hostname.Of(req.URL)
	x := &Exchange{Wire: r.wire}
	host := r.wire.Hosts.At(time.Now(), at)
	if len(r.open) > 0 {
		r.wire.Join(req.Context(), host, r.wire.transport(r.seam), req.URL)
	}
	r.open = slices.DeleteFunc(r.open, func(o openExchange) bool { return o.endBefore(x, host) })
	resp, _, err := x.Send(r.traced(req, at), r.seam, 0, r.next)
	if err == nil && x.needsProxyAuth {
		resp.Body.Close()
		resp = nil
		err = errProxyAuth
	}
	if err == nil {
		r.open = append(r.open, openExchange{Exchange: x, body: resp.Body})
		if IsRedirect(resp.StatusCode) {
			r.next.Host = at
			r.next.Payer = cmp.Or(r.next.Payer, at)
		}
	}
	return resp, r.forPolicy(err)
}

// traced returns req with a trace that finds its proxy. host is the host that req is for.
func (r *robotsRequests) traced(req *http.Request, host string) *http.Request {
	r.via.Store("")
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			if !hostname.IsServer(host, hostPort) {
				r.via.Store(hostPort)
			}
		},
		// req's context has the values of a page's context. policy.WithValues hides the ClientTrace
		// of the page, but package net finds the page's ConnectStart under a key of its own, which
		// only another ConnectStart replaces.
		ConnectStart: func(string, string) {},
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}

// forPolicy returns err, the error of a request, or nil if that is nil. Errors that say nothing
// about the site get one of the errors of package policy.
func (r *robotsRequests) forPolicy(err error) error {
	unpaced := (*report.PaceError)(nil)
	excess := (*netguard.QuotaError)(nil)
	switch {
	case errors.As(err, &unpaced), errors.As(err, &excess) && r.first.Payer != "":
		return WithKind(err, policy.ErrUnsent)
	case (r.next.Host != "" || r.wire.Networks.DeniesAll()) && IsForbidden(err):
		return WithKind(err, policy.ErrForbidden)
	}
	return err
}

// WithKind adds an error of another package to err, so that the package can tell which kind of error
// err is. The text stays that of err.
func WithKind(err, kind error) error { return kindError{error: err, kind: kind} }

type kindError struct {
	error
	kind error
}

func (e kindError) Unwrap() []error { return []error{e.error, e.kind} }

// errProxyAuth is the error of a robots.txt if a proxy responds in place of the site.
var errProxyAuth = errors.New("collyrobots: the proxy requires authentication: status 407")

// An openExchange is an exchange of a fetch whose body may still be open.
type openExchange struct {
	*Exchange
	body io.ReadCloser
}

// endBefore ends the exchange before x, which goes to the host at, and reports whether it has done
// so.
//
// If processes share the pace and at has another pace, the exchange stays open. Its lease then
// keeps the other processes from fetching the same file. But its body is read, so that its
// connection is free for x: it may be the connection to a proxy.
func (o openExchange) endBefore(x *Exchange, at *pace.Host) bool {
	if o.Wire.IsShared && !o.Host.SharesPace(at) {
		io.CopyN(io.Discard, o.body, MaxRedirectBody)
		return false
	}
	o.Ticket.Pass(&x.Ticket)
	o.body.Close()
	return true
}

// MaxRedirectBody is how many bytes of a redirect's body are read, so that its connection can be
// used again.
const MaxRedirectBody = 2 << 10
