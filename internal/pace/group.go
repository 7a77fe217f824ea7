package pace

import (
	"sync"
	"time"
)

// A Group is a set of hosts that share one pace, for example all hosts of one server. It has the
// limiter and the queues of its hosts. Most hosts are paced alone: each of them is the only one of a
// group of its own, which is a part of the Host. The other groups have members: hosts that join and
// leave them, see Host.Join.
//
// A ticket belongs to the host where it is used. As long as it holds something, that host cannot
// leave its group.
type Group struct {
	// mu protects the group, the counts of its hosts, and their tickets.
	mu       sync.Mutex
	registry *Hosts
	name     string // of the group, or of its only host
	limiter
}

// members is what the limiter of a group has in addition if the group has members.
type members struct {
	count    int     // the number of hosts
	tickets  int     // the tickets of the hosts that hold something
	reserved instant // the last start that Reserve has returned
	marks    uint16  // the bits that were passed to MarkPace
}

// hasMembers reports whether l is the limiter of a group that hosts join and leave, and not that of
// the own group of a host.
func (l *limiter) hasMembers() bool { return l.paced != nil && l.paced.members != nil }

// memberOf returns the member that t belongs to, or nil if l is the limiter of the own group of a
// host.
func (l *limiter) memberOf(t *Ticket) *member {
	if !l.hasMembers() {
		return nil
	}
	return t.host.Load().member()
}

// earliestStart returns when a request that is made at now may start. In a group with members it comes
// after the requests that these have already made.
func (l *limiter) earliestStart(now instant) instant {
	start := now.add(l.due(now, nil))
	if !l.hasMembers() || l.rules.Free {
		return start
	}
	return start.add(times(l.usualGap(l.delay(now)), l.paced.members.tickets))
}

// mostAhead limits how far ahead Reserve reserves a start, because the delay may become shorter.
const mostAhead = 5 * time.Minute

// reserve returns when a request of a group with members may start: one usual gap after the start that
// it returned before, but not before the earliest start, and at most mostAhead after that.
func (g *Group) reserve(now instant) instant {
	first := g.earliestStart(now)
	reserved := g.paced.members.reserved.add(g.usualGap(g.delay(now)))
	g.paced.members.reserved = min(max(reserved, first), first.add(mostAhead))
	return g.paced.members.reserved
}

// readsAnother reports whether t, which may be nil, reads a robots.txt of a group with members, and
// another request of the group does so at now. The files are read one after another, because the
// first may request a delay. wait is the time after which to ask again.
func (l *limiter) readsAnother(now instant, t *Ticket) (wait time.Duration, reads bool) {
	if t == nil || !t.renews || !l.hasMembers() {
		return 0, false
	}
	for other := range l.inFlight.all {
		if other.renews && !other.expired(now) {
			return other.expiry.since(now), true
		}
	}
	return 0, false
}
