package redisstore

import (
	"sync"
	"time"
)

// answers remembers for which hosts Redis has just answered that no process has a delay. For a short
// time, a few requests to such a host need no exchange with Redis.
//
// This does not make a gap shorter than a delay. Redis has recorded until when requests may be sent
// that rely on its answer, and lets no request with a delay start before one delay after that time.
type answers struct {
	mu     sync.Mutex
	byHost map[string]*answered
}

// answered is an answer of Redis that no process has a delay.
type answered struct {
	lease *lease // the lease that Redis has granted
	left  int    // how many more requests may rely on the answer
}

// These constants say for how long, and for how many requests, Acquire relies on an answer. So they
// also bound what another process still sends after a Retry-After. A request that Acquire has let
// start may be sent later, as long as its lease is valid.
const (
	fresh     = 100 * time.Millisecond
	perAnswer = 32
)

func (a *answered) isFresh() bool { return a.left > 0 && isBefore(a.lease.before.Add(fresh)) }

// find returns a new lease for a host that relies on a fresh answer, or nil if there is none.
func (a *answers) find(host string) *lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.byHost[host]
	if known == nil || !known.isFresh() {
		return nil
	}
	known.left--
	l := known.lease
	return &lease{store: l.store, host: l.host, token: l.token, before: l.before}
}

// add remembers an answer of Redis. It also looks at two other answers and removes them if they are
// no longer fresh. Go iterates over a map in no fixed order, so the number of old answers stays
// small.
func (a *answers) add(l *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byHost == nil {
		a.byHost = make(map[string]*answered)
	}
	looks := 2
	for host, other := range a.byHost {
		if looks == 0 {
			break
		}
		looks--
		if !other.isFresh() {
			delete(a.byHost, host)
		}
	}
	a.byHost[l.host] = &answered{lease: l, left: perAnswer - 1}
}

// remove forgets the answer about a host, because this process has learned of a delay.
func (a *answers) remove(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byHost, host)
}
