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

// A transfer is one request and its response on the wire. It lasts from just before the request is
// sent until the body of the response is closed, the request fails, or its time is up. It is also
// the context of the request, and the body of the response that the caller gets.
type transfer struct {
	context.Context // ended by the context of the request, and by cancel
	cancel          context.CancelCauseFunc
	io.ReadCloser                 // the body that the transport returned
	timeout         time.Duration // 0 if there is no limit
	trip            Trip
	returned        bool         // RoundTrip of the transport has returned
	bytes           atomic.Int64 // the number of bytes of the body that were read

	shared  atomic.Bool                        // the connection is one of those that isShared reports
	settled atomic.Bool                        // no further attempt is needed
	stop    atomic.Pointer[context.CancelFunc] // ends the wait of an attempt; nil if none waits

	// attempts is held while Ready, Deadline and Again of the trip are called.
	attempts sync.Mutex
	deadline *time.Timer // ends the transfer at the deadline of the trip; may be nil
	spent    bool        // the request was written since the trip has last allowed it
	sends    int         // how often the request was written before that

	// mu is held while Peer, Sent and Answered of the trip are called.
	mu       sync.Mutex
	timer    *time.Timer // ends the transfer after timeout; nil if there is no limit
	expires  time.Time   // when timer fires; zero while it is stopped
	late     time.Time   // when deadline fires; zero while it is stopped
	timedOut bool        // timer has fired
	over     bool        // Ended of the trip was called, or is called next
	quiet    bool        // settled, and no attempt is calling the trip
	refused  bool        // Peer has returned an error
	fault    error       // the error of reading the body
	hostPort string      // the server or the proxy that the current attempt connects to
	peer     net.Addr    // the address of the last connection; nil if the transport has reported none
}

// newTransfer returns a transfer that may take as long as timeout, if that is more than 0. The time
// that Again of the trip takes does not count.
func newTransfer(parent context.Context, timeout time.Duration, trip Trip) *transfer {
	t := &transfer{
		timeout: timeout,
		trip:    trip,
	}
	trace := &httptrace.ClientTrace{
		GetConn:      t.attempt,
		GotConn:      t.connected,
		WroteHeaders: t.sent,
	}
	if trip.Guarded() {
		trace.ConnectStart = t.dialling
	}
	t.Context, t.cancel = context.WithCancelCause(httptrace.WithClientTrace(parent, trace))
	t.resume()
	return t
}

// Deadline implements context.Context. Some transports look at the deadline of a request and not at
// Done. The deadline moves when the request waits for its host again.
func (t *transfer) Deadline() (deadline time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	deadline, ok = t.Context.Deadline()
	for _, end := range []time.Time{t.expires, t.late} {
		if !end.IsZero() && (!ok || end.Before(deadline)) {
			deadline = end
			ok = true
		}
	}
	return deadline, ok
}

// Err implements context.Context. The context is ended by cancel, so without this method it would
// report Canceled when the time of the transfer is up.
func (t *transfer) Err() error {
	err := t.Context.Err()
	if err != nil && errors.Is(context.Cause(t.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// start reports whether the request may be given to the transport.
func (t *transfer) start() bool {
	t.attempts.Lock()
	defer t.attempts.Unlock()
	return !t.settled.Load() && t.ready()
}

// attempt is called by the transport before each attempt to send the request, on the goroutine that
// makes the attempt. net/http makes one attempt after the other. Another RoundTripper may make
// several at the same time and abandon the others when one has a response.
//
// A second attempt waits here, so that it does not wait with an open connection, which the server
// may close. With HTTP/2 net/http may hold a lock here that all requests of the transport need, so
// there the attempt waits in connected.
func (t *transfer) attempt(hostPort string) {
	t.mu.Lock()
	t.hostPort = hostPort
	t.mu.Unlock()
	if t.shared.Load() {
		return
	}
	t.attempts.Lock()
	defer t.attempts.Unlock()
	t.postpone()
	if t.spent {
		t.again()
	}
}

// postpone stops the deadline of the trip until ready starts it again. attempts is held.
func (t *transfer) postpone() {
	if t.deadline == nil {
		return
	}
	t.deadline.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = time.Time{}
}

// again calls Again of the trip and reports whether the request may be sent. The timeout starts again
// after that. If the request may not be sent, the transfer is cancelled, unless it is settled.
// attempts is held.
func (t *transfer) again() bool {
	ctx, stop := context.WithCancel(t.Context)
	defer stop()
	if !t.await(&stop) || !t.pause() {
		return false // too late
	}
	defer t.resume()
	t.postpone()
	err := errUnanswered
	if t.spent {
		t.sends++
	}
	if t.sends < maxSends {
		err = t.trip.Again(ctx)
	}
	settled := !t.await(nil)
	if err != nil && !settled {
		t.cancel(err)
	}
	t.spent = err != nil
	return err == nil
}

// maxSends limits how often a request may be sent. An HTTP/2 server may refuse the request on each
// new connection (GOAWAY). net/http then repeats it until the client's timeout, but here the timeout
// starts again with each attempt.
const maxSends = 100

var errUnanswered = fmt.Errorf("collyrobots: no response after the request was sent %d times", maxSends)

// pause stops the timeout. It returns false if the time is up.
func (t *transfer) pause() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timeout <= 0 || t.stopTimer()
}

// stopTimer stops the timer and reports whether it was running. mu is held.
func (t *transfer) stopTimer() bool {
	t.expires = time.Time{}
	return t.timer != nil && t.timer.Stop()
}

// resume starts the timeout from the beginning, unless the transfer is over.
func (t *transfer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timeout <= 0 || t.over {
		return
	}
	t.expires = time.Now().Add(t.timeout)
	if t.timer == nil {
		t.timer = time.AfterFunc(t.timeout, t.expire)
	} else {
		t.timer.Reset(t.timeout)
	}
}

// expire ends the transfer because its time is up.
func (t *transfer) expire() {
	t.mu.Lock()
	t.timedOut = true
	t.mu.Unlock()
	t.end(context.DeadlineExceeded)
}

// await stores the function that ends the wait of an attempt. It reports whether an attempt may
// wait.
func (t *transfer) await(stop *context.CancelFunc) bool {
	t.stop.Store(stop)
	return !t.settled.Load()
}

// settle ends all attempts except the one that has the response. No attempt calls the trip after
// that.
func (t *transfer) settle() {
	t.stopAttempts()
	t.awaitAttempt()
}

// stopAttempts ends the wait of an attempt and lets no further attempt begin.
func (t *transfer) stopAttempts() {
	t.settled.Store(true)
	if stop := t.stop.Load(); stop != nil {
		(*stop)()
	}
}

// awaitAttempt waits until no attempt is calling the trip. stopAttempts was called before.
func (t *transfer) awaitAttempt() {
	t.attempts.Lock()
	defer t.attempts.Unlock()
}

// mayWrite reports whether the request may be written now, by the attempt that asks.
func (t *transfer) mayWrite() bool {
	t.attempts.Lock()
	defer t.attempts.Unlock()
	if t.settled.Load() || t.spent && !t.again() || !t.ready() {
		return false
	}
	t.spent = true
	return true
}

// ready waits until the trip is ready, and starts its deadline. It returns false if the transfer was
// cancelled. attempts is held.
func (t *transfer) ready() bool {
	for !t.trip.Ready() {
		if !t.again() {
			return false
		}
	}
	by, late := t.trip.Deadline()
	if by.IsZero() {
		return true
	}
	t.mu.Lock()
	t.late = by
	t.mu.Unlock()
	if t.deadline == nil {
		t.deadline = time.AfterFunc(time.Until(by), func() { t.end(late) })
	} else {
		t.deadline.Reset(time.Until(by))
	}
	return true
}

// dialling is called before an address is dialled, on a goroutine of the transport. net/http does
// not end a dial when its request ends. So the connection may be made even if the address is
// refused, but the request is not written on it.
func (t *transfer) dialling(_, address string) {
	addr, err := netip.ParseAddrPort(address)
	if err == nil {
		t.allowPeer(net.TCPAddrFromAddrPort(addr))
	}
}

// connected is called before the request is written on a connection, which may be new or not.
// net/http calls it and writes the request even if the transfer was cancelled, except with HTTP/2.
func (t *transfer) connected(info httptrace.GotConnInfo) {
	shared := isShared(info.Conn)
	t.shared.Store(shared)
	t.mu.Lock()
	t.peer = info.Conn.RemoteAddr()
	t.mu.Unlock()
	switch {
	case t.allowPeer(info.Conn.RemoteAddr()) && t.mayWrite():
	case shared:
		<-t.Done() // the transfer is being cancelled, or another attempt has the response
	default:
		info.Conn.Close()
	}
}

// isShared reports whether several requests use a connection at the same time, as with HTTP/2 and
// HTTP/3. Such a connection must not be closed because of one request.
func isShared(conn net.Conn) bool {
	if _, quic := conn.RemoteAddr().(*net.UDPAddr); quic {
		return true
	}
	secure, ok := conn.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}

// allowPeer calls Peer of the trip and reports whether the request may go to addr. If it may not,
// the transfer is cancelled.
func (t *transfer) allowPeer(addr net.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.refused {
		return !t.refused
	}
	err := t.trip.Peer(t.hostPort, addr)
	if err != nil {
		t.refused = true
		t.cancel(err)
	}
	return !t.refused
}

// sent is called when the headers of the request were written, on a goroutine of the transport.
func (t *transfer) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.trip.Sent()
	}
}

// answered is called when the transport has returned a response. The transfer ends when the body of
// the response is closed. If the response or its body is nil, the transfer ends at once, and net/http
// reports the fault of the transport. If answered returns true, the request is to be sent again: the
// transfer is over, but its trip goes on.
func (t *transfer) answered(resp *http.Response) (again bool) {
	t.returned = true
	if resp == nil {
		t.end(context.Canceled)
		return false
	}
	t.settle()
	again, report := t.callAnswered(resp)
	if report != nil {
		report()
	}
	if resp.Body == nil {
		t.end(nil)
		return false
	}
	t.ReadCloser = resp.Body
	resp.Body = t
	return again
}

// callAnswered calls Answered of the trip, unless the transfer is over.
func (t *transfer) callAnswered(resp *http.Response) (again bool, report func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet = true
	if t.over {
		return false, nil
	}
	again, report = t.trip.Answered(resp)
	t.over = again && resp.Body != nil
	return t.over, report
}

// failed ends the transfer because its transport has returned err. It returns the error that
// net/http would return in this case.
func (t *transfer) failed(err error) error {
	t.returned = true
	err = t.causeOf(err, " (Client.Timeout exceeded while awaiting headers)")
	t.end(err)
	return err
}

// causeOf returns the reason for err, which a transport or a body has returned. If the time of the
// transfer is up, that is an error like the one of http.Client.Timeout, with a note that says what
// took so long. If something else has cancelled the transfer, it is the cause of that. Otherwise it
// is err.
func (t *transfer) causeOf(err error, note string) error {
	if t.isLate() {
		return &timeoutError{text: err.Error() + note}
	}
	return cmp.Or(context.Cause(t.Context), err)
}

// isLate reports whether the time of the transfer is up. A transport that looks at the deadline of
// its context may fail just before the timer fires.
func (t *transfer) isLate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timedOut || !t.expires.IsZero() && !time.Now().Before(t.expires)
}

// A timeoutError is like the error of the same name in net/http.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string     { return e.text }
func (e *timeoutError) Timeout() bool     { return true }
func (e *timeoutError) Temporary() bool   { return true }
func (e *timeoutError) Is(err error) bool { return err == context.DeadlineExceeded }

// endOnPanic ends the transfer if its transport panics. It is deferred.
func (t *transfer) endOnPanic() {
	if !t.returned {
		t.end(context.Canceled)
	}
}

// end ends the transfer, if it has not ended. cause is nil if the body was closed without an error.
// Ended of the trip is called before the context is cancelled, so the host of the request is free
// when the context is done.
func (t *transfer) end(cause error) {
	t.mu.Lock()
	before := t.over
	quiet := t.quiet
	fault := t.fault
	t.over = true
	t.stopTimer()
	t.stopAttempts()
	t.mu.Unlock()
	if !quiet {
		t.awaitAttempt()
	}
	if t.deadline != nil {
		t.deadline.Stop()
	}
	defer t.cancel(cause)
	if before {
		return
	}
	if fault == nil && cause != nil {
		fault = cmp.Or(context.Cause(t.Context), cause)
	}
	t.trip.Ended(t.bytes.Load(), fault)
}

// Read implements io.Reader. It reads the body of the response.
func (t *transfer) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.bytes.Add(int64(n))
	if err == nil || err == io.EOF {
		return n, err
	}
	err = t.causeOf(err, " (Client.Timeout or context cancellation while reading body)")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = err
	return n, err
}

// Close implements io.Closer. It closes the body and ends the transfer. The transfer does not end
// with the headers, because a body may take long, and may never end.
func (t *transfer) Close() error {
	defer t.end(nil)
	return t.ReadCloser.Close()
}
