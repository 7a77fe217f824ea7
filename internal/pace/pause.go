package pace

import (
	"sync"
	"sync/atomic"
	"time"
)

// pauses says which hosts are paused. A host that is paused starts no request of any kind.
type pauses struct {
	// mu protects the fields below it. It is held while a pause is applied to the hosts.
	mu     sync.Mutex
	all    bool                // all hosts are paused, except the others
	others map[string]struct{} // the hosts for which all does not hold

	inUse atomic.Bool // Pause was called
}

// set makes a pause begin or end for a host, or for all hosts if host is "". p.mu is held.
func (p *pauses) set(host string, paused bool) {
	switch {
	case host == "":
		p.all = paused
		p.others = nil
	case paused == p.all:
		delete(p.others, host)
	default:
		if p.others == nil {
			p.others = make(map[string]struct{})
		}
		p.others[host] = struct{}{}
	}
}

// has reports whether a host is paused. p.mu is held.
func (p *pauses) has(host string) bool {
	_, isOther := p.others[host]
	return p.all != isOther
}

// Pause pauses the host with a name, or ends its pause if paused is false. If the name is "", it does so
// for all hosts, also for those that are used later. While a host is paused, none of its requests
// passes Enter or Start. They keep their order. Requests on the wire go on. The other hosts of a group
// are not paused.
func (h *Hosts) Pause(name string, paused bool) {
	h.pauses.mu.Lock()
	defer h.pauses.mu.Unlock()
	h.pauses.inUse.Store(true)
	h.pauses.set(name, paused)
	if name == "" {
		for host := range h.All() {
			h.pauses.apply(host)
		}
		return
	}
	host := h.shardOf(name).find(h.now(), name)
	if host != nil {
		h.pauses.apply(host)
	}
}

// HasPauses reports whether a host may be paused. It takes no lock.
func (h *Hosts) HasPauses() bool { return h.pauses.inUse.Load() }

// insert is shard.insert for a host that may be paused.
func (p *pauses) insert(now instant, s *shard, host *Host) *Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apply(host)
	inserted, _ := s.insert(now, host)
	return inserted
}

// IsPaused reports whether h is paused.
func (h *Host) IsPaused() bool {
	if h.own.plain() {
		return false
	}
	g, host := h.lock()
	defer g.mu.Unlock()
	return host.isPaused()
}

// mayResume is how long NextStart says that a host which is paused starts no request. The pause may
// end earlier or later.
const mayResume = time.Minute

// apply makes a pause begin or end for a host, as p says. p.mu is held. If the host is forgotten, the
// Host that replaces it gets the pause in insert.
func (p *pauses) apply(h *Host) {
	g := h.group()
	g.mu.Lock()
	for g != h.group() {
		g.mu.Unlock()
		g = h.group()
		g.mu.Lock()
	}
	defer g.unlock()
	paused := p.has(h.own.name)
	if g.isForgotten || paused == h.isPaused() {
		return
	}
	h.own.ensurePaced().paused = paused // the host is no longer plain
	g.wakeNext()
}

// isPaused reports whether the host of t is paused.
func (t *Ticket) isPaused() bool {
	h := t.host.Load()
	return h != nil && h.isPaused()
}

// isPaused reports whether h is paused. The group of h is locked.
func (h *Host) isPaused() bool { return h.own.paced != nil && h.own.paced.paused }

// nextUrgent returns the first ticket in Start whose host is not paused, or nil. In a group with
// members it moves the tickets before it to the end.
func (g *Group) nextUrgent() *Ticket {
	if g.paced == nil {
		return nil
	}
	return g.paced.urgent.next(g.hasMembers())
}

// skipPaused moves the tickets in Enter of hosts that are paused behind the others, in a group with
// members. Each member has at most one ticket there.
func (g *Group) skipPaused() {
	if g.hasMembers() {
		g.paced.waiting.next(true)
	}
}

// next returns the first ticket of l whose host is not paused, or nil. If several is false, all
// tickets have the same host. Otherwise next makes the ticket the front of the ring.
func (l *list) next(several bool) *Ticket {
	first := l.front
	switch {
	case first == nil || !first.isPaused():
		return first
	case !several:
		return nil
	}
	for t := first.next; t != first; t = t.next {
		if !t.isPaused() {
			l.front = t
			return t
		}
	}
	return nil
}
