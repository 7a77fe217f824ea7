package redisstore

import (
	"sync"
	"time"
)

// freeHosts are the hosts without a delay in any process, according to a recent answer of Redis.
// For a short time, a few requests to such a host need no exchange with Redis.
//
// This does not make a gap shorter than a delay. Redis records the time until which requests that
// rely on its answer may be sent. No request with a delay starts before one delay after that time.
type freeHosts struct {
	// mu protects byName and the hosts in it.
	mu     sync.Mutex
	byName map[string]*freeHost
}

type freeHost struct {
	lease *lease // the lease that Redis has granted with its answer
	left  int    // how many more requests may rely on the answer
}

// These constants say for how long, and for how many requests, Acquire relies on an answer. So they
// also limit how many requests a process sends after another process has received a Retry-After. A
// request that Acquire has let start may be sent later, as long as its lease is valid.
const (
	fresh     = 250 * time.Millisecond
	perAnswer = 64
)

// isFresh reports whether another request may rely on the answer.
func (h *freeHost) isFresh() bool { return h.left > 0 && isBefore(h.lease.before.Add(fresh)) }

// find returns a new lease that relies on a fresh answer, or nil if there is none.
func (f *freeHosts) find(host string) *lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.byName[host]
	if h == nil || !h.isFresh() {
		return nil
	}
	h.left--
	return &lease{store: h.lease.store, host: host, token: h.lease.token, before: h.lease.before}
}

// add remembers the answer of Redis that has granted l. It also looks at two other hosts and
// removes those whose answer is no longer fresh. Go iterates over a map in no fixed order, so the
// number of old answers stays small.
func (f *freeHosts) add(l *lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName == nil {
		f.byName = make(map[string]*freeHost)
	}
	looks := 2
	for name, h := range f.byName {
		if looks == 0 {
			break
		}
		looks--
		if !h.isFresh() {
			delete(f.byName, name)
		}
	}
	f.byName[l.host] = &freeHost{lease: l, left: perAnswer - 1}
}

// remove removes the answer about a host. It is called when this process has a delay for the host.
func (f *freeHosts) remove(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byName, host)
}
