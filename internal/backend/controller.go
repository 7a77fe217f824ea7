package backend

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// A Controller decides about the requests of collectors, or of an http.Client. It must be
// comparable. Its methods are called by the goroutine that sends the request.
type Controller interface {
	// Knows reports whether a hook of the Controller has accepted a request with this URL. It
	// compares the pointer.
	Knows(u *url.URL) bool
	// Before is called before a request is sent, also for each redirect. It may wait. If it returns
	// an error, the request is not sent, and Colly's OnError and Visit receive the error inside a
	// *url.Error. Otherwise the Trip is called while the request is sent. If the Trip is nil, the
	// request is sent without one.
	Before(s *Seam, req *http.Request) (Trip, error)
	// Redirected is called for each redirect when the redirect check of its collector has returned
	// err.
	Redirected(req *http.Request, err error)
	// Followed is called for a redirect that a transport has followed by itself. Before is called
	// next with the same request, although its response is already there. If Before returns an
	// error, the collector does not get the response.
	Followed(redirect *http.Request)
	// Stray is called for a request that has no controller. Its collector shares a backend with a
	// collector of this Controller. The request is being sent and must not be changed.
	Stray(req *http.Request)
}

// A Trip follows one request on the wire. Ready is its first method and Ended its last.
type Trip interface {
	// Ready reports whether the request may be written now, and returns the terms. It is called
	// before the request is given to the transport and, if the transport reports its connections,
	// again when there is one. If Ready returns false, Again is called and then Ready again.
	Ready() (terms Terms, ok bool)
	// Header returns fields that are added to the request that the transport gets. The request of
	// the caller, and a redirect that follows it, do not get them. It may return nil.
	Header() http.Header
	// Again is called before the transport sends the request once more. net/http does this if the
	// server has closed a connection that was kept alive. Again is also called if Ready has
	// returned false. It may wait until ctx is done. If it returns an error, the request fails with
	// it. No other method except Peer and Sent is called while Again runs.
	Again(ctx context.Context) error
	// Peer is called with the address of a connection before the request is written on it. hostPort
	// is the server that has this address, or the proxy. If the terms ask for it, Peer is also
	// called before an address is dialled. If it returns an error, the request fails with it and is
	// not written. A transport that does not report its connections to net/http/httptrace never
	// causes a call.
	Peer(hostPort string, addr net.Addr) error
	// Sent is called when the headers of the request have been written, if the transport reports
	// it.
	Sent()
	// Answered is called when the headers of the response have arrived. If again is true, the
	// response is dropped, Again is called, and the request is sent once more. If report is not
	// nil, it is called next, without a lock, so it may take any time. The request may end while
	// report runs, so report must not use the Trip.
	Answered(resp *http.Response) (again bool, report func())
	// Failed is called when req has failed with err and got no response. If again is true, Again is
	// called, and the request is sent once more. Otherwise Ended is called. report is like that of
	// Answered.
	Failed(req *http.Request, err error) (again bool, report func())
	// Ended is called once: the request has failed, its time is up, or the body of the response was
	// read to the end or closed. bytes is the number of bytes of the body that were read. err is
	// the error of the request or of the body, or nil.
	Ended(bytes int64, err error)
}

// Terms limit a request that may be written.
type Terms struct {
	CheckDials bool      // Peer is also called for each address that is dialled
	Deadline   time.Time // when the request fails if it has not ended; zero if it may take any time
	Late       error     // the error of a request that fails at the Deadline

	// Sign adds a signature to the header of the request. If it is nil, the request is not signed.
	// The request is a copy that only the transport sees. Sign is called again with the same copy
	// if the transport sends the request once more.
	Sign func(*http.Request)
}

// noTrip is the Trip of a request that has none.
type noTrip struct{}

func (noTrip) Ready() (terms Terms, ok bool) { return Terms{}, true }
func (noTrip) Header() http.Header           { return nil }
func (noTrip) Again(context.Context) error   { return nil }
func (noTrip) Peer(string, net.Addr) error   { return nil }
func (noTrip) Sent()                         {}
func (noTrip) Ended(int64, error)            {}

func (noTrip) Answered(*http.Response) (again bool, report func()) { return false, nil }

func (noTrip) Failed(*http.Request, error) (again bool, report func()) { return false, nil }
