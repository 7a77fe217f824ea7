package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store/pacer"
)

// A MemoryPacer is a Pacer for the plugins of one process. It follows the contract of the
// interface: while a plugin has a delay for a host, only one lease of the host is valid at a time,
// and the longest recent delay passes between the end of one request and the start of the next.
type MemoryPacer struct {
	TTL time.Duration // of a lease
	Err error         // returned by Acquire; nil if it succeeds
	Bad any           // the value of a panic of Acquire; nil if there is none

	Mu      sync.Mutex
	changed chan struct{} // closed when the state has changed
	hosts   map[string]*memoryHost
	Out     int // leases that were not released
	Asked   int // calls of Acquire and further attempts
}

type memoryHost struct {
	holder    *memoryLease
	end       time.Time // of the last request
	delay     time.Duration
	until     time.Time // when delay is dropped
	notBefore time.Time
	free      map[*memoryLease]bool // the leases without a deadline that were not released
}

type memoryLease struct {
	pacer    *MemoryPacer
	host     *memoryHost
	deadline time.Time
	sendable time.Time // until then it is valid, if it has no deadline
	released bool
}

// Shared returns a pacer whose leases expire after 30 s. At the end of the test it checks that all
// leases were released.
func Shared(t *testing.T) *MemoryPacer {
	p := &MemoryPacer{TTL: 30 * time.Second, changed: make(chan struct{}), hosts: make(map[string]*memoryHost)}
	t.Cleanup(func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		if p.Out != 0 {
			t.Errorf("%d leases were not released", p.Out)
		}
	})
	return p
}

func (p *MemoryPacer) Acquire(ctx context.Context, host string, delay time.Duration) (pacer.Lease, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		lease, wait, changed, err := p.try(host, delay)
		if lease != nil || err != nil {
			return lease, err
		}
		select {
		case <-time.After(wait):
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *MemoryPacer) try(name string, delay time.Duration) (pacer.Lease, time.Duration, chan struct{}, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Asked++
	if p.Bad != nil {
		panic(p.Bad)
	}
	if p.Err != nil {
		return nil, 0, nil, p.Err
	}
	now, h := time.Now(), p.hosts[name]
	if h == nil {
		h = &memoryHost{free: make(map[*memoryLease]bool)}
		p.hosts[name] = h
	}
	if h.holder != nil && !now.Before(h.holder.deadline) { // the lease has expired
		h.end, h.holder = h.holder.deadline, nil
	}
	if now.After(h.until) {
		h.delay = 0
	}
	if delay > 0 && delay >= h.delay {
		h.delay, h.until = delay, now.Add(10*delay)
	}
	next := h.notBefore
	if t := h.end.Add(h.delay); h.delay > 0 && t.After(next) {
		next = t
	}
	if h.delay > time.Millisecond {
		for l := range h.free {
			if t := l.sendable.Add(h.delay); t.After(next) {
				next = t
			}
		}
	}
	switch {
	case h.holder != nil:
		return nil, h.holder.deadline.Sub(now), p.changed, nil
	case now.Before(next):
		return nil, next.Sub(now), p.changed, nil
	}
	l := &memoryLease{pacer: p, host: h}
	if h.delay > 0 {
		l.deadline, h.holder = now.Add(p.TTL), l
	} else {
		l.sendable = now.Add(time.Second)
		h.free[l] = true
	}
	p.Out++
	return l, 0, nil, nil
}

func (l *memoryLease) Deadline() time.Time { return l.deadline }

func (l *memoryLease) Valid() bool {
	until := l.deadline
	if until.IsZero() {
		until = l.sendable
	}
	return time.Now().Before(until)
}

func (l *memoryLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	p := l.pacer
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	p.Out--
	delete(l.host.free, l)
	if l.host.holder == l { // a lease without a delay, and one that has expired, hold nothing
		l.host.holder = nil
	}
	if sent {
		now := time.Now()
		l.host.end = now
		if delay >= l.host.delay || now.After(l.host.until) {
			l.host.delay, l.host.until = delay, now.Add(10*delay)
		}
		if notBefore.After(l.host.notBefore) {
			l.host.notBefore = notBefore
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Set calls f to change the behaviour of the pacer.
func (p *MemoryPacer) Set(f func()) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	f()
}
