package collyrobots

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

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
)

// A client is a collector or an http.Client. The plugin makes requests of its own on its behalf.
type client interface {
	// seam returns the seam of the client, or nil if there is none.
	seam() *backend.Seam
	// userAgent returns the collector's UserAgent, or nil if it is not known.
	userAgent() *string
	// forbids reports whether the user has forbidden the domain of u.
	forbids(u *url.URL) bool
	// caller returns the Caller of a policy.Way, or nil if the seam identifies the client.
	caller() any
}

// A seamClient is the client of a request whose collector is not known. Without a seam it is the
// client of a program without a collector.
type seamClient struct {
	through *backend.Seam
	name    *string // the collector's UserAgent; nil if it is not known
}

func (c seamClient) seam() *backend.Seam { return c.through }

func (c seamClient) userAgent() *string { return c.name }

func (c seamClient) caller() any { return nil }

// forbids implements client. Any of the seam's collectors may have made the request.
func (c seamClient) forbids(u *url.URL) bool {
	if c.through == nil {
		return false
	}
	return slices.ContainsFunc(c.through.Collectors(), func(c *colly.Collector) bool { return forbidden(c.DisallowedDomains, u) })
}

// A lead says why the plugin makes a request of its own.
type lead struct {
	kind report.RequestKind // report.RequestRobots, report.RequestSitemap or report.RequestTDM
	origin
	client client
}

// An origin says which host led to a URL, and which host pays for the requests to other sites.
type origin struct {
	host  string // "" if the program requests the URL
	payer string // "" if the requests are not counted
}

// guardedBy returns the origin of a request with a guard. If guard is nil, the host of the origin
// is empty, and the request may go to any address.
func guardedBy(guard *PrivateNetworkError, payer string) origin {
	if guard == nil {
		return origin{payer: payer}
	}
	return origin{host: guard.From, payer: payer}
}

// A fetcher says how robots.txt is fetched when a request needs it.
type fetcher struct {
	limiter  *limiter
	client   client
	from     origin      // of the request
	header   http.Header // of the request; nil if it is one of the plugin's own
	changed  bool        // header has changed since robots.txt was requested with it
	readsTDM bool        // the TDMRep file is also fetched if the request needs it
}

// nameFor returns the name under which robots.txt is read for a request with a user agent.
func (f *fetcher) nameFor(s *hostSettings, userAgent string) string {
	if name := f.client.userAgent(); name != nil && s.byCollector() {
		return *name // which may be empty, as for the built-in check
	}
	return userAgent
}

// policyFetch returns a policy.Fetch that requests the robots.txt of a under a user agent.
func (f *fetcher) policyFetch(a dialect.Authority, userAgent string) policy.Fetch {
	l := f.limiter
	requests := &robotsRequests{
		limiter: l,
		first:   lead{kind: report.RequestRobots, origin: f.from, client: f.client},
		seam:    f.client.seam(),
	}
	fetch := policy.Fetch{UserAgent: userAgent, Do: requests.do, Proxy: requests.proxy}
	switch {
	case l.client != nil:
		fetch.Limit = l.client.Timeout
		fetch.Way.Client = fetch.Limit
	case requests.seam != nil:
		fetch.Limit = requests.seam.Timeout()
		addHeaders(&fetch, f.header, requests.seam.Jar())
		fetch.Way.Client = clientWay{client: requests.seam.Way(), header: fmt.Sprint(fetch.Header)}
	}
	fetch.Way.Proxy = fixedProxy(l.transport(requests.seam), a)
	fetch.Way.Caller = f.client.caller()
	if f.changed {
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
	limiter *limiter
	seam    *backend.Seam
	first   lead           // of the first request of each attempt
	next    lead           // of the next request
	via     atomic.Value   // string: "host:port" of the proxy of the last request; "" if there is none
	open    []openExchange // the exchanges whose bodies may still be open
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
	at := hostOf(req.URL)
	x := &exchange{limiter: r.limiter}
	host := r.limiter.hosts.At(time.Now(), at)
	if len(r.open) > 0 {
		r.limiter.join(req.Context(), host, r.limiter.transport(r.seam), req.URL)
	}
	r.open = slices.DeleteFunc(r.open, func(o openExchange) bool { return o.endBefore(x, host) })
	resp, _, err := x.send(r.traced(req, at), r.seam, 0, r.next)
	if err == nil && x.locked {
		resp.Body.Close()
		resp = nil
		err = errProxyAuth
	}
	if err == nil {
		r.open = append(r.open, openExchange{exchange: x, body: resp.Body})
		if isRedirect(resp.StatusCode) {
			r.next.host = at
			r.next.payer = cmp.Or(r.next.payer, at)
		}
	}
	return resp, r.forPolicy(err)
}

// traced returns req with a trace that finds its proxy. host is the host that req is for.
func (r *robotsRequests) traced(req *http.Request, host string) *http.Request {
	r.via.Store("")
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			if !isServer(host, hostPort) {
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
// about the site are wrapped in a policyError.
func (r *robotsRequests) forPolicy(err error) error {
	unpaced := (*PaceError)(nil)
	excess := (*netguard.QuotaError)(nil)
	switch {
	case errors.As(err, &unpaced), errors.As(err, &excess) && r.first.payer != "":
		return policyError{error: err, kind: policy.ErrUnsent}
	case r.next.host != "" && isForbidden(err):
		return policyError{error: err, kind: policy.ErrForbidden}
	}
	return err
}

// A policyError adds one of the errors of package policy to an error, so that the package can tell
// which kind of error it is.
type policyError struct {
	error
	kind error // policy.ErrUnsent or policy.ErrForbidden
}

func (e policyError) Unwrap() []error { return []error{e.error, e.kind} }

// errProxyAuth is the error of a robots.txt if a proxy responds in place of the site.
var errProxyAuth = errors.New("collyrobots: the proxy requires authentication: status 407")

// An openExchange is an exchange of a fetch whose body may still be open.
type openExchange struct {
	*exchange
	body io.ReadCloser
}

// endBefore ends the exchange before x, which goes to the host at, and reports whether it has done
// so.
//
// If processes share the pace and at has another pace, the exchange stays open. Its lease then
// keeps the other processes from fetching the same file. But its body is read, so that its
// connection is free for x: it may be the connection to a proxy.
func (o openExchange) endBefore(x *exchange, at *pace.Host) bool {
	if o.limiter.shared && !o.host.SharesPace(at) {
		io.CopyN(io.Discard, o.body, maxRedirectBody)
		return false
	}
	o.ticket.Pass(&x.ticket)
	o.body.Close()
	return true
}

// maxRedirectBody is how many bytes of a redirect's body are read, so that its connection can be
// used again.
const maxRedirectBody = 2 << 10
