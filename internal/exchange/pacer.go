package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// A sharedPace adapts the user's Pacer for package pace. It turns errors and panics of the Pacer
// into errors of the type *report.PaceError and logs them.
type sharedPace struct {
	pacer  pacer.Pacer
	report *reporter.Reporter

	// mu protects the fields below it.
	mu     sync.Mutex
	since  time.Time // the first of the failures in a row; zero if the last call succeeded
	logged time.Time // when a failure was last logged
}

// Acquire implements pace.Pacer.
func (s *sharedPace) Acquire(ctx context.Context, host string, delay time.Duration) (pace.Lease, error) {
	lease, err := s.acquire(ctx, host, delay)
	switch {
	case err == nil:
		s.succeeded()
		return lease, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.failed(host, err)
}

var (
	errNoLease      = errors.New("the Pacer returned neither a lease nor an error")
	errExpiredLease = errors.New("the Pacer returned an expired lease")
)

// acquire calls the Pacer. If the lease that it returns has expired, acquire tries twice more.
func (s *sharedPace) acquire(ctx context.Context, host string, delay time.Duration) (_ pace.Lease, err error) {
	defer recovered(&err)
	for range 3 {
		lease, err := s.pacer.Acquire(ctx, host, delay)
		if err != nil {
			return nil, typednil.Error(err)
		}
		if lease == nil {
			return nil, errNoLease
		}
		l := &sharedLease{lease: lease, pace: s, host: host, deadline: lease.Deadline()}
		if lease.Valid() {
			return l, nil
		}
		l.Release(false, 0, time.Time{})
	}
	return nil, errExpiredLease
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// failed records a failure of the Pacer, logs it at most once a minute, and returns the error for
// the user.
func (s *sharedPace) failed(host string, err error) error {
	since, log := s.addFailure(time.Now())
	if log {
		s.report.Log.Error("Pacer failed, nothing is sent", "host", host, "error", err)
	}
	return &report.PaceError{Host: host, Since: since, Err: err}
}

// addFailure records a failure at now. It returns the time of the first of the failures in a row,
// and whether to log this one.
func (s *sharedPace) addFailure(now time.Time) (since time.Time, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
	if s.logged.IsZero() || now.Sub(s.logged) >= time.Minute {
		s.logged = now
		log = true
	}
	return s.since, log
}

func (s *sharedPace) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// A sharedLease is a Lease of the user's Pacer. Its panics count as failures of the Pacer.
type sharedLease struct {
	lease    pacer.Lease
	pace     *sharedPace
	host     string
	deadline time.Time
	panicked atomic.Pointer[error] // the panic of Valid, which Release logs; nil if there was none
}

// Deadline implements pace.Lease.
func (l *sharedLease) Deadline() time.Time { return l.deadline }

// Valid implements pace.Lease. It does not log a panic, because its caller may hold a lock. Instead
// it reports false, so that the lease is released, and Release logs the panic.
func (l *sharedLease) Valid() (valid bool) {
	err := guarded(func() { valid = l.lease.Valid() })
	if err != nil {
		l.panicked.Store(&err)
	}
	return valid
}

// Release implements pace.Lease.
func (l *sharedLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	if err := l.panicked.Load(); err != nil {
		l.pace.failed(l.host, *err)
	}
	err := guarded(func() { l.lease.Release(sent, delay, notBefore) })
	if err != nil {
		l.pace.failed(l.host, err)
	}
}

// guarded calls f. If f panics, it returns the panic as an error.
func guarded(f func()) (err error) {
	defer recovered(&err)
	f()
	return nil
}
