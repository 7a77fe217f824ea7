package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots"
)

const (
	within      = time.Second            // how long a lease may wait to be sent with; lua/state.lua has it, too
	longestLook = 15 * time.Second       // a waiter looks again after that, however long it has to wait
	pause       = 100 * time.Millisecond // between two tries while Redis is away
	mostJitter  = 50 * time.Millisecond
)

// Acquire waits until this process may send one request to host, as [collyrobots.Pacer] has it.
// The lease is there to be used at once: after a second it is no longer Valid.
//
// The error is ctx's cause, [store.ErrClosed], an [*AwayError], or an error of Redis that asking
// again does not change. Acquire returns no earlier than the exchange that is under way.
func (s *Store) Acquire(ctx context.Context, host string, delay time.Duration) (collyrobots.Lease, error) {
	if s.unfit != nil {
		return nil, s.unfit
	}
	l := &lease{store: s, host: host, token: rand.Text()}
	key, _, _ := s.keys.host(host)
	var why error // Redis is away
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
			return l, nil
		case err == nil:
			away, l.unknown = time.Time{}, false
			wait = min(a.wait, longestLook) + mathrand.N(min(a.gap/20, mostJitter)+1)
		case !passing(err):
			return nil, l.abandon(s.problem(key, err))
		default:
			if away.IsZero() {
				away, why = l.before, err
			} else if !errors.Is(err, context.DeadlineExceeded) {
				why = err // which says more than that the time is over
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

// An AwayError reports that Redis has given no usable answer for longer than [Patience].
type AwayError struct {
	Server string    // "Redis at " and its address, as the client has it
	Since  time.Time // when the first exchange without an answer began
	Err    error     // the cause: the last error that is not just a deadline, if there is one
}

// Error returns the server, since when it gives no usable answer, and the cause.
func (e *AwayError) Error() string {
	what := "does not answer"
	if isReply(e.Err) {
		what = "refuses"
	}
	return fmt.Sprintf("redisstore: %s %s since %s: %v", e.Server, what, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *AwayError) Unwrap() error { return e.Err }

// An answer is what Redis says to who asks for a host.
type answer struct {
	granted   bool
	wait, gap time.Duration // after what time to look again; the delay that holds
}

// What lua/acquire.lua says of a token.
const (
	refused = iota
	taken
	free
	over
)

var (
	errSlow = errors.New("the answer came too late to be used")
	errOver = errors.New("the token was given back already")
)

// ask is one exchange. away is since when there were errors.
func (l *lease) ask(ctx context.Context, delay time.Duration, away time.Time) (answer, error) {
	s := l.store
	l.before = time.Now()
	patience := s.patience
	if !away.IsZero() {
		patience = max(time.Millisecond, s.patience-l.before.Sub(away))
	}
	// What is under way is not broken off: who knows what Redis has made of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	state, epoch, aside := s.keys.host(l.host)
	got, err := acquire.Run(ctx, s.client, []string{state, epoch, aside}, l.token, micros(s.lease), micros(delay)).Int64Slice()
	if err == nil && len(got) != 6 {
		err = fmt.Errorf("%d numbers for an answer", len(got))
	}
	if err != nil {
		l.unknown = true
		return answer{}, err
	}
	s.report.host(l.host, duration(got[3]), got[4] != 0, got[5] == 0)
	a := answer{granted: got[0] == taken || got[0] == free, wait: duration(got[1]), gap: duration(got[2])}
	switch l.held = got[0] == taken; {
	case got[0] == over:
		l.token = rand.Text()
		return a, errOver
	case a.granted && !l.Valid():
		l.unknown = true
		return a, errSlow
	}
	return a, nil
}

// sleep returns nil after d.
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

// micros returns a delay in microseconds, rounded up.
func micros(d time.Duration) string {
	d = min(max(d, 0), maxDelay)
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10)
}

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
