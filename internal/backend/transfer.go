package backend

import (
	"cmp"
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// A transfer is one request and its response on the wire. It lasts from just before the request is
// sent until the body of the response is read to the end or closed, the request fails, or its time
// is up. It is also the context of the request, and the body of the response that the caller gets.
//
// This file has the beginning and the end of a transfer, attempt.go has what happens while the
// transport sends the request, and timeout.go has the limits of its time.
type transfer struct {
	context.Context // ended by the context of the request, and by cancel
	cancel          context.CancelCauseFunc
	io.ReadCloser                       // the body that the transport returned
	timeouts        *timeouts           // end the transfer after the timeout of the client; nil if there is none
	trip            Trip                // changed with attempts and mu held
	sign            func(*http.Request) // of the terms; nil if the request is not signed
	trace           httptrace.ClientTrace
	bytes           atomic.Int64  // the number of bytes of the body that were read
	shared          atomic.Bool   // the connection is one of those that isShared reports
	settled         atomic.Bool   // no further attempt is needed; set with mu held
	ended           atomic.Bool   // end has returned
	request         *http.Request // as the caller has made it
	returned        bool          // RoundTrip of the transport has returned
	hasResponse     atomic.Bool   // the transport has returned a response
	untilClose      bool          // the transfer ends when the body is closed, and not when it was read

	// attempts is held while Ready and Again of the trip are called.
	attempts      sync.Mutex
	unsigned      *http.Request // the request to sign when there is a connection; nil if there is none
	deadlineTimer *time.Timer   // ends the transfer at the deadline of the terms; nil if there was none yet
	written       bool          // the request was written since Ready or Again has allowed it
	writes        int32         // how often the request was written

	// mu is held while Peer, Sent and Answered of the trip are called.
	mu         sync.Mutex
	place      *list.Element      // in timeouts; nil before the timeout was started
	timeoutAt  time.Time          // when timeouts end the transfer; zero while the timeout is stopped
	deadlineAt time.Time          // when deadlineTimer fires; zero while it is stopped
	stopWait   context.CancelFunc // ends the wait of an attempt; nil if none waits
	fault      error              // the error of reading the body
	hostPort   string             // the server or the proxy that the current attempt connects to
	peer       net.Addr           // the address of the last connection; nil if none was reported
	over       bool               // no method of the trip may be called
	repeats    bool               // Failed of the trip has returned true; over is then also true
	refusal    error              // the error of Peer; nil if it has returned none
}

// begin waits until the trip of req is ready and returns a new transfer. limit, which may be nil, ends it
// after a timeout, without the time that Again of the trip takes. If begin returns an error, the trip has
// ended.
func begin(req *http.Request, limit *timeouts, trip Trip) (*transfer, error) {
	parent := req.Context()
	terms, err := awaitReady(parent, trip)
	if err != nil {
		trip.Ended(0, err)
		return nil, err
	}
	t := &transfer{
		request:  req,
		timeouts: limit,
		trip:     trip,
		sign:     terms.Sign,
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
	t.startDeadline(terms)
	t.startTimeout()
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

// answered is called when the transport has returned a response. The transfer ends when the body of
// the response is read to the end or closed. If the response or its body is nil, the transfer ends
// at once, and net/http reports the fault of the transport. If answered returns true, the request
// is to be sent again: the transfer is over, but its trip goes on.
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
	if resp.Body == nil || !t.untilClose && !hasBody(resp) {
		t.end(nil)
		return again
	}
	t.ReadCloser = resp.Body
	resp.Body = t
	return again
}

// hasBody reports whether the caller may read the body of a response. Otherwise there is none, or
// it is a connection that belongs to the caller. Many programs do not close a body that is not
// there.
func hasBody(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols, http.StatusNoContent, http.StatusNotModified:
		return false
	}
	if resp.Request != nil && resp.Request.Method == http.MethodHead {
		return false
	}
	return resp.Body != nil && resp.Body != http.NoBody
}

// callAnswered calls Answered of the trip, unless the transfer is over. If the request is to be
// sent again, the transfer is over after that.
func (t *transfer) callAnswered(resp *http.Response) (again bool, report func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return t.repeats && resp.Body != nil, nil
	}
	again, report = t.trip.Answered(resp)
	t.over = again && resp.Body != nil
	return t.over, report
}

// noHeaders is what net/http adds to the error of a timeout before there is a response.
const noHeaders = " (Client.Timeout exceeded while awaiting headers)"

// failed ends the transfer because its transport has returned err, or because a redirect that the
// transport has followed must not be followed. It returns the error that net/http would return in this
// case. If t.repeats is true afterwards, the request is to be sent again: the transfer is over, but its
// trip goes on.
func (t *transfer) failed(err error) error {
	t.returned = true
	t.endRefused()
	err = t.causeOf(err, noHeaders)
	t.tellFailure(err)
	t.end(err)
	return err
}

// tellFailure calls Failed of the trip, unless there is a response, the transfer is over, or its
// connection was refused.
func (t *transfer) tellFailure(err error) {
	if t.hasResponse.Load() {
		return
	}
	t.settle()
	report := t.callFailed(err)
	if report != nil {
		report()
	}
}

// callFailed is the part of tellFailure that needs the lock.
func (t *transfer) callFailed(err error) (report func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.refusal != nil {
		return nil
	}
	t.repeats, report = t.trip.Failed(t.request, err)
	t.over = t.repeats
	return report
}

// endOnPanic ends the transfer if its transport panics. It is deferred.
func (t *transfer) endOnPanic() {
	if !t.returned {
		t.end(context.Canceled)
	}
}

// Read implements io.Reader. It reads the body of the response, and ends the transfer at the end of
// the body, because a program may close the body much later, unless untilClose is set.
func (t *transfer) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.bytes.Add(int64(n))
	if err == nil {
		return n, nil
	}
	if err == io.EOF {
		if !t.untilClose {
			t.end(nil)
		}
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

// end ends the transfer and its trip, if they have not ended. err is the reason, or nil if the body
// was closed. The trip ends before the context is canceled, so the host of the request is free
// when the transport or the body returns. If the request is to be sent again, the trip goes on.
func (t *transfer) end(err error) {
	if t.ended.Load() {
		return // most bodies are read to their end and then closed
	}
	t.settle()
	t.mu.Lock()
	t.stopTimeout()
	over := t.over
	t.over = true
	trip := t.trip
	reason := cmp.Or(t.fault, err)
	t.mu.Unlock()
	t.attempts.Lock()
	t.stopDeadline()
	t.attempts.Unlock()
	if !over {
		trip.Ended(t.bytes.Load(), reason)
	}
	t.cancel(err)
	t.ended.Store(true)
}
