// Package pace decides when a host may be asked again, and lets requests wait until then. It knows
// hosts by name, and nothing of robots.txt, HTTP or who sends what.
//
// A request passes its host in two stages. In Enter, where it holds nothing yet, it waits for the
// host's one undispatched ticket and for the time of the next start, without taking it. In Start,
// with whatever else it needs in hand, it starts: the moment that counts. Waiting only in the
// second stage would let a slow host's requests fill the slots that a fast host needs; waiting only
// in the first would let requests bunch up behind a busy slot and leave it together. What has
// to go on the wire at once (redirect hops, robots.txt, sitemaps) passes Start alone, ahead of
// those who wait in Enter: it may hold what they wait for.
//
//	h := hosts.At(time.Now(), "example.com")
//	err := h.Enter(ctx, &t)         // stage 1
//	err = h.Start(ctx, &t, false)   // stage 2: counted from here ...
//	t.OnWire()                      // the transport has it: rather from here ...
//	t.Sent(time.Now())              // ... or, better still, from here
//	h.Answered(&t, 200, 1)          // or h.SlowDown, or h.Unavailable
//	t.End()                         // the response was read, or there is none
//
// The delay is kept between the moments at which requests reach the wire. Where a host allows more
// than one request in flight, one whose connection was long in the making finds, when it is there,
// that others have been sent since it started (Ticket.Late), and starts once more.
//
// A request that never ends would hold a host for good where one at a time may be in flight. So its
// place lapses after a minute, or ten delays if that is longer; the delay is kept all the same.
// MaxInFlight is a promise, and places under it do not lapse.
//
// A host that answers 429 or 503 is asked at the rate that it has been seen to accept.
//
// Where other processes ask the same hosts, a Pacer grants the starts to one of them at a time (see
// Hosts.Share), and the delay is kept in each of them all the same.
package pace

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Hosts are all hosts of a crawl. All methods may be called from any goroutine. Get one from New.
type Hosts struct {
	rules  func(host string) *Rules
	epoch  time.Time
	seed   maphash.Seed
	random float64 // in [0, 1), so that processes do not move as one
	shards [64]shard

	pacer   Pacer           // nil: the hosts are nobody else's
	closing context.Context // ends with Close; for who asks pacer
	end     context.CancelCauseFunc

	close sync.Once
	done  chan struct{} // closed by Close
	err   error         // why; set before
}

// A shard is some of the hosts, found by the hash of their name.
type shard struct {
	mu        sync.Mutex
	byName    map[string]*Host
	hand      *Host // of the ring of all hosts here, the one before the next to be looked at
	forgotten Stats
}

const (
	// keepAll is how many hosts a shard keeps without a look whether they are still needed.
	keepAll = 1 << 17 / len(Hosts{}.shards)
	// longAgo is how many seconds a host must not have been asked for to be forgotten.
	longAgo = 600
	// looks is how many hosts are looked at when one more comes: more than one, so that the idle
	// ones go faster than others come, and few, so that nobody waits for it.
	looks = 2
)

// errClosed is what Close(nil) closes with.
var errClosed = errors.New("pace: closed")

// New makes an empty registry. rules returns what holds for a host, and is called once when
// a host is first asked for; it must not return nil. The clock is that of New's caller: call
// it in the synctest bubble that the hosts are used in.
func New(rules func(host string) *Rules) *Hosts {
	h := &Hosts{
		rules: rules, epoch: time.Now(), seed: maphash.MakeSeed(), random: rand.Float64(),
		done: make(chan struct{}),
	}
	for i := range h.shards {
		h.shards[i].byName = make(map[string]*Host)
	}
	return h
}

// Close makes everybody who waits return err at once, and every later Enter and Start too. Tickets
// that have started are not touched, but a Pacer gets back what is held for requests that no
// transport has yet. Only the first call counts.
func (h *Hosts) Close(err error) {
	h.close.Do(func() {
		if h.err = err; err == nil {
			h.err = errClosed
		}
		close(h.done)
		if h.pacer != nil {
			h.end(h.err)
			for host := range h.All() {
				host.forsake()
			}
		}
	})
}

// closed returns what Close was called with.
func (h *Hosts) closed() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// At returns the host of a name, which should be in normal form; name is copied if it is kept. With
// very many hosts, some that were not asked for in ten minutes, may be asked at any time and
// have nobody waiting and nothing in flight are forgotten when new ones come: a few are looked at
// each time.
func (h *Hosts) At(now time.Time, name string) *Host {
	s := &h.shards[maphash.String(h.seed, name)%uint64(len(h.shards))]
	at := h.instant(now)
	if host := s.find(at, name); host != nil {
		return host
	}
	host, _ := s.insert(at, h.host(strings.Clone(name)))
	return host
}

// host returns a new host.
func (h *Hosts) host(name string) *Host {
	host := &Host{hosts: h, name: name, limiter: limiter{rules: h.rules(name)}}
	host.slow.Store(host.shared() || !host.unpaced(0))
	return host
}

// All yields all hosts, in no order. Those that come or are forgotten meanwhile may be missing.
// Hosts may be used while it runs.
func (h *Hosts) All() iter.Seq[*Host] {
	return func(yield func(*Host) bool) {
		for i := range h.shards {
			if !h.shards[i].all(yield) {
				return
			}
		}
	}
}

// Forgotten returns the sum over the hosts that were forgotten.
func (h *Hosts) Forgotten() Stats {
	var sum Stats
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		sum.add(s.forgotten)
		s.mu.Unlock()
	}
	return sum
}

// instant returns t on the registry's clock, or the end of that.
func (h *Hosts) instant(t time.Time) instant { return instant(t.Sub(h.epoch)).add(1) }

// now is instant of the present.
func (h *Hosts) now() instant { return instant(time.Since(h.epoch) + 1) }

// time is the inverse of instant.
func (h *Hosts) time(i instant) time.Time { return h.epoch.Add(time.Duration(i - 1)) }

// find returns a known host, or nil.
func (s *shard) find(now instant, name string) *Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	host := s.byName[name]
	if host != nil {
		host.asked = now.seconds()
	}
	return host
}

// insert adds a host unless another one of its name came first, and returns the one that is there.
// It returns how many others it looked at.
func (s *shard) insert(now instant, host *Host) (_ *Host, looked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[host.name]; known != nil {
		return known, 0
	}
	for ; len(s.byName) >= keepAll && looked < looks; looked++ {
		s.look(now)
	}
	host.asked = now.seconds()
	s.byName[host.name] = host
	if s.hand == nil {
		s.hand = host
		host.next = host
	} else {
		host.next = s.hand.next
		s.hand.next = host
		s.hand = host // it is looked at last
	}
	return host, looked
}

// look forgets the next host of the ring if nobody needs it, or moves on.
func (s *shard) look(now instant) {
	host := s.hand.next
	if now.seconds()-host.asked < longAgo || !host.forget(now) {
		s.hand = host
		return
	}
	s.forgotten.add(host.counts())
	delete(s.byName, host.name)
	s.hand.next = host.next
	host.next = nil
}

// all yields the hosts of a shard, some at a time so that its lock is never held for long.
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
	for _, host := range s.byName { // hosts may come and go while flush has the lock free
		if some = append(some, host); len(some) == cap(some) && !flush() {
			return false
		}
	}
	return flush()
}

// seconds returns i in whole seconds.
func (i instant) seconds() int32 { return int32(i / instant(time.Second)) }
