package backend

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
// fails, or its time is up. It is also the context of the request and the body of its response.
type exchange struct {
	context.Context // is done as soon as the context of the request is, or by cancel
	cancel          context.CancelCauseFunc
	io.ReadCloser                 // the response's own body
	timeout         time.Duration // 0 if there is no limit
	trip            Trip
	handedOn        bool         // the caller has the response or the error, and ends the exchange
	octets          atomic.Int64 // of the body, read so far

	shared  atomic.Bool                        // requests share the connections, see isShared
	settled atomic.Bool                        // no other attempt is needed
	stop    atomic.Pointer[context.CancelFunc] // ends the wait of an attempt; nil if none waits

	attempts sync.Mutex  // held while trip is asked Ready, Deadline and Again: never after Ended
	lease    *time.Timer // ends the exchange at the trip's deadline; nil if there was none; guarded by attempts
	spent    bool        // what the trip has allowed was written; guarded by attempts
	sends    int         // how often that was, without the last time; guarded by attempts

	mu       sync.Mutex  // held while trip is told of Peer, Sent and Answered: never after Ended
	timer    *time.Timer // ends the exchange after timeout; nil if there is no limit
	expires  time.Time   // when timer ends the exchange; the zero time while it is stopped
	leased   time.Time   // when lease ends the exchange; the zero time while it is stopped
	timedOut bool        // timer has ended the exchange
	over     bool
	quiet    bool     // settled, and no attempt asks the trip any more
	refused  bool     // by Peer
	fault    error    // of the body
	hop      string   // "host:port" that the attempt goes to: the server, or a proxy
	peer     net.Addr // of the last connection; nil if the transport has reported none
}

// begin starts an exchange that may take timeout, if that is more than 0. The time that Trip.Again
// takes does not count.
func begin(parent context.Context, timeout time.Duration, trip Trip) *exchange {
	x := &exchange{timeout: timeout, trip: trip}
	trace := &httptrace.ClientTrace{GetConn: x.try, GotConn: x.connected, WroteHeaders: x.sent}
	if trip.Guarded() {
		trace.ConnectStart = x.dialling
	}
	x.Context, x.cancel = context.WithCancelCause(httptrace.WithClientTrace(parent, trace))
	x.resume()
	return x
}

// Deadline implements context.Context: some transports look at nothing else. The deadline moves
// when the request waits for its host once more.
func (x *exchange) Deadline() (deadline time.Time, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	deadline, ok = x.Context.Deadline()
	for _, end := range []time.Time{x.expires, x.leased} {
		if !end.IsZero() && (!ok || end.Before(deadline)) {
			deadline, ok = end, true
		}
	}
	return deadline, ok
}

// Err implements context.Context. A context that is ended by hand reports Canceled, even if its
// time was up.
func (x *exchange) Err() error {
	err := x.Context.Err()
	if err != nil && errors.Is(context.Cause(x.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// try is called before each attempt to send the request, on the goroutine that makes it. net/http
// makes one after the other; a RoundTripper of the user's may make several side by side, and leave
// them alone when it has the answer of one.
//
// What is sent again waits here, before there is a connection that would grow old meanwhile; but in
// HTTP/2 net/http may hold a lock here that all requests of the transport need, so it waits in
// connected.
func (x *exchange) try(hop string) {
	x.mu.Lock()
	x.hop = hop
	x.mu.Unlock()
	if x.shared.Load() {
		return
	}
	x.attempts.Lock()
	defer x.attempts.Unlock()
	x.postpone()
	if x.spent {
		x.again()
	}
}

// postpone lets the trip's deadline pass as long as nothing is written. The method ready sets it
// again. attempts is held.
func (x *exchange) postpone() {
	if x.lease == nil {
		return
	}
	x.lease.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leased = time.Time{}
}

// again asks the trip whether the request may be sent once more, or still, without counting the
// time that this takes. If not, the exchange is cancelled, unless it is settled. attempts is held.
func (x *exchange) again() (ok bool) {
	ctx, stop := context.WithCancel(x.Context)
	defer stop()
	if !x.await(&stop) || !x.pause() {
		return false // too late
	}
	defer x.resume()
	x.postpone()
	err := errUnanswered
	if x.spent {
		x.sends++
	}
	if x.sends < maxSends {
		err = x.trip.Again(ctx)
	}
	if settled := !x.await(nil); err != nil && !settled {
		x.cancel(err)
	}
	x.spent = err != nil
	return err == nil
}

// maxSends is how often an exchange may be sent. A server may turn a request away on each new HTTP/2
// connection (GOAWAY), after which net/http goes on until the client's timeout, which here begins anew.
const maxSends = 100

var errUnanswered = fmt.Errorf("collyrobots: the request was sent %d times without an answer", maxSends)

// pause stops the timer of the exchange. It reports whether there was some time left.
func (x *exchange) pause() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.timeout <= 0 || x.stopTimer()
}

// stopTimer stops the timer. It reports whether the timer was running. mu is held.
func (x *exchange) stopTimer() bool {
	x.expires = time.Time{}
	return x.timer != nil && x.timer.Stop()
}

// resume gives the exchange all its time, unless it has ended.
func (x *exchange) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timeout <= 0 || x.over {
		return
	}
	x.expires = time.Now().Add(x.timeout)
	if x.timer == nil {
		x.timer = time.AfterFunc(x.timeout, x.expire)
	} else {
		x.timer.Reset(x.timeout)
	}
}

// expire ends an exchange whose time is up.
func (x *exchange) expire() {
	x.mu.Lock()
	x.timedOut = true
	x.mu.Unlock()
	x.end(context.DeadlineExceeded)
}

// await says how to end the wait of an attempt. It reports whether there may be one.
func (x *exchange) await(stop *context.CancelFunc) bool {
	x.stop.Store(stop)
	return !x.settled.Load()
}

// settle ends all attempts but the one that has an answer: none uses the trip any more.
func (x *exchange) settle() {
	x.callOff()
	x.hush()
}

// hush waits for the attempt that asks the trip, if one does; since callOff none begins to.
func (x *exchange) hush() {
	x.attempts.Lock()
	defer x.attempts.Unlock()
}

// callOff lets no attempt begin any more, and none wait.
func (x *exchange) callOff() {
	x.settled.Store(true)
	if stop := x.stop.Load(); stop != nil {
		(*stop)()
	}
}

// begins makes sure that the request may be handed to the transport now.
func (x *exchange) begins() bool {
	x.attempts.Lock()
	defer x.attempts.Unlock()
	return !x.settled.Load() && x.ready()
}

// writes makes sure that the request may be written now, and by one attempt alone.
func (x *exchange) writes() bool {
	x.attempts.Lock()
	defer x.attempts.Unlock()
	if x.settled.Load() || x.spent && !x.again() || !x.ready() {
		return false
	}
	x.spent = true
	return true
}

// ready makes sure that the request may be written now, and sets the deadline for what follows. If
// it may not, the exchange is cancelled. attempts is held.
func (x *exchange) ready() bool {
	for !x.trip.Ready() {
		if !x.again() {
			return false
		}
	}
	by, late := x.trip.Deadline()
	if by.IsZero() {
		return true
	}
	x.mu.Lock()
	x.leased = by
	x.mu.Unlock()
	if x.lease == nil {
		x.lease = time.AfterFunc(time.Until(by), func() { x.end(late) })
	} else {
		x.lease.Reset(time.Until(by))
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
	shared := isShared(info.Conn)
	x.shared.Store(shared)
	x.mu.Lock()
	x.peer = info.Conn.RemoteAddr()
	x.mu.Unlock()
	switch {
	case x.meet(info.Conn.RemoteAddr()) && x.writes():
	case shared:
		<-x.Done() // it is ending, or another attempt has the answer
	default:
		info.Conn.Close()
	}
}

// isShared reports whether requests share a connection: it is one of HTTP/2 or HTTP/3.
func isShared(conn net.Conn) bool {
	if _, quic := conn.RemoteAddr().(*net.UDPAddr); quic {
		return true
	}
	secure, ok := conn.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
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
		x.cancel(err)
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
	x.settle()
	again, report := x.tellAnswer(resp)
	if report != nil {
		report()
	}
	if resp.Body == nil {
		x.end(nil)
		return false
	}
	x.ReadCloser = resp.Body
	resp.Body = x
	return again
}

// tellAnswer calls Answered of the trip, unless the exchange is over.
func (x *exchange) tellAnswer(resp *http.Response) (again bool, report func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.quiet = true
	if x.over {
		return false, nil
	}
	again, report = x.trip.Answered(resp)
	x.over = again && resp.Body != nil
	return x.over, report
}

// failed ends an exchange that has no response since its transport failed with err. It returns the
// error that net/http would return for that.
func (x *exchange) failed(err error) error {
	x.handedOn = true
	err = x.causeOf(err, " (Client.Timeout exceeded while awaiting headers)")
	x.end(err)
	return err
}

// causeOf returns why the exchange has failed: err, or what had ended the exchange before. If its
// time is up, that is the error of http.Client.Timeout, in which note says what took so long.
func (x *exchange) causeOf(err error, note string) error {
	if x.late() {
		return &timeoutError{err.Error() + note}
	}
	return cmp.Or(context.Cause(x.Context), err)
}

// late reports whether the time of the exchange is up. A transport that looks at the deadline of
// its context may fail just before the timer does.
func (x *exchange) late() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.timedOut || !x.expires.IsZero() && !time.Now().Before(x.expires)
}

// A timeoutError is like net/http's error of the same name.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string     { return e.text }
func (e *timeoutError) Timeout() bool     { return true }
func (e *timeoutError) Temporary() bool   { return true }
func (e *timeoutError) Is(err error) bool { return err == context.DeadlineExceeded }

// panicked ends an exchange whose transport panics.
func (x *exchange) panicked() {
	if !x.handedOn {
		x.end(context.Canceled)
	}
}

// end ends the exchange, if it has not ended. The cause is nil where nothing is wrong. The trip is
// told before the exchange is cancelled, so that everything is done when its context is.
func (x *exchange) end(cause error) {
	x.mu.Lock()
	before, quiet, fault := x.over, x.quiet, x.fault
	x.over = true
	x.stopTimer()
	x.callOff()
	x.mu.Unlock()
	if !quiet {
		x.hush()
	}
	if x.lease != nil {
		x.lease.Stop()
	}
	defer x.cancel(cause)
	if before {
		return
	}
	if fault == nil && cause != nil {
		fault = cmp.Or(context.Cause(x.Context), cause)
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
	err = x.causeOf(err, " (Client.Timeout or context cancellation while reading body)")
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
