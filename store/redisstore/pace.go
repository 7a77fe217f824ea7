package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots/store/pacer"
)

const (
	within      = time.Second            // how long a lease is valid for sending; the same as within in lua/state.lua
	longestLook = 15 * time.Second       // a waiter asks Redis again at least this often
	pause       = 100 * time.Millisecond // the time between two attempts while Redis is away
	mostJitter  = 50 * time.Millisecond
)

// Acquire waits until this process may send one request to host; see [pacer.Pacer]. The
// caller must use the lease at once: it is no longer Valid after a second. If delay is 0 and Redis
// has just answered that no process has a delay for the host, Acquire returns a lease without
// asking Redis again, and that second counts from the answer.
//
// If ctx ends, the error is its cause. If the Store is closed, it is [store.ErrClosed]. If Redis
// cannot be used for longer than [Patience], it is an [*AwayError]. Otherwise, it is an error of
// Redis that a retry does not change. Acquire does not interrupt an exchange with Redis, so it may
// return later than ctx ends.
func (s *Store) Acquire(ctx context.Context, host string, delay time.Duration) (pacer.Lease, error) {
	if s.unfit != nil {
		return nil, s.unfit
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if delay <= 0 {
		if l := s.free.find(host); l != nil {
			return l, nil
		}
	}
	return s.acquire(ctx, host, delay)
}

// acquire is the part of Acquire that asks Redis.
func (s *Store) acquire(ctx context.Context, host string, delay time.Duration) (pacer.Lease, error) {
	l := &lease{store: s, host: host, token: rand.Text()}
	key, _, _ := s.keys.host(host)
	var why error // why Redis cannot be used
	for away := (time.Time{}); ; {
		if err := s.usable(ctx); err != nil {
			return nil, l.abandon(err)
		}
		a, err := l.ask(ctx, delay, away)
		if err == nil {
			s.settle()
		}
		wait := mathrand.N(pause) + pause/2
		switch {
		case err == nil && a.granted:
			if !l.held {
				s.free.add(l)
			}
			return l, nil
		case err == nil:
			away = time.Time{}
			l.unknown = false
			wait = min(a.wait, longestLook) + mathrand.N(min(a.gap/20, mostJitter)+1)
		case !passing(err):
			return nil, l.abandon(s.problem(key, err))
		default:
			if away.IsZero() {
				away = l.before
				why = err
			} else if !errors.Is(err, context.DeadlineExceeded) {
				why = err // a deadline would hide this cause
			}
			if time.Since(away) >= s.patience {
				return nil, l.abandon(&AwayError{Server: s.server, Since: away, Err: why})
			}
		}
		if err := s.sleep(ctx, wait); err != nil {
			return nil, l.abandon(err)
		}
	}
}

// An AwayError reports that Redis could not be used for longer than [Patience], because it did not
// answer or because it replied with an error that may pass.
type AwayError struct {
	Server string    // "Redis at " and the address in the client's options
	Since  time.Time // when the first failed exchange began
	Err    error     // the last error that is not a deadline, or else the first error
}

// Error returns the server, the time of the first failure, and the cause.
func (e *AwayError) Error() string {
	what := "does not answer"
	if isReply(e.Err) {
		what = "rejects requests"
	}
	return fmt.Sprintf("redisstore: %s %s (first failure at %s): %v", e.Server, what, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *AwayError) Unwrap() error { return e.Err }

// An answer is the reply of Redis to a process that asks for a host.
type answer struct {
	granted bool
	wait    time.Duration // the time until the next attempt
	gap     time.Duration // the delay in force
}

// These are the results of lua/acquire.lua for a token.
const (
	refused = iota
	taken
	free
	over
)

var (
	errSlow = errors.New("lease expired before the answer of Redis arrived")
	errOver = errors.New("lease was already released")
)

// ask performs one exchange with Redis. If earlier attempts have failed, away is the time of the
// first failure; otherwise it is zero.
func (l *lease) ask(ctx context.Context, delay time.Duration, away time.Time) (answer, error) {
	s := l.store
	l.before = time.Now()
	patience := s.patience
	if !away.IsZero() {
		patience = max(time.Millisecond, s.patience-l.before.Sub(away))
	}
	// Do not interrupt the exchange when ctx ends: it would be unknown whether Redis has granted
	// the host.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	state, epoch, aside := s.keys.host(l.host)
	sending := s.keys.sending(l.host)
	got, err := acquire.Run(ctx, s.client, []string{state, epoch, aside, sending}, l.token, micros(s.lease), micros(delay)).Int64Slice()
	if err == nil && len(got) != 6 {
		err = fmt.Errorf("reply of Redis has %d numbers instead of 6", len(got))
	}
	if err != nil {
		l.unknown = true
		return answer{}, err
	}
	s.report.host(l.host, duration(got[3]), got[4] != 0, got[5] == 0)
	a := answer{granted: got[0] == taken || got[0] == free, wait: duration(got[1]), gap: duration(got[2])}
	l.held = got[0] == taken
	switch {
	case got[0] == over:
		l.token = rand.Text()
		return a, errOver
	case a.granted && !l.Valid():
		l.unknown = true
		return a, errSlow
	}
	return a, nil
}

// sleep waits for d. It returns nil after d, and the reason if ctx ends or the Store is closed
// first.
func (s *Store) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return s.usable(ctx)
	case <-s.closed:
		return s.usable(ctx)
	}
}

// micros returns d in whole microseconds, rounded up.
func micros(d time.Duration) string {
	d = min(max(d, 0), maxDelay)
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10)
}

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
