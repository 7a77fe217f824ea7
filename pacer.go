package collyrobots

import (
	"context"
	"fmt"
	"time"
)

// A Pacer grants the starts of requests to a host to one of many processes at a time, so that all
// of them together keep the host's delay. SharedPace uses one; package redisstore has one. Its
// methods are called from any number of goroutines, but for one host Acquire mostly by one at a time.
type Pacer interface {
	// Acquire waits until this process may send one request to host, and takes the host for it.
	// host is a name as in HostStats, delay the delay in force here; 0: none, and then many may hold
	// the host at once, but what other processes have asked for is still waited for. Of several
	// delays that processes ask for one host, the longest holds.
	//
	// The error is ctx's cause, or says why the pace cannot be kept: then nothing is sent.
	Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error)
}

// A Lease is a host taken for one request. Its methods may be called from any goroutine.
type Lease interface {
	// Deadline returns by when the request, its body included, must have ended. The zero time: there
	// is no limit, since no delay was in force anywhere.
	Deadline() time.Time

	// Valid reports whether the host is still taken, by the monotonic clock and by wall time. It is
	// the last thing looked at before the request is written; if it is false, the host is acquired
	// again.
	Valid() bool

	// Release gives the host back: the request has ended, or was never sent. If it was sent, the next
	// start of any process is delay from now on, and not before notBefore, which a Retry-After has
	// named; the zero time: none has. Release does not block for longer than one exchange with
	// whoever keeps the pace. Only the first call counts.
	Release(sent bool, delay time.Duration, notBefore time.Time)
}

// A PaceError is why a request was not sent under SharedPace: the Pacer failed, so that nobody
// knows when another process has asked the host last. Later requests ask the Pacer again.
type PaceError struct {
	Host  string
	Since time.Time // since when the Pacer has failed, for any host, without a success between
	Err   error     // of the Pacer
}

// Error returns the host, since when the Pacer fails, and why.
func (e *PaceError) Error() string {
	return fmt.Sprintf("collyrobots: no shared pace for %s since %s: %v", e.Host, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *PaceError) Unwrap() error { return e.Err }
