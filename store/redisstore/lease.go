package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A lease is a host taken for one request, or the leave to send one to a host that nobody takes.
type lease struct {
	store  *Store
	host   string
	token  string    // of this attempt: who asks twice with it gets one lease
	before time.Time // of the exchange in which it was granted
	held   bool      // the host is taken

	unknown  bool // an exchange failed, and may have taken the host all the same
	released atomic.Bool
}

// Deadline returns by when the request must have ended, the zero time where no delay is in force.
func (l *lease) Deadline() time.Time {
	if !l.held {
		return time.Time{}
	}
	d := l.store.lease
	return l.before.Add(d - min(d/10, time.Second))
}

// Valid reports whether the request may be sent now: within a second of when the lease was asked
// for, by the monotonic clock, which may stand still while a machine sleeps, and by wall time.
func (l *lease) Valid() bool {
	until := l.before.Add(within)
	if end := l.Deadline(); !end.IsZero() && end.Before(until) {
		until = end
	}
	now := time.Now()
	return !l.released.Load() && now.Before(until) && now.Round(0).Before(until.Round(0))
}

// Release gives the host back. If Redis cannot be reached, that is done when it can.
func (l *lease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	if l.released.Swap(true) || !l.held && (!sent || delay <= 0 && notBefore.IsZero()) {
		return
	}
	g := giveBack{host: l.host, token: l.token, sent: sent, ended: time.Now(), delay: delay, notBefore: notBefore}
	if err := l.store.give(g); err != nil {
		l.store.late.add(g)
	}
}

// abandon returns err. If Redis may have granted what the caller does not get, that is given back
// when Redis is there again.
func (l *lease) abandon(err error) error {
	if l.unknown {
		l.store.late.add(giveBack{host: l.host, token: l.token, ended: time.Now()})
	}
	return err
}

// A giveBack is the end of a lease.
type giveBack struct {
	host, token string
	sent        bool
	ended       time.Time
	delay       time.Duration
	notBefore   time.Time
}

// give tells Redis of the end of a lease.
func (s *Store) give(g giveBack) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	state, _, aside := s.keys.host(g.host)
	hold := time.Duration(0)
	if !g.notBefore.IsZero() {
		hold = time.Until(g.notBefore)
	}
	got, err := release.Run(ctx, s.client, []string{state, aside}, g.token, g.sent, micros(time.Since(g.ended)), micros(g.delay), micros(hold)).Int64Slice()
	if err == nil && len(got) == 2 {
		s.report.host(g.host, duration(got[0]), got[1] != 0, false)
	}
	return err
}

// late is what Redis has not been told yet, since it was away.
type late struct {
	some atomic.Bool
	mu   sync.Mutex
	list []giveBack
}

const (
	mostLate = 4096 // what is beyond ends with its lease, and one delay more
	lateOnce = 64   // how many are told at once
)

func (l *late) add(gs ...giveBack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, gs...)
	if n := len(l.list) - mostLate; n > 0 {
		l.list = append([]giveBack(nil), l.list[n:]...)
	}
	l.some.Store(len(l.list) > 0)
}

// take removes and returns some.
func (l *late) take() []giveBack {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.list), lateOnce)
	some := append([]giveBack(nil), l.list[:n]...)
	l.list = append([]giveBack(nil), l.list[n:]...)
	l.some.Store(len(l.list) > 0)
	return some
}

// settle tells Redis, which has just answered, what it has not been told. It does not take so long
// that a lease which has just been granted is lost over it.
func (s *Store) settle() {
	if !s.late.some.Load() {
		return
	}
	began, some := time.Now(), s.late.take()
	for i, g := range some {
		switch err := s.give(g); {
		case err != nil && passing(err):
			s.late.add(some[i:]...)
			return
		case time.Since(began) > within/4:
			s.late.add(some[i+1:]...)
			return
		}
	}
}
