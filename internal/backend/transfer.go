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
// sent until the body of the response is closed or the request has failed. It is also the context of
// the request, and the body of the response that the caller gets.
//
// The transport calls attempt, dialling, connected and sent. It may do so on goroutines of its own,
// and after the transfer has ended. The trip must not be called after that, because its owner may use
// it for another request.
type transfer struct {
	context.Context // ended by the context of the request, and by cancel
	cancel          context.CancelCauseFunc
	io.ReadCloser                 // the body that the transport returned
	timeout         time.Duration // 0 if there is no limit
	trip            Trip          // changed with attempts and mu held
	returned        bool          // RoundTrip of the transport has returned
	bytes           atomic.Int64  // the number of bytes of the body that were read
	shared          atomic.Bool   // the connection is one of those that isShared reports
	settled         atomic.Bool   // no further attempt is needed; set with mu held
	ended           sync.Once     // calls Ended of the trip

	// attempts is held while an attempt to send the request calls Ready and Again of the trip.
	attempts sync.Mutex
	deadline *time.Timer // ends the transfer at the deadline of the terms; nil if there was none yet
	written  bool        // the request was written since Ready or Again has allowed it
	writes   int         // how often the request was written
	trace    httptrace.ClientTrace

	// mu is held while Peer, Sent and Answered of the trip are called.
	mu       sync.Mutex
	timer    *time.Timer        // ends the transfer after timeout; nil if there is no limit
	expires  time.Time          // when timer fires; zero while it is stopped
	lapses   time.Time          // when deadline fires; zero while it is stopped
	stopWait context.CancelFunc // ends the wait of an attempt; nil if none waits
	fault    error              // the error of reading the body
	hostPort string             // the server or the proxy that the current attempt connects to
	peer     net.Addr           // the address of the last connection; nil if the transport has reported none
	over     bool               // no method of the trip may be called
	refused  bool               // Peer has returned an error
}

// begin waits until the trip is ready and returns a new transfer. The transfer may take as long as
// timeout, if that is more than 0, without the time that Again of the trip takes. If begin returns an
// error, the trip has ended.
func begin(parent context.Context, timeout time.Duration, trip Trip) (*transfer, error) {
	terms, err := awaitReady(parent, trip)
	if err != nil {
		trip.Ended(0, err)
		return nil, err
	}
	t := &transfer{
		timeout: timeout,
		trip:    trip,
	}
	t.trace = httptrace.ClientTrace{
		GetConn:      t.attempt,
		GotConn:      t.connected,
		WroteHeaders: t.sent,
	}
	if terms.CheckDials {
		t.trace.ConnectStart = t.dialling
	}
	t.Context, t.cancel = context.WithCancelCause(httptrace.WithClientTrace(parent, &t.trace))
	t.attempts.Lock()
	defer t.attempts.Unlock()
	t.accept(terms)
	t.resume()
	return t, nil
}

// awaitReady calls Ready of a trip, and Again as long as Ready returns false.
func awaitReady(ctx context.Context, trip Trip) (Terms, error) {
	for {
		terms, ok := trip.Ready()
		if ok {
			return terms, nil
		}
		err := trip.Again(ctx)
		if err != nil {
			return Terms{}, err
		}
	}
}

// Deadline implements context.Context. Some transports look at the deadline of a request and not at
// Done. The deadline moves when the request waits for its host again.
func (t *transfer) Deadline() (deadline time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	deadline, ok = t.Context.Deadline()
	for _, end := range []time.Time{t.expires, t.lapses} {
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

// attempt is called by the transport before each attempt to send the request, on the goroutine that
// makes the attempt. net/http makes one attempt after the other. Another RoundTripper may make
// several at the same time and abandon the others when one has a response. They share the trip, so
// one attempt at a time calls it, and each waits until the request may be sent again.
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
	t.stopDeadline()
	if t.written {
		t.again()
	}
}

// dialling is called by the transport before it dials an address, on a goroutine of its own.
// net/http does not end a dial when its request ends. So the connection may be made even if the
// address is refused, but the request is not written on it.
func (t *transfer) dialling(_, address string) {
	addr, err := netip.ParseAddrPort(address)
	if err == nil {
		t.allowPeer(net.TCPAddrFromAddrPort(addr))
	}
}

// connected is called by the transport before it writes the request on a connection, which may be
// new or not. net/http calls it and writes the request even if the context is done, except with
// HTTP/2.
func (t *transfer) connected(info httptrace.GotConnInfo) {
	shared := isShared(info.Conn)
	t.shared.Store(shared)
	switch {
	case t.allowConn(info.Conn.RemoteAddr()) && t.mayWrite():
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

// sent is called by the transport when it has written the headers, on a goroutine of its own.
func (t *transfer) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.trip.Sent()
	}
}

// allowConn records the address of a connection and returns the result of allowPeer.
func (t *transfer) allowConn(addr net.Addr) bool {
	t.mu.Lock()
	t.peer = addr
	t.mu.Unlock()
	return t.allowPeer(addr)
}

// allowPeer calls Peer of the trip and reports whether the request may go to addr. If it may not,
// the transfer is cancelled.
func (t *transfer) allowPeer(addr net.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.refused {
		return false
	}
	err := t.trip.Peer(t.hostPort, addr)
	if err != nil {
		t.refused = true
		t.cancel(err)
		return false
	}
	return true
}

// mayWrite reports whether the attempt that calls it may write the request now.
func (t *transfer) mayWrite() bool {
	t.attempts.Lock()
	defer t.attempts.Unlock()
	if t.written && !t.again() {
		return false
	}
	if !t.ready() {
		return false
	}
	t.written = true
	t.writes++
	return true
}

// ready waits until the trip is ready, and starts its deadline. It returns false if the request must
// not be sent. attempts is held.
func (t *transfer) ready() bool {
	for !t.isDone() {
		terms, ok := t.trip.Ready()
		if ok {
			t.accept(terms)
			return true
		}
		if !t.again() {
			return false
		}
	}
	return false
}

// again calls Again of the trip and reports whether the request may be sent. The timeout starts again
// after that. If Again returns an error, the transfer is cancelled. attempts is held.
func (t *transfer) again() bool {
	ctx, stop := context.WithCancel(t.Context)
	defer stop()
	if !t.startWait(stop) {
		return false
	}
	t.stopDeadline()
	err := errUnanswered
	if t.writes < maxSends {
		err = t.trip.Again(ctx)
	}
	if !t.endWait() {
		return false
	}
	if err != nil {
		t.cancel(err)
		return false
	}
	t.written = false
	return true
}

// maxSends limits how often a request may be sent. An HTTP/2 server may refuse the request on each
// new connection (GOAWAY). net/http then repeats it until the client's timeout, but here the timeout
// starts again with each attempt.
const maxSends = 100

var errUnanswered = fmt.Errorf("collyrobots: no response after the request was sent %d times", maxSends)

// isDone reports whether the request must not be sent any more, because the transfer is settled or
// its context has ended.
func (t *transfer) isDone() bool { return t.settled.Load() || t.Context.Err() != nil }

// startWait stops the timeout before an attempt waits, and stores the function that ends the wait. It
// returns false if the attempt must not wait.
func (t *transfer) startWait(stop context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDone() || !t.stopTimer() {
		return false
	}
	t.stopWait = stop
	return true
}

// endWait starts the timeout again after an attempt has waited. It returns false if the transfer was
// settled during the wait.
func (t *transfer) endWait() bool {
	t.resume()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopWait = nil
	return !t.settled.Load()
}

// settle ends the wait of an attempt and returns when no attempt is calling the trip. No attempt
// calls it after that.
func (t *transfer) settle() {
	t.mu.Lock()
	t.settled.Store(true)
	stop := t.stopWait
	t.mu.Unlock()
	if stop != nil {
		stop()
	}
	t.attempts.Lock()
	defer t.attempts.Unlock()
}

// resume starts the timeout from the beginning.
func (t *transfer) resume() {
	if t.timeout <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expires = time.Now().Add(t.timeout)
	if t.timer == nil {
		t.timer = time.AfterFunc(t.timeout, func() { t.end(errTimeout) })
	} else {
		t.timer.Reset(t.timeout)
	}
}

// stopTimer stops the timeout. It returns false if the time is up. mu is held.
func (t *transfer) stopTimer() bool {
	if t.timer != nil && !t.timer.Stop() {
		return false
	}
	t.expires = time.Time{}
	return true
}

// accept starts the deadline of new terms. attempts is held.
func (t *transfer) accept(terms Terms) {
	t.stopDeadline()
	if terms.Deadline.IsZero() {
		return
	}
	t.mu.Lock()
	t.lapses = terms.Deadline
	t.mu.Unlock()
	t.deadline = time.AfterFunc(time.Until(terms.Deadline), func() { t.end(terms.Late) })
}

// stopDeadline stops the deadline of the trip until accept is called again. It has no meaning while
// the request is not being written. attempts is held.
func (t *transfer) stopDeadline() {
	if t.deadline == nil {
		return
	}
	t.deadline.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lapses = time.Time{}
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

// callAnswered calls Answered of the trip, unless the transfer is over. If the request is to be sent
// again, the transfer is over after that.
func (t *transfer) callAnswered(resp *http.Response) (again bool, report func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false, nil
	}
	again, report = t.trip.Answered(resp)
	t.over = again && resp.Body != nil
	return t.over, report
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
	cause := context.Cause(t.Context)
	if cause == errTimeout || t.isLate() {
		return &timeoutError{text: err.Error() + note}
	}
	return cmp.Or(cause, err)
}

// isLate reports whether the timer should have fired. A transport that looks at the deadline of its
// context may fail just before the timer fires.
func (t *transfer) isLate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.expires.IsZero() && !time.Now().Before(t.expires)
}

// A timeoutError is like the error of the same name in net/http.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string     { return e.text }
func (e *timeoutError) Timeout() bool     { return true }
func (e *timeoutError) Temporary() bool   { return true }
func (e *timeoutError) Is(err error) bool { return err == context.DeadlineExceeded }

// errTimeout is the cause of a transfer that has taken longer than its timeout. It differs from
// context.DeadlineExceeded, which may be the cause of the context of the request.
var errTimeout error = &timeoutError{text: context.DeadlineExceeded.Error()}

// endOnPanic ends the transfer if its transport panics. It is deferred.
func (t *transfer) endOnPanic() {
	if !t.returned {
		t.end(context.Canceled)
	}
}

// end ends the transfer and its trip, if they have not ended. err is the reason, or nil if the body was
// closed. The trip ends before the context is cancelled, so the host of the request is free when the
// transport or the body returns.
func (t *transfer) end(err error) {
	t.settle()
	t.ended.Do(func() { t.endTrip(err) })
	t.cancel(err)
}

// endTrip calls Ended of the trip, unless the request is being sent again. Nothing else calls the trip
// after that.
func (t *transfer) endTrip(err error) {
	t.mu.Lock()
	t.stopTimer()
	over := t.over
	t.over = true
	trip := t.trip
	err = cmp.Or(t.fault, err)
	t.mu.Unlock()
	t.attempts.Lock()
	t.stopDeadline()
	t.attempts.Unlock()
	if !over {
		trip.Ended(t.bytes.Load(), err)
	}
}
