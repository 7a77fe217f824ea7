package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A lease is a host that this process holds for one request. If no delay is in force for the host,
// the lease is only the permission to send one request.
type lease struct {
	store  *Store
	host   string
	token  string    // identifies the attempt: repeated calls with one token get one lease
	before time.Time // the time just before the exchange with Redis that granted it
	held   bool      // whether the host is held, so that other processes wait

	unknown  bool // whether an exchange failed that may have taken the host anyway
	released atomic.Bool
}

// Deadline returns the deadline of the request: before that time, it must have ended. It returns
// the zero time if no delay is in force.
func (l *lease) Deadline() time.Time {
	if !l.held {
		return time.Time{}
	}
	d := l.store.lease
	return l.before.Add(d - min(d/10, time.Second))
}

// Valid reports whether the request may be sent now. A lease is valid for a second from the time
// when it was requested, or until its deadline if that is earlier. Valid compares both the
// monotonic clock and the wall clock, because the monotonic clock may stop while the machine
// sleeps.
func (l *lease) Valid() bool {
	until := l.before.Add(within)
	if end := l.Deadline(); !end.IsZero() && end.Before(until) {
		until = end
	}
	return !l.released.Load() && isBefore(until)
}

// isBefore reports whether it is not yet t, by the monotonic clock and by wall time.
func isBefore(t time.Time) bool {
	now := time.Now()
	return now.Before(t) && now.Round(0).Before(t.Round(0))
}

// Release returns the host, so that another process can take it. If Redis cannot be reached, the
// Store releases the host when it can be reached again.
func (l *lease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	if l.released.Swap(true) || !l.held && (!sent || delay <= 0 && notBefore.IsZero()) {
		return
	}
	l.store.free.remove(l.host)
	g := giveBack{
		host:      l.host,
		token:     l.token,
		sent:      sent,
		ended:     time.Now(),
		delay:     delay,
		notBefore: notBefore,
	}
	if err := l.store.give(g); err != nil {
		l.store.late.add(g)
	}
}

// abandon returns err. If Redis may have granted the host although the caller gets an error,
// abandon schedules a release for the time when Redis can be reached again.
func (l *lease) abandon(err error) error {
	if l.unknown {
		l.store.late.add(giveBack{host: l.host, token: l.token, ended: time.Now()})
	}
	return err
}

// A giveBack holds the arguments of one release.
type giveBack struct {
	host      string
	token     string
	sent      bool
	ended     time.Time
	delay     time.Duration
	notBefore time.Time
}

// give releases the host in Redis.
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

// late holds the releases that could not be sent because Redis was away.
type late struct {
	some atomic.Bool

	// mu protects list.
	mu   sync.Mutex
	list []giveBack
}

const (
	mostLate = 4096 // the oldest are dropped beyond this; their hosts are free after the lease and one delay
	lateOnce = 64   // how many are sent at once
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

// take removes and returns up to lateOnce releases.
func (l *late) take() []giveBack {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.list), lateOnce)
	some := append([]giveBack(nil), l.list[:n]...)
	l.list = append([]giveBack(nil), l.list[n:]...)
	l.some.Store(len(l.list) > 0)
	return some
}

// settle sends releases that could not be sent before. Acquire calls it when Redis has just
// answered. It stops after a quarter of a second, so that a lease that was just granted stays
// valid.
func (s *Store) settle() {
	if !s.late.some.Load() {
		return
	}
	began := time.Now()
	some := s.late.take()
	for i, g := range some {
		err := s.give(g)
		switch {
		case err != nil && passing(err):
			s.late.add(some[i:]...)
			return
		case time.Since(began) > within/4:
			s.late.add(some[i+1:]...)
			return
		}
	}
}
