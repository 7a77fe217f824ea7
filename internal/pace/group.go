package pace

import (
	"sync/atomic"
	"time"
)

// This file lets several hosts share one pace, for example all hosts of one server.
//
// A group is a Host of its own, which is not in the shards. It has the limiter, the queues and the
// lock of all of its members. The lock method of a member returns the locked group, so the other
// methods of a Host need not know whether it belongs to one. A ticket belongs to the member where
// it is used. As long as it holds something, its member cannot leave the group.
//
// The locks are taken in this order: that of a member, that of the registry of groups, that of a
// group.

// A member is what a host needs in addition to its limiter if it may share its pace.
type member struct {
	// The following fields are guarded by the lock of the host.
	group    *Host      // keeps the pace of the host; nil if the host does that itself
	assigned Assignment // the group that the host joins when it has no tickets

	// The following fields are guarded by the lock of the group.
	tickets int     // the tickets of the host that hold something
	queued  int     // the tickets of the host in Enter
	inLine  *Ticket // the one that waits in the queue of the group; nil if there is none
	backlog list    // the tickets in Enter behind inLine

	crawlDelays []*crawlDelay // those of the host; also guarded by its own lock if it is alone

	// The following fields count events while the host belonged to a group.
	requests  atomic.Int64
	throttled atomic.Int64
	waited    atomic.Int64 // a time.Duration
}

// A members is what the limiter of a group has in addition to that of a host.
type members struct {
	count    int     // the number of its hosts
	tickets  int     // the tickets of its hosts that hold something
	reserved instant // the last turn that Reserve has returned
}

// keeper returns the Host that keeps the pace of h: its group, or h itself.
func (h *Host) keeper() *Host {
	h = h.lock()
	defer h.mu.Unlock()
	return h
}

// member returns what h needs to share its pace, or nil if its rules do not allow that.
func (h *Host) member() *member {
	if !h.rules.Shares {
		return nil
	}
	return h.paced.member
}

// memberOf returns the member that t belongs to, or nil if l is not the limiter of a group.
func (l *limiter) memberOf(t *Ticket) *member {
	if l.paced == nil || l.paced.members == nil {
		return nil
	}
	return t.host.Load().paced.member
}

// groupOf returns the group that keeps the pace of h, or nil if h does that itself or is forgotten.
// h is locked.
func (h *Host) groupOf() *Host {
	if !h.gone || !h.rules.Shares {
		return nil
	}
	return h.paced.member.group
}

// lockGroup returns the locked group of h, which is locked and gone, and unlocks h. If h was
// forgotten, it returns h, which stays locked.
func (h *Host) lockGroup() *Host {
	group := h.groupOf()
	if group == nil {
		return h
	}
	group.mu.Lock()
	h.mu.Unlock()
	return group
}

// nextTurn returns when a request that is made at now may start. In a group it comes after the
// requests of the other hosts, which take turns with it.
func (l *limiter) nextTurn(now instant) instant {
	turn := now.add(l.due(now, nil))
	if l.paced == nil || l.paced.members == nil || l.rules.Free {
		return turn
	}
	return turn.add(times(l.delay(now), l.paced.members.tickets))
}

// countRequest adds n to the number of requests of the host of t.
func (l *limiter) countRequest(t *Ticket, n int) {
	l.requests += n
	if m := l.memberOf(t); m != nil {
		m.requests.Add(int64(n))
	}
}

// addWait adds d to the time that the requests of the host of t have waited.
func (l *limiter) addWait(t *Ticket, d time.Duration) {
	l.paced.waited += d
	if m := l.memberOf(t); m != nil {
		m.waited.Add(int64(d))
	}
}

// countThrottled counts a complaint of a member, which may be nil, if it starts a new incident of
// the group.
func (l *limiter) countThrottled(m *member, slower bool) {
	if slower && l.paced.members != nil {
		m.throttled.Add(1)
	}
}

// readsAnother reports whether t, which may be nil, reads a robots.txt of a group, and another
// request of the group does so at now. The files are read one after another, because the first may
// request a delay. wait is the time after which to ask again.
func (l *limiter) readsAnother(now instant, t *Ticket) (wait time.Duration, reads bool) {
	if t == nil || !t.renews || l.paced == nil || l.paced.members == nil {
		return 0, false
	}
	for other := range l.inFlight.all {
		if other.renews && !other.expired(now) {
			return other.expiry.since(now), true
		}
	}
	return 0, false
}
