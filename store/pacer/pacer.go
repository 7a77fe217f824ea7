// Package pacer has the contract between the option SharedPace of package collyrobots and a server
// that several processes share. Package github.com/collyrobots/collyrobots/store/redisstore
// implements it with Redis. Package pacertest tests whether an implementation keeps the contract.
package pacer

import (
	"context"
	"time"
)

// A Pacer grants each host to one of many processes at a time, so that their requests together keep
// the host's delay. The option SharedPace uses a Pacer. Any number of
// goroutines may call Acquire at once, but rarely more than one for the same host.
type Pacer interface {
	// Acquire waits until this process may send one request to host, and returns a lease for it.
	// host is a name as in report.HostStats: the Group of the host, or if that is empty, the Host.
	//
	// delay is the delay of the host in this process. At least this time must have passed since
	// the last request of any process to the host has ended. If processes have recently used
	// different delays for a host, the longest applies. A delay of 0 means that this process has no
	// delay. If no process has a delay for the host, several processes may hold leases at once. A
	// Pacer may then return leases for a short time without asking the other processes again. In
	// this case, a process with a delay must wait for one delay after the last of these leases has
	// ceased to be Valid.
	//
	// For robots.txt, delay is at least a millisecond, so that only one process fetches the file.
	//
	// If ctx ends, Acquire returns its cause. Any other error means that the Pacer has failed, and
	// that nothing is sent.
	Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error)
}

// A Lease reserves a host for one request. Any goroutine may call its methods.
type Lease interface {
	// Deadline returns the deadline of the request: before that time, it must have ended, and its
	// response body must have been read. It is the zero time if there is no limit, because no
	// process has a delay for the host.
	Deadline() time.Time

	// Valid reports whether the lease has not expired, by the monotonic clock and by wall time. It
	// is called immediately before the request is written. If it reports false, nothing is sent,
	// the lease is released, and the host is acquired again. Valid must not block and must not call
	// the Plugin.
	Valid() bool

	// Release ends the lease. The request has ended, or was never sent. If it was sent, no process
	// may start another request before delay has passed from now, and not before notBefore, the
	// time of a Retry-After; it is the zero time if there was none. Release blocks no longer than
	// one exchange with the server of the Pacer. Only the first call has an effect.
	Release(sent bool, delay time.Duration, notBefore time.Time)
}
