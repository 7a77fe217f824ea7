package collyrobots

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// A client is a collector, or another user of the plugin, for which the plugin makes requests of its
// own.
type client interface {
	// seam returns the seam of the collector; nil if there is none.
	seam() *backend.Seam
	// userAgent returns the collector's UserAgent; nil if it is not known.
	userAgent() *string
	// forbids reports whether the user has forbidden the domain of u.
	forbids(u *url.URL) bool
	// caller identifies the client in a policy.Way; nil if its seam is enough.
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

// A lead says how the plugin came to the URL of a request of its own.
type lead struct {
	kind RequestKind // RequestRobots or RequestSitemap
	origin
	client client
}

// An origin says which host led to a URL, and which host pays for the requests to other sites.
type origin struct {
	host  string // "" if the program requests the URL
	payer string // "" if the requests are not counted
}

// guardedBy returns the origin of a request with a guard, which may be nil.
func guardedBy(guard *PrivateNetworkError, payer string) origin {
	if guard == nil {
		return origin{payer: payer}
	}
	return origin{host: guard.From, payer: payer}
}

// A fetcher says how robots.txt is fetched when a request needs it.
type fetcher struct {
	limiter *limiter
	client  client
	from    origin      // of the request
	page    http.Header // the header of the request; nil if the plugin itself makes it
	changed bool        // page has changed since robots.txt was requested with it
}

// nameFor returns the name under which robots.txt is read for a request with a user agent.
func (f *fetcher) nameFor(s *hostSettings, userAgent string) string {
	if name := f.client.userAgent(); name != nil && s.byCollector() {
		return *name // which may be empty, as for the built-in check
	}
	return userAgent
}

// how returns how to fetch robots.txt under a user agent.
func (f *fetcher) how(userAgent string) policy.Fetch {
	l := f.limiter
	requests := &robotsRequests{
		limiter: l,
		first:   lead{kind: RequestRobots, origin: f.from, client: f.client},
		seam:    f.client.seam(),
	}
	how := policy.Fetch{UserAgent: userAgent, Do: requests.do, Proxy: requests.proxy}
	switch {
	case l.client != nil:
		how.Limit = l.client.Timeout
		how.Way.Client = how.Limit
	case requests.seam != nil:
		how.Limit = requests.seam.Timeout()
		addHeaders(&how, f.page, requests.seam.Jar())
		how.Way.Client = clientWay{client: requests.seam.Way(), header: fmt.Sprint(how.Header)}
	}
	how.Way.Caller = f.client.caller()
	if f.changed {
		how.Way.Caller = changedPage{caller: how.Way.Caller}
	}
	return how
}

// A clientWay is how a client fetches robots.txt for a page.
type clientWay struct {
	client backend.Way
	header string // of the page, for its proxy
}

// A changedPage is a caller that requests robots.txt once more because a callback has changed the
// header of its page, which may name a proxy.
type changedPage struct{ caller any }

// robotsRequests makes the requests for one robots.txt: each attempt, and the redirects that follow
// it. Redirects to other sites are charged to the site that pays for the file, or else to the site of
// the file.
type robotsRequests struct {
	limiter *limiter
	seam    *backend.Seam
	first   lead           // to the file
	next    lead           // to the request after the last response
	via     atomic.Value   // string: "host:port" of the proxy of the last request; "" if there is none
	open    []openExchange // whose bodies may still be open
}

// proxy returns the proxy of the last request; "" if there is none.
func (r *robotsRequests) proxy() string {
	name, _ := r.via.Load().(string)
	return name
}

// do makes one request.
func (r *robotsRequests) do(req *http.Request) (*http.Response, error) {
	if req.Response == nil {
		r.next = r.first
	}
	at := hostOf(req.URL)
	x := &exchange{limiter: r.limiter}
	r.open = slices.DeleteFunc(r.open, func(before openExchange) bool { return before.leadsTo(x, at) })
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

// traced returns req with a trace that finds the proxy on the way to a host.
func (r *robotsRequests) traced(req *http.Request, host string) *http.Request {
	r.via.Store("")
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			if !isServer(host, hostPort) {
				r.via.Store(hostPort)
			}
		},
		ConnectStart: func(string, string) {}, // instead of the one of the page's own trace
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}

// forPolicy returns an error of a request, which may be nil, with its meaning to package policy.
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

// A policyError is an error, and what it means to package policy.
type policyError struct {
	error
	kind error
}

func (e policyError) Unwrap() []error { return []error{e.error, e.kind} }

// errProxyAuth is the error of a robots.txt if a proxy responds in place of the site.
var errProxyAuth = errors.New("collyrobots: the proxy requires authentication: status 407")

// An openExchange is an exchange of a fetch whose body may still be open.
type openExchange struct {
	*exchange
	body io.ReadCloser
}

// leadsTo ends the exchange before x, which goes to the host at, and reports true. If at is another
// host, and processes share the pace, the exchange stays open, so that they do not fetch the same file
// in the meantime. Then only the connection is given back, because x may need it: it may be the
// connection to a proxy.
func (o openExchange) leadsTo(x *exchange, at string) bool {
	if o.limiter.shared && o.host.Name() != at {
		io.CopyN(io.Discard, o.body, maxRedirectBody)
		return false
	}
	o.ticket.Pass(&x.ticket)
	o.body.Close()
	return true
}

// maxRedirectBody is how many bytes of a redirect's body are read, so that its connection can be used
// again.
const maxRedirectBody = 2 << 10
