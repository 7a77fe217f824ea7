package backend

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

// A Governor decides about the requests of collectors. It must be comparable. Its methods are
// called on the goroutine of the request.
type Governor interface {
	// Knows reports whether a hook has let a request with this URL through: the same pointer.
	Knows(u *url.URL) bool
	// Before is asked before an exchange, redirect hops included. It may wait. Its error refuses
	// the exchange, and reaches Colly's OnError and Visit inside a *url.Error; else the Trip is
	// told what becomes of it. A nil Trip is nobody's.
	Before(s *Seam, req *http.Request) (Trip, error)
	// Followed is told of a redirect hop that a transport has followed by itself. Before is asked about
	// that hop when its response is there already; an error keeps the response from the collector.
	Followed(hop *http.Request)
	// Stray is told of a request that is nobody's, by a collector which shares its backend with
	// one of the governor's. It is on its way and must not be changed.
	Stray(req *http.Request)
}

// A Trip is told of one exchange on the wire, in the order of its methods.
type Trip interface {
	// Guarded reports whether Peer is asked about addresses before they are dialled.
	Guarded() bool
	// Peer is told the address of the connection on which the request is about to be written, and,
	// if Guarded, of those that are dialled for it. hop is the "host:port" that has the address:
	// the server's, or a proxy's. Its error ends the exchange, and the request is not written. Of a
	// transport that is no *http.Transport nothing is told.
	Peer(hop string, addr net.Addr) error
	// Ready reports whether the request may still be written. It is asked when the transport is
	// about to get it and, if that reports connections, last of all when there is one. If not,
	// Again is asked, and Ready once more.
	Ready() bool
	// Deadline is asked after Ready. It returns by when the exchange must have ended, and what its
	// error is then; the zero time: there is no limit.
	Deadline() (by time.Time, late error)
	// Sent is told when the request's headers were written, if the transport reports that.
	Sent()
	// Again is asked when the transport sends the request once more, as net/http does if the server
	// dropped the connection it had kept, and when the request was not Ready. It may wait, until ctx
	// ends; its error ends the exchange. Nothing else is asked meanwhile, nor told but Peer and Sent.
	Again(ctx context.Context) error
	// Answered is called when the headers of the response are there. If again is true, the caller of
	// RoundTrip does not get the response: its body is closed, Again is called, and the request is
	// sent once more. If report is not nil, it is called next, while no lock is held, so it may take
	// any time. The exchange, and so the trip, may end meanwhile: report must not use the trip.
	Answered(resp *http.Response) (again bool, report func())
	// Ended is told once when the exchange is over: it failed, with err, or its body was closed.
	// octets were read of that; err may also be why no more were.
	Ended(octets int64, err error)
}

// Mark returns a context whose requests g governs. Colly's Clone copies its collector's.
func Mark(ctx context.Context, g Governor) context.Context {
	if before, ok := ctx.(*marked); ok {
		ctx = before.Context // one collector may have many governors, one after the other
	}
	m := &marked{Context: ctx}
	m.governor.Store(&g)
	return m
}

// TakeOver makes g govern the requests with a marked context in place of a governor that is over, and
// reports whether it did. Other goroutines may read the collector's Context meanwhile.
func TakeOver(ctx context.Context, g Governor, over func(Governor) bool) bool {
	m, ok := ctx.Value(mark{}).(*marked)
	if !ok {
		return false
	}
	before := m.governor.Load()
	return over(*before) && m.governor.CompareAndSwap(before, &g)
}

type (
	mark   struct{} // the key under which a *marked has itself
	marked struct {
		context.Context
		governor atomic.Pointer[Governor]
	}
)

// Value implements context.Context.
func (m *marked) Value(key any) any {
	if key == (mark{}) {
		return m
	}
	return m.Context.Value(key)
}

// Marked reports whether g governs the requests with a context.
func Marked(ctx context.Context, g Governor) bool { return markOf(ctx) == g }

// EverMarked reports whether a governor governs the requests with a context, or did so before.
func EverMarked(ctx context.Context) bool { return markOf(ctx) != nil }

// markOf returns who governs the requests with a context, or nil.
func markOf(ctx context.Context) Governor {
	if m, ok := ctx.Value(mark{}).(*marked); ok {
		return *m.governor.Load()
	}
	return nil
}

// governorOf returns who governs req, or nil: its collector's, by the mark in its context; that of
// the request which led to this hop; or who has let it through in a hook, though the user has
// replaced the collector's Context since.
func (s *Seam) governorOf(req *http.Request) Governor {
	if g := markOf(req.Context()); g != nil {
		return g
	}
	if req.Response != nil && req.Response.Request != nil {
		return markOf(req.Response.Request.Context())
	}
	return s.governor(req)
}

// RoundTrip makes one exchange of a collector's.
func (s *Seam) RoundTrip(req *http.Request) (*http.Response, error) {
	g := s.governorOf(req)
	var trip Trip
	if g != nil {
		var err error
		if trip, err = g.Before(s, req); err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
	}
	if g == nil {
		s.stray(req)
	}
	if trip == nil {
		s.Keep()
		trip = nobody{}
	}
	for {
		resp, again, err := s.exchange(req, g, trip)
		if again == nil {
			return resp, err
		}
		io.CopyN(io.Discard, resp.Body, maxDrained)
		resp.Body.Close()
		trip, req = again, resp.Request
		if err := trip.Again(req.Context()); err != nil {
			trip.Ended(0, err)
			return nil, err
		}
		if req, err = rewound(req); err != nil {
			trip.Ended(0, err)
			return nil, err
		}
	}
}

// maxDrained is how much of an answer that nobody gets is read, so that its connection can be used
// again.
const maxDrained = 16 << 10

// exchange sends req once. If again is not nil, resp.Request is to be sent once more, as a part of
// that trip.
func (s *Seam) exchange(req *http.Request, g Governor, trip Trip) (resp *http.Response, again Trip, err error) {
	x := begin(req.Context(), s.Timeout(), trip)
	defer x.panicked()
	sent := req.WithContext(x)
	if !x.begins() {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, nil, x.failed(context.DeadlineExceeded)
	}
	resp, err = s.Transport().RoundTrip(sent)
	if sent.Context() != context.Context(x) {
		tellProxy(req, sent)
	}
	if err != nil {
		return nil, nil, x.failed(err)
	}
	if resp == nil {
		x.answered(nil)
		return nil, nil, nil
	}
	if resp.Request, err = s.follow(x, req, resp, g); err != nil {
		if resp.Body != nil {
			resp.Body.Close()
		}
		return nil, nil, x.failed(err)
	}
	if g != nil && markOf(resp.Request.Context()) == nil {
		resp.Request = resp.Request.WithContext(Mark(resp.Request.Context(), g)) // for the hop it may lead to
	}
	if x.answered(resp) {
		again = x.trip
	}
	return resp, again, nil
}

// Repeatable reports whether a request can be sent once more.
func Repeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// rewound returns req with its body from the beginning.
func rewound(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again, nil
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the transport below.
func (s *Seam) CloseIdleConnections() {
	if c, ok := s.Transport().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// tellProxy hands on what Colly's proxy switchers leave in the context of the request they were
// shown: Request.ProxyURL.
func tellProxy(req, sent *http.Request) {
	if proxy := sent.Context().Value(colly.ProxyURLKey); proxy != nil {
		*req = *req.WithContext(context.WithValue(req.Context(), colly.ProxyURLKey, proxy))
	}
}

// Do makes one exchange with rt, of which trip is told: no cookies, no redirects, no governor. It
// may take timeout until its body is read; 0 is no limit. A nil rt is http.DefaultTransport.
func Do(rt http.RoundTripper, req *http.Request, timeout time.Duration, trip Trip) (*http.Response, error) {
	x := begin(req.Context(), timeout, trip)
	defer x.panicked()
	once := http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if !x.begins() {
		return nil, x.failed(context.DeadlineExceeded)
	}
	resp, err := once.Do(req.WithContext(x))
	if err != nil {
		return nil, x.failed(err)
	}
	resp = beforeRedirects(resp, req)
	x.answered(resp)
	return resp, nil
}

// nobody is the Trip of what no governor is told of.
type nobody struct{}

func (nobody) Guarded() bool                { return false }
func (nobody) Peer(string, net.Addr) error  { return nil }
func (nobody) Deadline() (time.Time, error) { return time.Time{}, nil }
func (nobody) Ready() bool                  { return true }
func (nobody) Sent()                        {}
func (nobody) Again(context.Context) error  { return nil }
func (nobody) Ended(int64, error)           {}

func (nobody) Answered(*http.Response) (again bool, report func()) { return false, nil }
