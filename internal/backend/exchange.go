package backend

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// An exchange is one request on the wire, from just before it is sent until its body is closed, it
// fails, or its time is up. It is also the body of its response.
type exchange struct {
	io.ReadCloser // the response's own body
	life          life
	trace         httptrace.ClientTrace
	timeout       time.Duration
	timer         *time.Timer // nil: no limit
	deadline      *time.Timer // of the trip; nil: none was set
	trip          Trip
	tries         int
	handedOn      bool         // the response, or an error: whoever has it ends the exchange
	octets        atomic.Int64 // of the body, read so far

	mu      sync.Mutex // held while trip is told of Peer, Ready, Sent and Answered: never after Ended
	over    bool
	refused bool   // by Peer
	fault   error  // of the body
	hop     string // "host:port" that the attempt goes to: the server, or a proxy
}

// begin starts an exchange that may take timeout, if that is more than 0. The time that Trip.Again
// takes does not count.
func begin(parent context.Context, timeout time.Duration, trip Trip) *exchange {
	x := &exchange{timeout: timeout, trip: trip}
	x.trace.GetConn, x.trace.GotConn, x.trace.WroteHeaders = x.try, x.connected, x.sent
	switch {
	case trip.Guarded(): // package net has a key of its own
		x.trace.ConnectStart = x.dialling
		parent = httptrace.WithClientTrace(parent, &x.trace)
	case httptrace.ContextClientTrace(parent) != nil: // the user's is told too
		parent = httptrace.WithClientTrace(parent, &x.trace)
	default:
		x.life.trace = &x.trace
	}
	x.life.start(parent)
	if timeout > 0 {
		x.timer = time.AfterFunc(timeout, x.timedOut)
	}
	return x
}

// try is called before each attempt of net/http to send the request, on the goroutine that makes
// it.
func (x *exchange) try(hop string) {
	x.mu.Lock()
	x.hop = hop
	x.mu.Unlock()
	if x.deadline != nil { // as long as nothing is written there is none: connected looks
		if !x.deadline.Stop() {
			return // too late
		}
		x.deadline = nil
	}
	if x.tries++; x.tries > 1 {
		x.again()
	}
}

// again asks the trip whether the request may be sent once more, or still, without counting the
// time that this takes. If not, the exchange is cancelled.
func (x *exchange) again() (ok bool) {
	if x.timer != nil {
		if !x.timer.Stop() {
			return false // too late
		}
		defer x.timer.Reset(x.timeout)
	}
	err := x.trip.Again()
	if err != nil {
		x.life.end(err)
	}
	return err == nil
}

// ready makes sure that the request may be written now, and sets the deadline for what follows. If
// it may not, the exchange is cancelled, or its time is up, which it may be at any moment.
func (x *exchange) ready() bool {
	x.mu.Lock()
	for !x.over && !x.trip.Ready() {
		x.mu.Unlock()
		if !x.again() {
			return false
		}
		x.mu.Lock()
	}
	if x.over {
		x.mu.Unlock()
		return false
	}
	by, late := x.trip.Deadline()
	x.mu.Unlock()
	switch {
	case by.IsZero():
	case x.deadline == nil:
		x.deadline = time.AfterFunc(time.Until(by), func() { x.finish(late) })
	default:
		x.deadline.Reset(time.Until(by))
	}
	return true
}

// dialling is called before a connection to an address is made, on a goroutine of the transport's.
// net/http does not end a dial with the request that it is for, so the connection may be made all
// the same; but nothing is asked on it.
func (x *exchange) dialling(_, address string) {
	if addr, err := netip.ParseAddrPort(address); err == nil {
		x.meet(net.TCPAddrFromAddrPort(addr))
	}
}

// connected is called when there is a connection, a new one or one that was kept, before the
// request is written on it: net/http does that also if the exchange has been cancelled, but in
// HTTP/2.
func (x *exchange) connected(info httptrace.GotConnInfo) {
	if x.meet(info.Conn.RemoteAddr()) && x.ready() {
		return
	}
	if secure, ok := info.Conn.(*tls.Conn); !ok || secure.ConnectionState().NegotiatedProtocol != "h2" {
		info.Conn.Close()
	}
}

// meet tells of an address, and cancels the exchange if it may not go there. It reports whether it
// may.
func (x *exchange) meet(addr net.Addr) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.refused {
		return !x.refused
	}
	if err := x.trip.Peer(x.hop, addr); err != nil {
		x.refused = true
		x.life.end(err)
	}
	return !x.refused
}

// sent is called when the headers of a request were written, on a goroutine of the transport's.
func (x *exchange) sent() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.trip.Sent()
	}
}

// answered tells of the response, which ends the exchange when its body is closed. A transport may
// return neither response nor error, or a response without a body: net/http says what that means.
//
// It reports whether the request is to be sent again; then the exchange is over without its trip.
func (x *exchange) answered(resp *http.Response) (again bool) {
	x.handedOn = true
	if resp == nil {
		x.end(context.Canceled)
		return false
	}
	x.mu.Lock()
	if !x.over {
		again = x.trip.Answered(resp) && resp.Body != nil
	}
	x.over = x.over || again
	x.mu.Unlock()
	if resp.Body == nil {
		x.end(nil)
		return false
	}
	x.ReadCloser = resp.Body
	resp.Body = x
	return again
}

// failed ends an exchange that has no response, and returns why: err, or what had ended it before.
func (x *exchange) failed(err error) error {
	x.handedOn = true
	x.end(err)
	return x.life.endedBy()
}

// panicked ends an exchange whose transport panics.
func (x *exchange) panicked() {
	if !x.handedOn {
		x.end(context.Canceled)
	}
}

func (x *exchange) timedOut() { x.finish(context.DeadlineExceeded) }

// end ends the exchange, if it has not ended. The cause is nil where nothing is wrong.
func (x *exchange) end(cause error) {
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.deadline != nil {
		x.deadline.Stop()
	}
	x.finish(cause)
}

// finish tells the trip before the exchange is cancelled: whoever waits for its end finds
// everything done.
func (x *exchange) finish(cause error) {
	x.mu.Lock()
	before, fault := x.over, x.fault
	x.over = true
	x.mu.Unlock()
	if before {
		x.life.end(cause)
		return
	}
	defer x.life.end(cause)
	if fault == nil && cause != nil {
		fault = cmp.Or(x.life.endedBy(), cause)
	}
	x.trip.Ended(x.octets.Load(), fault)
}

// Read reads the body.
func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	x.octets.Add(int64(n))
	if err == nil || err == io.EOF {
		return n, err
	}
	if x.life.Err() != nil {
		err = x.life.endedBy()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fault = err
	return n, err
}

// Close ends the exchange: a body may take long, and hang, so the headers alone do not.
func (x *exchange) Close() error {
	defer x.end(nil)
	return x.ReadCloser.Close()
}
