package backend

import (
	"cmp"
	"context"
	"crypto/tls"
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
	life
	io.ReadCloser               // the response's own body
	timeout       time.Duration // 0: no limit
	trip          Trip
	traced        atomic.Pointer[httptrace.ClientTrace] // nil: nobody has asked for it
	composed      bool                                  // the request's own context has traced
	handedOn      bool                                  // the response, or an error: whoever has it ends the exchange
	octets        atomic.Int64                          // of the body, read so far

	shared  atomic.Bool                        // the connections are, see isShared
	settled atomic.Bool                        // no other attempt is needed
	stop    atomic.Pointer[context.CancelFunc] // ends the wait of one; nil: none waits

	attempts sync.Mutex  // held while trip is asked Ready, Deadline and Again: never after Ended
	deadline *time.Timer // of the trip; nil: none was set; guarded by attempts
	spent    bool        // what the trip has allowed was written; guarded by attempts
	sends    int         // how often that was, without the last time; guarded by attempts

	mu      sync.Mutex // held while trip is told of Peer, Sent and Answered: never after Ended
	alarm   *alarm     // nil: none is set
	over    bool
	quiet   bool   // settled, and no attempt asks the trip any more
	refused bool   // by Peer
	fault   error  // of the body
	hop     string // "host:port" that the attempt goes to: the server, or a proxy
}

// begin starts an exchange that may take timeout, if that is more than 0. The time that Trip.Again
// takes does not count.
func begin(parent context.Context, timeout time.Duration, trip Trip) *exchange {
	x := &exchange{timeout: timeout, trip: trip}
	if guarded := trip.Guarded(); guarded || httptrace.ContextClientTrace(parent) != nil { // the user's is told too
		x.composed = true
		trace := x.trace()
		if guarded {
			trace.ConnectStart = x.dialling // for which package net has a key of its own
		}
		parent = httptrace.WithClientTrace(parent, trace)
	}
	x.life.start(parent)
	x.resume()
	return x
}

// trace returns the trace of the exchange.
func (x *exchange) trace() *httptrace.ClientTrace {
	if x.traced.Load() == nil {
		x.traced.CompareAndSwap(nil, &httptrace.ClientTrace{GetConn: x.try, GotConn: x.connected, WroteHeaders: x.sent})
	}
	return x.traced.Load()
}

// Value implements context.Context. Only *http.Transport and its like ask for the trace.
func (x *exchange) Value(key any) any {
	if key == traceKey && !x.composed {
		return x.trace()
	}
	return x.life.Value(key)
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

// postpone lets the deadline pass as long as nothing is written: ready sets it again. attempts is
// held.
func (x *exchange) postpone() {
	if x.deadline != nil {
		x.deadline.Stop()
	}
}

// again asks the trip whether the request may be sent once more, or still, without counting the
// time that this takes. If not, the exchange is cancelled, unless it is settled. attempts is held.
func (x *exchange) again() (ok bool) {
	ctx, stop := context.WithCancel(x)
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
		x.life.end(err)
	}
	x.spent = err != nil
	return err == nil
}

// maxSends is how often an exchange may be sent. A server may turn a request away on each new HTTP/2
// connection (GOAWAY), after which net/http goes on until the client's timeout, which here begins anew.
const maxSends = 100

var errUnanswered = fmt.Errorf("collyrobots: the request was sent %d times without an answer", maxSends)

// pause stops the time of the exchange, and reports whether there was some left.
func (x *exchange) pause() bool {
	return x.timeout <= 0 || x.takeAlarm().off()
}

// resume gives the exchange all its time, unless it has ended.
func (x *exchange) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timeout > 0 && !x.over {
		x.alarm = setAlarm(x, x.timeout, x.trip.Bubbled())
	}
}

// takeAlarm returns the alarm that is set, or nil. Whoever has it turns it off.
func (x *exchange) takeAlarm() *alarm {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.alarm
	x.alarm = nil
	return a
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
	switch {
	case by.IsZero():
	case x.deadline == nil:
		x.deadline = time.AfterFunc(time.Until(by), func() { x.end(late) })
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
	shared := isShared(info.Conn)
	x.shared.Store(shared)
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
	x.settle()
	x.mu.Lock()
	x.quiet = true
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
	return x.endedBy()
}

// panicked ends an exchange whose transport panics.
func (x *exchange) panicked() {
	if !x.handedOn {
		x.end(context.Canceled)
	}
}

// end ends the exchange, if it has not ended. The cause is nil where nothing is wrong. The trip is
// told before the exchange is cancelled: whoever waits for its end finds everything done.
func (x *exchange) end(cause error) {
	x.mu.Lock()
	before, quiet, fault, alarm := x.over, x.quiet, x.fault, x.alarm
	x.over, x.alarm = true, nil
	x.callOff()
	x.mu.Unlock()
	alarm.off()
	if !quiet {
		x.hush()
	}
	if x.deadline != nil {
		x.deadline.Stop()
	}
	defer x.life.end(cause)
	if before {
		return
	}
	if fault == nil && cause != nil {
		fault = cmp.Or(x.endedBy(), cause)
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
	if x.Err() != nil {
		err = x.endedBy()
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
