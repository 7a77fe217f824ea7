package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// A Pacer grants the starts of requests to a host to one of many processes at a time, so that all
// of them together keep the host's delay. SharedPace uses one; package redisstore has one. Its
// methods are called from any number of goroutines, but for one host Acquire mostly by one at a
// time.
type Pacer interface {
	// Acquire waits until this process may send one request to host, and takes the host for it.
	// host is a name as in HostStats. delay is the delay in force here, which must have passed
	// since the end of the last request of any process, whatever that has asked for; of several
	// delays that were asked for a host of late, the longest holds. 0: none is in force here, and
	// where none was asked for anywhere many may hold the host at once. (For robots.txt it is a
	// millisecond at least, since one process is to fetch it for all.)
	//
	// The error is ctx's cause, or says why the pace cannot be kept: then nothing is sent.
	Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error)
}

// A Lease is a host taken for one request. Its methods may be called from any goroutine.
type Lease interface {
	// Deadline returns by when the request, its body included, must have ended. The zero time:
	// there is no limit, since no delay was in force anywhere.
	Deadline() time.Time

	// Valid reports whether the host is still taken, by the monotonic clock and by wall time. It is
	// the last thing looked at before the request is written; if it is false, the lease is released
	// unsent and the host acquired again. Valid must not wait, nor call the Plugin.
	Valid() bool

	// Release gives the host back: the request has ended, or was never sent. If it was sent, the
	// next start of any process is delay from now on, and not before notBefore, which a Retry-After
	// has named; the zero time: none has. Release does not block for longer than one exchange with
	// whoever keeps the pace. Only the first call counts.
	Release(sent bool, delay time.Duration, notBefore time.Time)
}

// A sharedPace is the user's Pacer as package pace asks it: its failures are *PaceErrors, and so
// are its panics.
type sharedPace struct {
	pacer  Pacer
	report *report

	mu    sync.Mutex
	since time.Time // when it began to fail; zero: it does not
	told  time.Time // when that was logged last
}

// Acquire implements pace.Pacer.
func (s *sharedPace) Acquire(ctx context.Context, host string, delay time.Duration) (pace.Lease, error) {
	lease, err := s.acquire(ctx, host, delay)
	switch {
	case err == nil:
		s.works()
		return lease, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.fails(host, err)
}

var (
	errNoLease    = errors.New("the Pacer has returned neither a Lease nor an error")
	errEndedLease = errors.New("what the Pacer grants has ended when it comes")
)

// acquire asks the Pacer, and once more if what it has granted came too late.
func (s *sharedPace) acquire(ctx context.Context, host string, delay time.Duration) (_ pace.Lease, err error) {
	defer recovered(&err)
	for range 3 {
		lease, err := s.pacer.Acquire(ctx, host, delay)
		if err != nil {
			return nil, err
		}
		if lease == nil {
			return nil, errNoLease
		}
		l := &sharedLease{lease: lease, from: s, host: host, deadline: lease.Deadline()}
		if lease.Valid() {
			return l, nil
		}
		l.Release(false, 0, time.Time{})
	}
	return nil, errEndedLease
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// fails notes that the Pacer has failed, logs that at most once a minute, and returns the error for
// the user.
func (s *sharedPace) fails(host string, err error) error {
	since, tell := s.failing(time.Now())
	if tell {
		s.report.log.Error("collyrobots: the shared pace cannot be kept, so nothing is sent", "host", host, "error", err)
	}
	return &PaceError{Host: host, Since: since, Err: err}
}

// failing notes a failure at now. It returns when the Pacer began to fail, and whether to log it.
func (s *sharedPace) failing(now time.Time) (since time.Time, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
	if s.told.IsZero() || now.Sub(s.told) >= time.Minute {
		s.told = now
		tell = true
	}
	return s.since, tell
}

func (s *sharedPace) works() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// A sharedLease is a Lease whose panics are failures of the Pacer.
type sharedLease struct {
	lease    Lease
	from     *sharedPace
	host     string
	deadline time.Time
	fault    atomic.Pointer[error] // the panic of Valid, to be logged by Release; nil if there was none
}

// Deadline implements pace.Lease.
func (l *sharedLease) Deadline() time.Time { return l.deadline }

// Valid implements pace.Lease. Its caller may hold a lock, so a panic is not logged here. The lease
// is released then, and Release logs it.
func (l *sharedLease) Valid() (valid bool) {
	err := guarded(func() { valid = l.lease.Valid() })
	if err != nil {
		l.fault.Store(&err)
	}
	return valid
}

// Release implements pace.Lease.
func (l *sharedLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	if fault := l.fault.Load(); fault != nil {
		l.from.fails(l.host, *fault)
	}
	err := guarded(func() { l.lease.Release(sent, delay, notBefore) })
	if err != nil {
		l.from.fails(l.host, err)
	}
}

// guarded calls f and returns its panic as an error.
func guarded(f func()) (err error) {
	defer recovered(&err)
	f()
	return nil
}
