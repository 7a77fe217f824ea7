// Package arrivals tracks the visits that a collector has accepted and whose requests have not been
// recorded yet.
//
// Visit of an asynchronous collector returns before the request exists. A page can therefore be
// done while the pages that its callbacks have visited are not recorded anywhere. If the process
// were killed then, they would be lost. Colly marks each URL as visited before Visit returns, in
// the storage of the collector, so a Storage of this package sees every visit in time. The caller
// reports when the request was recorded, and learns when all visits up to some moment were.
package arrivals

import (
	"math"
	"slices"
	"sync"
	"time"
)

// patience is how long After waits for a visit whose request reaches no callback of the plugin.
// Colly starts the goroutine of a request at once, so such a request belongs to a clone without
// these callbacks, and was neither sent nor redirected.
const patience = time.Minute

// A visit is on its way until its request has passed the callback that records it. Its goroutine
// needs memory, so a visit waits while mostOnWay others are on their way. If none of them arrives
// for a while, because callbacks block or because the requests never reach them, the visit goes on.
const (
	mostOnWay = 1024
	longWait  = time.Second
)

// Visits are the visits of any number of collectors that have not arrived. All methods may be
// called from any goroutine. Get one from New.
type Visits struct {
	// mu protects the fields below it, except known, and each Visit.
	mu      sync.Mutex
	known   func()              // is called when a collector knows a URL; may be nil
	counter uint64              // the number of the last visit
	byHash  map[uint64][]*Visit // those that are not Arriving, in the order of their numbers
	oldest  *Visit              // of the list in the order of their numbers; nil if all have arrived
	newest  *Visit
	ended   ended       // requests that were not recorded
	waiting []waiting   // in the order of after
	timer   *time.Timer // calls expire; nil if it is not set
	closed  bool

	onWay   int             // the number of visits after ignored that are on their way
	ignored uint64          // the number of the last visit that does not count for onWay
	full    []chan struct{} // visits that wait until fewer are on their way
}

// A Visit was accepted by a collector and has not arrived.
type Visit struct {
	storage    *Storage // of its collector
	hash       uint64
	number     uint64
	at         time.Time // when it was accepted
	gone       bool      // Arrived was called
	passed     bool      // it is no longer on its way
	prev, next *Visit
}

// A waiting is a call of After.
type waiting struct {
	after uint64 // the number of the last visit that f waits for
	f     func(complete bool)
}

// ended are the visits whose requests have ended without a record; see Visit.Ended.
type ended struct {
	first uint64 // the smallest number of them; 0 if there are none
	until uint64 // the number of the last visit when the last of them ended
}

// New returns Visits that contain no visit. known is called when a collector is asked for a URL
// that was visited before; it may be nil.
func New(known func()) *Visits {
	return &Visits{known: known, byHash: make(map[uint64][]*Visit)}
}

// After calls f when all visits that were accepted so far have arrived, which may be at once. The
// calls are in the order of the calls of After. complete is false if Close was called before,
// because later visits are not seen. f must not call After.
func (v *Visits) After(f func(complete bool)) {
	v.mu.Lock()
	if !v.closed && (v.first() != noVisit || len(v.waiting) > 0) {
		v.waiting = append(v.waiting, waiting{after: v.counter, f: f})
		if v.timer == nil {
			v.timer = time.AfterFunc(patience, v.expire)
		}
		v.mu.Unlock()
		return
	}
	complete := !v.closed
	v.mu.Unlock()
	f(complete)
}

// Pending returns the number of visits that have not arrived.
func (v *Visits) Pending() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for visit := v.oldest; visit != nil; visit = visit.next {
		n++
	}
	return n
}

// Close ends all waits of After. Later visits are not seen.
func (v *Visits) Close() {
	v.mu.Lock()
	v.closed = true
	rest := v.waiting
	v.waiting = nil
	v.ignore()
	if v.timer != nil {
		v.timer.Stop()
	}
	v.mu.Unlock()
	for _, w := range rest {
		w.f(false)
	}
}

// wait waits until a further visit may be on its way.
func (v *Visits) wait() {
	v.mu.Lock()
	if v.onWay < mostOnWay {
		v.mu.Unlock()
		return
	}
	room := make(chan struct{})
	v.full = append(v.full, room)
	v.mu.Unlock()
	timer := time.NewTimer(longWait)
	defer timer.Stop()
	select {
	case <-room:
	case <-timer.C:
		v.mu.Lock()
		defer v.mu.Unlock()
		v.ignore()
	}
}

// ignore makes wait no longer wait for the visits that are on their way. v.mu is held.
func (v *Visits) ignore() {
	v.ignored = v.counter
	v.onWay = 0
	for _, room := range v.full {
		close(room)
	}
	v.full = nil
}

// pass records that a visit is no longer on its way. v.mu is held.
func (v *Visits) pass(visit *Visit) {
	if visit.passed || visit.number <= v.ignored {
		return
	}
	visit.passed = true
	v.onWay--
	if len(v.full) > 0 {
		close(v.full[0])
		v.full = v.full[1:]
	}
}

// Passed records that the request of the visit has passed the callback that records it, and will
// arrive later. It does nothing if the Visit is nil.
func (visit *Visit) Passed() {
	if visit == nil {
		return
	}
	v := visit.storage.visits
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pass(visit)
}

// accept records a visit.
func (v *Visits) accept(s *Storage, hash uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	v.counter++
	visit := &Visit{storage: s, hash: hash, number: v.counter, at: time.Now(), prev: v.newest}
	if v.newest != nil {
		v.newest.next = visit
	} else {
		v.oldest = visit
	}
	v.newest = visit
	v.onWay++
	v.byHash[hash] = append(v.byHash[hash], visit)
}

// arriving removes the oldest visit of a storage with a hash from byHash, and returns it. It
// returns nil if there is none.
func (v *Visits) arriving(s *Storage, hash uint64) *Visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.byHash[hash]
	i := slices.IndexFunc(all, func(visit *Visit) bool { return visit.storage == s })
	if i < 0 {
		return nil
	}
	return v.take(all, i)
}

// Drop removes a visit with a hash, because no request of an attached collector will arrive: the
// URL was marked as visited because it is the target of a redirect, or a clone that is not attached
// has visited it. If there are several, Drop removes the newest.
func (v *Visits) Drop(hash uint64) {
	v.newestOf(hash).Arrived()
}

// newestOf is like arriving for the newest visit of any storage.
func (v *Visits) newestOf(hash uint64) *Visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.byHash[hash]
	if len(all) == 0 {
		return nil
	}
	return v.take(all, len(all)-1)
}

// take removes all[i] from byHash, where all are the visits with its hash. v.mu is held.
func (v *Visits) take(all []*Visit, i int) *Visit {
	visit := all[i]
	if len(all) == 1 {
		delete(v.byHash, visit.hash)
	} else {
		v.byHash[visit.hash] = slices.Delete(all, i, i+1)
	}
	return visit
}

// Arrived records that the request of the visit was recorded, or never will be. It does nothing if
// the Visit is nil. Only the first call has an effect.
func (visit *Visit) Arrived() {
	if visit == nil {
		return
	}
	visit.storage.visits.leave(visit, nil)
}

// Ended records that the request of the visit has ended and will never be recorded. The visit
// arrives when all visits that were accepted so far have arrived or ended, because its callbacks
// may have made some of them. Only the first call of Ended or Arrived has an effect. Ended does
// nothing if the Visit is nil.
func (visit *Visit) Ended() {
	if visit == nil {
		return
	}
	visit.storage.visits.leave(visit, func(v *Visits) {
		if v.ended.first == 0 || visit.number < v.ended.first {
			v.ended.first = visit.number
		}
		v.ended.until = v.counter
	})
}

// leave removes a visit. If note is not nil, leave then calls it with v.mu held. At last it calls
// the functions of After that have no visit left to wait for.
func (v *Visits) leave(visit *Visit, note func(v *Visits)) {
	v.mu.Lock()
	if visit.gone {
		v.mu.Unlock()
		return
	}
	visit.gone = true
	v.pass(visit)
	v.unlink(visit)
	if note != nil {
		note(v)
	}
	if v.oldest == nil || v.oldest.number > v.ended.until {
		v.ended.first = 0
	}
	first := v.first()
	n := 0
	for n < len(v.waiting) && v.waiting[n].after < first {
		n++
	}
	over := v.waiting[:n:n]
	v.waiting = v.waiting[n:]
	v.mu.Unlock()
	for _, w := range over {
		w.f(true)
	}
}

// noVisit is larger than the number of any visit.
const noVisit = math.MaxUint64

// first returns the number of the first visit that has not arrived, or noVisit. v.mu is held.
func (v *Visits) first() uint64 {
	first := uint64(noVisit)
	if v.oldest != nil {
		first = v.oldest.number
	}
	if v.ended.first != 0 {
		first = min(first, v.ended.first)
	}
	return first
}

// unlink removes a visit from the list. v.mu is held.
func (v *Visits) unlink(visit *Visit) {
	if visit.prev != nil {
		visit.prev.next = visit.next
	} else {
		v.oldest = visit.next
	}
	if visit.next != nil {
		visit.next.prev = visit.prev
	} else {
		v.newest = visit.prev
	}
}

// expire drops the visits that have reached no callback in time.
func (v *Visits) expire() {
	for _, visit := range v.expired(time.Now().Add(-patience)) {
		visit.Arrived()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.timer = nil
	if len(v.waiting) > 0 && !v.closed {
		v.timer = time.AfterFunc(patience, v.expire)
	}
}

// expired removes the visits from byHash that were accepted by some time, and returns them.
func (v *Visits) expired(by time.Time) (gone []*Visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for visit := v.oldest; visit != nil && !visit.at.After(by); visit = visit.next {
		all := v.byHash[visit.hash]
		if i := slices.Index(all, visit); i >= 0 {
			gone = append(gone, v.take(all, i))
		}
	}
	return gone
}
