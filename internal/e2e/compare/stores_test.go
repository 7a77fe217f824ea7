package compare

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

// A pageStore is a URLStore in memory that records the calls.
type pageStore struct {
	rec    *record
	source string

	mu      sync.Mutex
	pages   []*stored // in the order of Add
	hosts   map[string]*storedHost
	changed chan struct{} // closed and replaced at each change
	closed  bool
	stats   pageStats
}

// A stored is a page and its state.
type stored struct {
	page
	state    state
	attempts int       // that have not ended
	after    time.Time // it waits at least until then
}

type state string

const (
	waits     state = "waits"
	isOut     state = "out"
	postponed state = "postponed"
	isDone    state = "done"
	isDenied  state = "denied"
	hasFailed state = "failed"
)

// results are the states after the results of an attempt, in the order of their constants. Their
// names differ between versions.
var results = []state{waits, isDone, isDenied, waits, postponed}

// resultFailed is the number of the result of an attempt that has failed.
const resultFailed = 3

type storedHost struct {
	next    time.Time
	alone   bool
	pending int // pages that were handed out and have had no response
}

var errStoreClosed = errors.New("pageStore: closed")

func newPageStore(rec *record, source string) *pageStore {
	return &pageStore{rec: rec, source: source, hosts: make(map[string]*storedHost), changed: make(chan struct{})}
}

// reopen returns a store with the pages of s as the next run finds them.
func (s *pageStore) reopen() *pageStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := newPageStore(s.rec, s.source)
	for _, p := range s.pages {
		kept := &stored{page: p.page, state: p.state}
		if p.state == isOut || p.state == postponed {
			kept.state = waits
		}
		next.pages = append(next.pages, kept)
	}
	return next
}

// list records the states of all pages.
func (s *pageStore) list() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		s.rec.add(s.source, "%s is %s, attempts %d, depth %d, from %q, collector %d", p.URL, p.state, p.Attempts, p.Depth, p.From, p.Collector)
	}
}

// change runs f and wakes Next.
func (s *pageStore) change(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errStoreClosed
	}
	err := f()
	close(s.changed)
	s.changed = make(chan struct{})
	return err
}

func (s *pageStore) Add(p *page) (added bool, err error) {
	err = s.change(func() error {
		if known := s.find(p); known != nil {
			p.ID = known.ID
			s.stats.Duplicates++
			return nil
		}
		added = true
		p.Found = time.Now()
		p.ID = uint64(len(s.pages) + 1)
		s.pages = append(s.pages, &stored{page: *p, state: waits})
		return nil
	})
	s.rec.add(s.source, "Add %s: %v %s", p.URL, added, faultOf(err))
	return added, err
}

// find returns the page with the collector and the key of p, or nil.
func (s *pageStore) find(p *page) *stored {
	key := func(p *page) string {
		if p.Key == "" {
			return p.URL
		}
		return p.Key
	}
	i := slices.IndexFunc(s.pages, func(known *stored) bool {
		return known.Collector == p.Collector && key(&known.page) == key(p)
	})
	if i < 0 {
		return nil
	}
	return s.pages[i]
}

func (s *pageStore) Take(p *page) (taken bool) {
	s.change(func() error {
		known := s.find(p)
		next, _ := s.due()
		taken = known != nil && next == known
		if taken {
			s.handOut(known)
		}
		return nil
	})
	s.rec.add(s.source, "Take %s: %v", p.URL, taken)
	return taken
}

func (s *pageStore) Again(p *page) error {
	s.rec.add(s.source, "Again %s", p.URL)
	return s.change(func() error {
		known := s.find(p)
		if known == nil {
			return errors.New("pageStore: Again of an unknown page")
		}
		p.ID = known.ID
		if known.state == isOut {
			known.attempts++
			return nil
		}
		s.handOut(known)
		return nil
	})
}

func (s *pageStore) handOut(p *stored) {
	p.state = isOut
	p.attempts = 1
	s.host(p.Host).pending++
}

func (s *pageStore) host(name string) *storedHost {
	h := s.hosts[name]
	if h == nil {
		h = &storedHost{alone: true}
		s.hosts[name] = h
	}
	return h
}

// due returns the page whose turn has come. If there is none, it returns the time after which to
// look again, or 0 if only a change helps.
func (s *pageStore) due() (next *stored, wait time.Duration) {
	now := time.Now()
	for _, p := range s.pages {
		if p.state != waits {
			continue
		}
		h := s.host(p.Host)
		if h.alone && h.pending > 0 {
			continue
		}
		left := max(h.next.Sub(now), p.after.Sub(now))
		if left <= 0 {
			return p, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return nil, wait
}

func (s *pageStore) Next(ctx context.Context) (*page, error) {
	for {
		p, wait, changed, err := s.next(ctx)
		if p != nil || err != nil {
			return p, err
		}
		var elapsed <-chan time.Time
		if wait > 0 {
			elapsed = time.After(wait)
		}
		select {
		case <-changed:
		case <-elapsed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// next hands out a page. If none is due, it returns what to wait for.
func (s *pageStore) next(ctx context.Context) (*page, time.Duration, chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, nil, errStoreClosed
	}
	if ctx.Err() != nil {
		return nil, 0, nil, ctx.Err()
	}
	p, wait := s.due()
	if p != nil {
		s.handOut(p)
		s.rec.add(s.source, "Next %s", p.URL)
		copied := p.page
		return &copied, 0, nil, nil
	}
	if !slices.ContainsFunc(s.pages, func(p *stored) bool { return p.state == waits || p.state == isOut }) {
		return nil, 0, nil, io.EOF
	}
	return nil, wait, s.changed, nil
}

func (s *pageStore) End(p *page, result endOfPage) error {
	s.rec.add(s.source, "End %s: %d", p.URL, result)
	return s.change(func() error {
		known := s.find(p)
		if known == nil || known.state != isOut && known.state != postponed {
			return nil
		}
		if known.attempts > 1 {
			known.attempts--
			return nil
		}
		if known.state == isOut {
			h := s.host(p.Host)
			h.pending = max(h.pending-1, 0)
		}
		known.state = results[result]
		if result == resultFailed {
			known.Attempts++
			known.after = time.Now().Add(time.Minute + fine(p.URL, known.Attempts))
			if known.Attempts == 3 {
				known.state = hasFailed
			}
		}
		return nil
	})
}

func (s *pageStore) Pace(host string, next time.Time, alone bool) {
	s.rec.add(s.source, "Pace %s: %v, %v", host, next.Sub(s.rec.began), alone)
	s.change(func() error {
		h := s.host(host)
		h.next = next.Add(fine(host, next.Sub(s.rec.began))) // not at the instant at which another page starts
		h.alone = alone
		h.pending = max(h.pending-1, 0)
		return nil
	})
}

func (s *pageStore) Stats() pageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	for _, p := range s.pages {
		switch p.state {
		case waits, postponed:
			stats.Waiting++
		case isOut:
			stats.Out++
		case isDone:
			stats.Done++
		case isDenied:
			stats.Denied++
		case hasFailed:
			stats.Failed++
		}
	}
	return stats
}

func (s *pageStore) Records() store.Store { return nil }

func (s *pageStore) Waiting(host string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.Host == host && (p.state == waits || p.state == postponed) {
			n++
		}
	}
	return n
}

// close makes all methods fail, like the end of the process.
func (s *pageStore) close() {
	s.change(func() error { s.closed = true; return nil })
}

// A sharedPacer is a Pacer for the plugins of one crawl that records the leases under which a request
// was sent. It does not record the other ones: a program that has two requests for a host at the same
// instant may get a lease that it does not need. Requests for a host get their leases in the order of
// the calls of Acquire.
type sharedPacer struct {
	rec    *record
	ttl    time.Duration           // of a lease
	failed func(at time.Time) bool // whether Acquire fails

	mu    sync.Mutex
	hosts map[string]*pacedHost
	calls int
}

// A pacedHost is a host of a sharedPacer.
type pacedHost struct {
	queue     []int // the numbers of the calls of Acquire that wait
	changed   chan struct{}
	holder    *pacedLease
	end       time.Time // of the last request
	delay     time.Duration
	until     time.Time // when delay is dropped
	notBefore time.Time
}

// A pacedLease is a lease of a sharedPacer.
type pacedLease struct {
	pacer    *sharedPacer
	name     string
	host     *pacedHost
	deadline time.Time
	released bool
}

// A remotePacer is a sharedPacer as one program sees it: each call takes a time of its own.
type remotePacer struct {
	pacer *sharedPacer
	name  string
}

func (p remotePacer) Acquire(ctx context.Context, name string, delay time.Duration) (lease, error) {
	time.Sleep(fine(p.name, name, time.Since(p.pacer.rec.began)))
	return p.pacer.Acquire(ctx, name, delay)
}

var errPacer = errors.New("sharedPacer: the server is down")

func (p *sharedPacer) Acquire(ctx context.Context, name string, delay time.Duration) (lease, error) {
	if p.failed(time.Now()) {
		return nil, errPacer
	}
	p.mu.Lock()
	p.calls++
	call := p.calls
	h := p.hosts[name]
	if h == nil {
		h = &pacedHost{changed: make(chan struct{})}
		p.hosts[name] = h
	}
	h.queue = append(h.queue, call)
	p.mu.Unlock()
	for {
		l, wait, changed := p.try(h, name, call, delay)
		if l != nil {
			return l, nil
		}
		var elapsed <-chan time.Time
		if wait > 0 {
			elapsed = time.After(wait)
		}
		select {
		case <-elapsed:
		case <-changed:
		case <-ctx.Done():
			p.leave(h, call)
			return nil, context.Cause(ctx)
		}
	}
}

// leave removes a call from the queue of a host.
func (p *sharedPacer) leave(h *pacedHost, call int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.queue = slices.DeleteFunc(h.queue, func(c int) bool { return c == call })
	h.wake()
}

// wake wakes all calls that wait for h.
func (h *pacedHost) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// try returns a lease if it is the turn of a call, and otherwise what to wait for.
func (p *sharedPacer) try(h *pacedHost, name string, call int, delay time.Duration) (l *pacedLease, wait time.Duration, changed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.queue[0] != call {
		return nil, 0, h.changed
	}
	now := time.Now()
	if h.holder != nil && !now.Before(h.holder.deadline) { // the lease has expired
		h.end = h.holder.deadline
		h.holder = nil
	}
	if h.holder != nil {
		return nil, h.holder.deadline.Sub(now), h.changed
	}
	if now.After(h.until) {
		h.delay = 0
	}
	h.want(now, delay)
	if next := h.next(); now.Before(next) {
		return nil, next.Sub(now), h.changed
	}
	l = &pacedLease{pacer: p, name: name, host: h}
	if h.delay > 0 {
		l.deadline = now.Add(p.ttl)
		h.holder = l
	}
	h.queue = h.queue[1:]
	h.wake()
	return l, 0, nil
}

// want records that a process has a delay for h.
func (h *pacedHost) want(now time.Time, delay time.Duration) {
	if delay > 0 && delay >= h.delay {
		h.delay = delay
		h.until = now.Add(10 * delay)
	}
}

// next returns the time of the next request.
func (h *pacedHost) next() time.Time {
	next := h.notBefore
	if t := h.end.Add(h.delay); h.delay > 0 && t.After(next) {
		next = t
	}
	return next
}

func (l *pacedLease) Deadline() time.Time { return l.deadline }

func (l *pacedLease) Valid() bool { return l.deadline.IsZero() || time.Now().Before(l.deadline) }

func (l *pacedLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	p := l.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	h := l.host
	if l.released {
		return
	}
	l.released = true
	if h.holder != nil && h.holder != l {
		return // the lease had expired
	}
	h.holder = nil
	if sent {
		until := "-"
		if !notBefore.IsZero() {
			until = notBefore.Sub(l.pacer.rec.began).String()
		}
		l.pacer.rec.add("pacer", "%s was requested under a lease: %v %s", l.name, delay, until)
		now := time.Now()
		h.end = now
		if delay >= h.delay || now.After(h.until) {
			h.delay = delay
			h.until = now.Add(10 * delay)
		}
		if notBefore.After(h.notBefore) {
			h.notBefore = notBefore
		}
	}
	h.wake()
}

// A fileStore is a store.Store in memory that records the keys of its updates. It does not record
// the values, because some of them contain random numbers.
type fileStore struct {
	rec *record

	mu     sync.Mutex
	values map[string]fileValue
}

type fileValue struct {
	value   []byte
	expires time.Time
}

func (s *fileStore) get(key string) []byte {
	v, ok := s.values[key]
	if !ok || !v.expires.IsZero() && !time.Now().Before(v.expires) {
		return nil
	}
	return slices.Clone(v.value)
}

func (s *fileStore) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(key), nil
}

func (s *fileStore) Update(_ context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := f(s.get(key))
	s.rec.add("store", "Update %q for %v: %s, deleted: %v", key, ttl, faultOf(err), b == nil)
	if err != nil {
		return err
	}
	v := fileValue{value: b}
	if ttl > 0 {
		v.expires = time.Now().Add(ttl)
	}
	if b == nil {
		delete(s.values, key)
		return nil
	}
	s.values[key] = v
	return nil
}

func (s *fileStore) Close() error { return nil }
