// Package handoff passes the record of a request from one of Colly's hooks to the next, and to the
// transport.
//
// The hooks get a *colly.Request, the transport gets an *http.Request, and no context leads from one
// to the other. They share only one thing: the URL of the request. All of them have the same pointer
// to it until the request was answered. So records are found by that pointer. A callback may change
// the URL behind the pointer, so a record should contain a copy of the URL that was judged.
//
// A page needs several look-ups, so the table has 64 shards. It uses no weak pointers: to turn one
// into a strong pointer waits for the end of the mark phase of the garbage collector.
//
// The package knows neither Colly nor what a record contains.
package handoff

import (
	"hash/maphash"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// idleLimit is how long a record may be idle between two hooks. If it is idle for longer, a
// callback has aborted the request, which Colly does not report, and the record is dropped.
const idleLimit = 10 * time.Second

// A Table contains the records of the requests that are under way. All methods may be called from
// any goroutine.
type Table[R any] struct {
	drop   func(*R)
	seed   maphash.Seed
	shards [64]shard[R]
	spare  sync.Pool
}

// A shard is one part of a table, with a lock of its own.
type shard[R any] struct {
	// mu protects the fields below it, and the ring of the entries.
	mu    sync.Mutex
	byURL map[*url.URL]*Entry[R]
	ring  Entry[R] // the head of a ring of all entries; the next one to be looked at follows it
}

// An Entry is the place of one record in a table. At any time it is either held by one goroutine or
// idle between two hooks. Only the goroutine that holds it may use it.
type Entry[R any] struct {
	Record R

	table *Table[R]
	shard *shard[R]
	url   *url.URL

	held       atomic.Bool // one goroutine uses the entry: the one that has set held
	since      time.Time   // when it became idle
	prev, next *Entry[R]   // in the ring of its shard; guarded by the shard's lock
}

// New returns an empty table. A record is dropped if it was idle for more than ten seconds, or if
// its URL was opened again. Then the table calls drop, without a lock, before it reuses the record.
func New[R any](drop func(*R)) *Table[R] {
	t := &Table[R]{drop: drop, seed: maphash.MakeSeed()}
	t.spare.New = func() any { return new(Entry[R]) }
	for i := range t.shards {
		s := &t.shards[i]
		s.byURL = make(map[*url.URL]*Entry[R])
		s.ring.prev = &s.ring
		s.ring.next = &s.ring
	}
	return t
}

// shardOf returns the shard for a URL. It hashes the pointer and not the text.
func (t *Table[R]) shardOf(u *url.URL) *shard[R] {
	return &t.shards[maphash.Comparable(t.seed, u)%uint64(len(t.shards))]
}

// Open returns a new entry for a URL, with a zero Record. The caller holds it. An idle entry with
// the same URL is dropped.
func (t *Table[R]) Open(u *url.URL, now time.Time) *Entry[R] {
	e := t.spare.Get().(*Entry[R])
	s := t.shardOf(u)
	e.table = t
	e.shard = s
	e.url = u
	e.held.Store(true)
	s.mu.Lock()
	before := s.byURL[u]
	old := s.expired(now)
	s.byURL[u] = e
	s.push(e)
	replaced := before != old && before.hold()
	if replaced {
		before.unlink()
	}
	s.mu.Unlock()
	if replaced {
		t.discard(before)
	}
	if old != nil {
		t.discard(old)
	}
	return e
}

// Take returns the idle entry with a URL, or nil. The caller holds it from now on.
func (t *Table[R]) Take(u *url.URL) *Entry[R] {
	s := t.shardOf(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byURL[u]; e.hold() {
		return e
	}
	return nil
}

// Has reports whether there is an entry with a URL, idle or not.
func (t *Table[R]) Has(u *url.URL) bool {
	s := t.shardOf(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byURL[u] != nil
}

// Empty reports whether the table has no entries.
func (t *Table[R]) Empty() bool {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n := len(s.byURL)
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// discard drops the record of an entry that was removed from its shard. The caller holds the entry.
func (t *Table[R]) discard(e *Entry[R]) {
	t.drop(&e.Record)
	e.recycle()
}

// Release makes e idle. The next hook finds it with Take.
func (e *Entry[R]) Release(now time.Time) {
	e.since = now
	e.held.Store(false)
}

// Close removes e from its table. The caller must not use e or its record afterwards.
func (e *Entry[R]) Close() {
	s := e.shard
	s.mu.Lock()
	s.remove(e)
	s.mu.Unlock()
	e.recycle()
}

// recycle clears e and keeps it for the next request.
func (e *Entry[R]) recycle() {
	t := e.table
	*e = Entry[R]{}
	t.spare.Put(e)
}

// hold reports whether e is an idle entry. If so, the caller holds it from now on.
func (e *Entry[R]) hold() bool { return e != nil && e.held.CompareAndSwap(false, true) }

// expired looks at the next entry of the ring. If the entry was idle for too long, expired removes
// and returns it, and the caller holds it. Otherwise expired returns nil. s.mu is held.
func (s *shard[R]) expired(now time.Time) *Entry[R] {
	e := s.ring.next
	if e == &s.ring {
		return nil
	}
	if !e.hold() { // it is in use, so look at the others first
		e.unlink()
		s.push(e)
		return nil
	}
	if now.Sub(e.since) < idleLimit {
		e.held.Store(false)
		return nil
	}
	s.remove(e)
	return e
}

// remove takes e out of the shard. s.mu is held.
func (s *shard[R]) remove(e *Entry[R]) {
	if s.byURL[e.url] == e {
		delete(s.byURL, e.url)
	}
	e.unlink()
}

// push adds e to the ring, as the last one to be looked at. s.mu is held.
func (s *shard[R]) push(e *Entry[R]) {
	e.prev = s.ring.prev
	e.next = &s.ring
	e.prev.next = e
	e.next.prev = e
}

// unlink takes e out of the ring of its shard. The shard's lock is held.
func (e *Entry[R]) unlink() {
	e.prev.next = e.next
	e.next.prev = e.prev
	e.prev = nil
	e.next = nil
}
