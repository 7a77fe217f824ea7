// Package pace decides when a host may get another request, and makes requests wait until then. It
// knows hosts only by name. It knows nothing about robots.txt, HTTP or the sender of a request.
//
// A request passes its host in two stages. In Enter, where it holds nothing yet, it waits for its turn
// until a request may start. Only one request of a host can have the turn. In Start, when the request
// has everything else that it needs, it starts: the next request has to wait for one delay.
//
// If requests waited only in Start, the requests of a slow host would meanwhile hold what the requests
// of a fast host need, such as a place in the caller's limit of parallel requests. If they waited only
// in Enter, several of them could wait for such a place after their turn, and then start together.
// Requests that have to go on the wire at once (redirects, robots.txt, sitemaps) pass only Start. They
// go before the requests that wait in Enter, because these may wait for them.
//
//	h := hosts.At(time.Now(), "example.com")
//	err := h.Enter(ctx, &t)         // stage 1
//	err = h.Start(ctx, &t, false)   // stage 2: the delay counts from here ...
//	t.OnWire()                      // the transport has the request: it now counts from here ...
//	t.Sent(time.Now())              // ... or, more exactly, from here
//	h.Answered(&t, 200, 1)          // or h.SlowDown, or h.Unavailable
//	t.End()                         // the response was read, or there is none
//
// The delay is kept between the moments at which requests reach the wire. Where a host allows more
// than one request in flight, other requests may be sent while one is still waiting for its
// connection. When the connection is ready and the delay would not be kept (Ticket.Late), that
// request starts again.
//
// Where only one request may be in flight, a request that never ends would hold its host forever.
// Its place therefore expires after a minute, or after ten delays if that is longer. The delay is
// still kept. MaxInFlightPerHost is a promise, so places under it do not expire.
//
// A host that answers 429 or 503 then gets requests at the rate that it was seen to accept.
//
// If several processes crawl the same hosts, a Pacer grants the starts at a host to one process at
// a time (see Hosts.UsePacer). Each process still keeps the delay itself. If processes crawl them one
// after the other, a Memory passes the pace on (see Hosts.UseMemory).
//
// # Structure
//
// A Ticket is the place of one request at a Host. A Host has the counts of one host. A Group has the
// limiter and the queues of the hosts that share one pace. A host that is paced alone, as most hosts
// are, has a Group of its own, which is a part of the Host.
//
// # Locks
//
//   - The lock of a Group guards the group, the counts of its hosts, and their tickets. Host.lock and
//     Ticket.lock find the group of a host and lock it.
//   - The lock of a shard guards the map of its hosts. A goroutine that holds it may try to lock a
//     group, but does not wait for the lock.
//   - The lock of the registry of groups guards the map of the groups. A goroutine that holds it may
//     lock two groups, to move a host from one to the other. No other goroutine holds two of them.
//
// While a goroutine holds the lock of a group, it takes no other lock of this package, except in this
// case. Lease.Valid and the function of Ticket.WaitWhile are called under the lock of a group. The
// other functions of a Pacer and of a Lease are called without a lock.
package pace

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// Hosts is the registry of all hosts of a crawl. All methods may be called from any goroutine.
// Create one with New.
type Hosts struct {
	rules  func(host string) *Rules
	epoch  time.Time
	seed   maphash.Seed
	random float64 // in [0, 1), so that processes do not back off in step
	shards [64]shard
	groups groups

	total  *totalRate // nil without LimitRate
	pauses pauses

	memory  Memory // nil if the pace of the hosts is not saved
	process uint64 // identifies this process in memory

	pacer       Pacer           // nil if no other process shares the hosts
	closing     context.Context // the parent of calls of pacer; ends with Close
	cancelCalls context.CancelCauseFunc

	close sync.Once     // sets err and closes done
	done  chan struct{} // closed by Close
	err   error         // the error passed to Close; set before done is closed
}

// A shard holds the hosts whose names have the same hash, modulo the number of shards.
type shard struct {
	// mu protects the fields below it, and Host.lastUse and Host.nextInRing of the hosts in the shard.
	mu        sync.Mutex
	byName    map[string]*Host
	hand      *Host // in the ring of all hosts of the shard; the host after it is examined next
	forgotten report.HostCounts
}

const (
	// keepAll is how many hosts a shard keeps before it starts to examine whether they are still
	// needed.
	keepAll = 1 << 17 / len(Hosts{}.shards)
	// longAgo is how many seconds after the last call of At for a host the host can be forgotten.
	longAgo = 600
	// mostExamined is how many hosts are examined when a host is added. It is more than one, so that idle
	// hosts leave faster than new hosts come, and small, so that no call of At takes long.
	mostExamined = 2
)

// errClosed is the error of waiting requests after Close(nil).
var errClosed = errors.New("the hosts are closed")

// New creates an empty registry. rules returns the settings of a host. It is called once for each
// host, when the host is first used, and must not return nil. The registry uses the clock of the
// caller of New: in a test with synctest, New must be called in the bubble that uses the hosts.
func New(rules func(host string) *Rules) *Hosts {
	h := &Hosts{
		rules:  rules,
		epoch:  time.Now(),
		seed:   maphash.MakeSeed(),
		random: rand.Float64(),
		done:   make(chan struct{}),
	}
	for i := range h.shards {
		h.shards[i].byName = make(map[string]*Host)
	}
	return h
}

// Close makes every Enter and Start that waits return err at once, and also every later one.
// Tickets that have started are not changed, but leases of requests that have not reached the
// transport are given back to the Pacer, which may call Close. Only the first call of Close has an
// effect.
func (h *Hosts) Close(err error) {
	isFirst := false
	h.close.Do(func() {
		isFirst = true
		h.err = err
		if err == nil {
			h.err = errClosed
		}
		close(h.done)
	})
	if !isFirst || h.pacer == nil {
		return
	}
	h.cancelCalls(h.err)
	for host := range h.All() {
		host.group().dropUnsent()
	}
}

// closeError returns the error passed to Close, or nil before Close.
func (h *Hosts) closeError() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// Sleep returns nil after d. It returns the cause of ctx when ctx ends, and the error of Close when the
// registry is closed.
func (h *Hosts) Sleep(ctx context.Context, d time.Duration) error {
	return new(Ticket).sleep(ctx, h, d)
}

// At returns the host with a name, which should be in normal form. It copies name if it keeps it.
//
// When there are very many hosts, each new one makes At examine a few others and forget those that
// are idle: they were not requested from At for ten minutes, may get a request at any time, and
// have no request that waits or is in flight.
func (h *Hosts) At(now time.Time, name string) *Host {
	s := h.shardOf(name)
	at := h.instant(now)
	if host := s.find(at, name); host != nil {
		return host
	}
	return h.pauses.insert(at, s, h.host(strings.Clone(name)))
}

// IsAway is Host.IsAway for the host with a name. It reports false if the registry does not have the host.
func (h *Hosts) IsAway(now time.Time, name string) bool {
	host := h.shardOf(name).find(h.instant(now), name)
	return host != nil && host.IsAway(now)
}

// shardOf returns the shard of the host with a name.
func (h *Hosts) shardOf(name string) *shard {
	return &h.shards[maphash.String(h.seed, name)%uint64(len(h.shards))]
}

// host returns a new host.
func (h *Hosts) host(name string) *Host {
	host := &Host{own: Group{registry: h, name: name, limiter: limiter{rules: h.rules(name)}}}
	own := &host.own
	if own.rules.Hours != nil {
		p := own.ensurePaced()
		p.hours = &hostSchedule{Schedule: own.rules.Hours, registry: h, closes: report.SourceHours}
		p.hasSchedule = true
	}
	own.isPaced.Store(own.asksPacer() || own.remembers() || !own.unpaced(0))
	if own.rules.Shares {
		m := new(member)
		m.group.Store(own)
		own.ensurePaced().member = m
	}
	return host
}

// All yields all hosts in no particular order. Hosts that are added or forgotten during the
// iteration may be missing. Hosts may be used during the iteration.
func (h *Hosts) All() iter.Seq[*Host] {
	return func(yield func(*Host) bool) {
		for i := range h.shards {
			if !h.shards[i].all(yield) {
				return
			}
		}
	}
}

// Forgotten returns the sum of the counts of the forgotten hosts.
func (h *Hosts) Forgotten() report.HostCounts {
	var sum report.HostCounts
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		sum.Add(s.forgotten)
		s.mu.Unlock()
	}
	return sum
}

// instant returns t on the clock of the registry. If t is too late for that, it returns the last
// instant.
func (h *Hosts) instant(t time.Time) instant { return instant(t.Sub(h.epoch)).add(1) }

// instantOrNever is like instant for the time at which something expires. The zero time, which means
// that it never expires, becomes the last instant.
func (h *Hosts) instantOrNever(until time.Time) instant {
	if until.IsZero() {
		return math.MaxInt64
	}
	return h.instant(until)
}

// now returns the current instant.
func (h *Hosts) now() instant { return instant(time.Since(h.epoch) + 1) }

// time is the inverse of instant. If the clock of the machine was set after New, for example
// because the machine was suspended, the result is a time by the new clock.
func (h *Hosts) time(i instant) time.Time {
	t := h.epoch.Add(time.Duration(i - 1))
	if step := h.clockStep(); step != 0 {
		return t.Round(0).Add(step)
	}
	return t
}

// clockStep returns by how much the clock was set after New, in whole seconds. It compares wall
// time with monotonic time, which Round removes from a time.
func (h *Hosts) clockStep() time.Duration {
	now := time.Now()
	elapsed := now.Round(0).Sub(h.epoch.Round(0))
	return (elapsed - now.Sub(h.epoch)).Round(time.Second)
}

// find returns the host with a name, or nil if the shard has none.
func (s *shard) find(now instant, name string) *Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	host := s.byName[name]
	if host != nil {
		host.lastUse = now.seconds()
	}
	return host
}

// insert adds a host unless the shard already has one with the same name. It returns the one that
// is in the shard, and how many other hosts it examined.
func (s *shard) insert(now instant, host *Host) (_ *Host, examined int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[host.own.name]; known != nil {
		return known, 0
	}
	for ; len(s.byName) >= keepAll && examined < mostExamined; examined++ {
		s.examine(now)
	}
	host.lastUse = now.seconds()
	s.byName[host.own.name] = host
	if s.hand == nil {
		s.hand = host
		host.nextInRing = host
	} else {
		host.nextInRing = s.hand.nextInRing
		s.hand.nextInRing = host
		s.hand = host // the new host is examined last
	}
	return host, examined
}

// examine forgets the next host of the ring if it is no longer needed. Otherwise it moves on.
func (s *shard) examine(now instant) {
	host := s.hand.nextInRing
	if now.seconds()-host.lastUse < longAgo || !host.forget(now) {
		s.hand = host
		return
	}
	s.forgotten.Add(host.counts())
	delete(s.byName, host.own.name)
	s.hand.nextInRing = host.nextInRing
	host.nextInRing = nil
}

// all yields the hosts of a shard in batches, so that its lock is never held for long. It reports
// whether yield always returned true.
func (s *shard) all(yield func(*Host) bool) bool {
	some := make([]*Host, 0, 64)
	flush := func() bool {
		s.mu.Unlock()
		defer s.mu.Lock()
		for _, host := range some {
			if !yield(host) {
				return false
			}
		}
		some = some[:0]
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, host := range s.byName { // hosts may come and go while flush has released the lock
		some = append(some, host)
		if len(some) == cap(some) && !flush() {
			return false
		}
	}
	return flush()
}

// seconds returns i in whole seconds.
func (i instant) seconds() int32 { return int32(i / instant(time.Second)) }
