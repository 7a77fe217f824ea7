package backend

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/netip"
	"time"
)

// This file has the functions that a transport calls while it sends a request, through
// net/http/httptrace: attempt, dialling, connected and sent. A transport may call them on
// goroutines of its own, and even after the transfer has ended. The trip must not be called then,
// because its owner may use it for another request.
//
// net/http sends a request again if the server has closed a connection that was kept alive, one
// attempt after the other. A RoundTripper that hedges makes several attempts at the same time, and
// abandons the others when one has a response. All attempts share the trip. So one attempt at a
// time calls it, and the others wait until the request may be sent again, or until there is a
// response.

// attempt is called before each attempt to send the request, on the goroutine that makes the
// attempt.
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

// dialling is called before an address is dialled. net/http does not end a dial when its request
// ends: it keeps the connection for the next request to the host. So if the address is refused, the
// request goes on for a short time, so that connected gets the connection and closes it, unless it
// is a shared one.
func (t *transfer) dialling(_, address string) {
	addr, err := netip.ParseAddrPort(address)
	if err == nil && !t.allowPeer(net.TCPAddrFromAddrPort(addr)) {
		time.AfterFunc(refusedPatience, t.endRefused)
	}
}

// refusedPatience is how long a request whose address is refused waits for its connection.
const refusedPatience = time.Second

// endRefused cancels the transfer if Peer has returned an error.
func (t *transfer) endRefused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusal != nil {
		t.cancel(t.refusal)
	}
}

// connected is called before the request is written on a connection, which may be new or not.
func (t *transfer) connected(info httptrace.GotConnInfo) {
	shared := isShared(info.Conn)
	t.shared.Store(shared)
	if t.allowConn(info.Conn.RemoteAddr()) && t.mayWrite() {
		return
	}
	t.endRefused()
	if shared {
		// net/http does not write the request if its context has ended. The context is ending now,
		// or it ends when the response of another attempt has been read.
		<-t.Done()
		return
	}
	// net/http writes the request even if its context has ended.
	info.Conn.Close()
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

// sent is called when the headers of the request have been written. net/http also calls it for a
// connection that connected has closed, where nothing was written.
func (t *transfer) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && t.refusal == nil {
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
// the caller must make sure that endRefused is called.
func (t *transfer) allowPeer(addr net.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.refusal != nil {
		return false
	}
	t.refusal = t.trip.Peer(t.hostPort, addr)
	return t.refusal == nil
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
	t.signLate()
	t.written = true
	t.writes++
	return true
}

// ready waits until the trip is ready, and starts its deadline. It returns false if the request
// must not be sent. attempts is held.
func (t *transfer) ready() bool {
	for !t.isDone() {
		terms, ok := t.trip.Ready()
		if ok {
			t.startDeadline(terms)
			return true
		}
		if !t.again() {
			return false
		}
	}
	return false
}

// again calls Again of the trip and reports whether the request may be sent. The timeout starts
// again after that. If Again returns an error, the transfer is canceled. attempts is held.
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
// new connection (GOAWAY). net/http then repeats it until the client's timeout, but here the
// timeout starts again with each attempt.
const maxSends = 100

var errUnanswered = fmt.Errorf("collyrobots: no response after the request was sent %d times", maxSends)

// startWait stops the timeout before an attempt waits, and stores the function that ends the wait.
// It returns false if the attempt must not wait.
func (t *transfer) startWait(stop context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDone() || !t.stopTimeout() {
		return false
	}
	t.stopWait = stop
	return true
}

// endWait starts the timeout again after an attempt has waited. It returns false if the transfer
// was settled during the wait.
func (t *transfer) endWait() bool {
	t.startTimeout()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopWait = nil
	return !t.settled.Load()
}

// isDone reports whether the request must not be sent any more, because the transfer is settled or
// its context has ended.
func (t *transfer) isDone() bool { return t.settled.Load() || t.Context.Err() != nil }

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
