package collyrobots_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
)

// A memoryStore is a URLStore in memory, for tests. It survives its crawl: reopen returns what a
// process would find that opens it after a kill.
type memoryStore struct {
	mu      sync.Mutex
	pages   []*storedPage // in the order of Add
	hosts   map[string]*storedHost
	changed chan struct{} // closed and replaced at each change
	closed  bool
	fail    error // the error of Add; nil if it works
	stats   collyrobots.FrontierStats
}

// A storedPage is a page and its state.
type storedPage struct {
	collyrobots.Page
	state    pageState
	attempts int       // that have not ended
	after    time.Time // it waits at least until then
}

type pageState string

const (
	waits     pageState = "waits"
	isOut     pageState = "out"
	postponed pageState = "postponed"
	isDone    pageState = "done"
	isDenied  pageState = "denied"
	hasFailed pageState = "failed"
)

type storedHost struct {
	known   bool // Pace was called
	next    time.Time
	alone   bool
	pending int // pages that were handed out and have had no response
}

func newMemoryStore() *memoryStore {
	return &memoryStore{hosts: make(map[string]*storedHost), changed: make(chan struct{})}
}

var errStoreClosed = errors.New("memoryStore: closed")

// reopen returns a store with the pages of s as the next run finds them. Pages that are out wait.
func (s *memoryStore) reopen() *memoryStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := newMemoryStore()
	for _, p := range s.pages {
		kept := &storedPage{Page: p.Page, state: p.state}
		if p.state == isOut || p.state == postponed {
			kept.state = waits
		}
		next.pages = append(next.pages, kept)
	}
	return next
}

// states returns the URLs of the pages in each state.
func (s *memoryStore) states() map[pageState][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make(map[pageState][]string)
	for _, p := range s.pages {
		states[p.state] = append(states[p.state], p.URL)
	}
	return states
}

// change runs f and wakes Next.
func (s *memoryStore) change(f func() error) error {
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

func (s *memoryStore) Add(p *collyrobots.Page) (added bool, err error) {
	err = s.change(func() error {
		if s.fail != nil {
			return s.fail
		}
		if known := s.find(p); known != nil {
			p.ID = known.ID
			s.stats.Duplicates++
			return nil
		}
		added = true
		p.Found = time.Now()
		p.ID = uint64(len(s.pages) + 1)
		s.pages = append(s.pages, &storedPage{Page: *p, state: waits})
		return nil
	})
	return added, err
}

// identityOf returns what identifies a page among those of its collector.
func identityOf(p *collyrobots.Page) string {
	if p.Key == "" {
		return p.URL
	}
	return p.Key
}

// find returns the page with the collector and the key of p, or nil.
func (s *memoryStore) find(p *collyrobots.Page) *storedPage {
	i := slices.IndexFunc(s.pages, func(known *storedPage) bool {
		return known.Collector == p.Collector && identityOf(&known.Page) == identityOf(p)
	})
	if i < 0 {
		return nil
	}
	return s.pages[i]
}

func (s *memoryStore) Take(p *collyrobots.Page) (taken bool) {
	s.change(func() error {
		known := s.find(p)
		next, _ := s.due()
		taken = known != nil && next == known
		if taken {
			s.handOut(known)
		}
		return nil
	})
	return taken
}

func (s *memoryStore) Again(p *collyrobots.Page) error {
	return s.change(func() error {
		known := s.find(p)
		if known == nil {
			return errors.New("memoryStore: Again of an unknown page")
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

func (s *memoryStore) handOut(p *storedPage) {
	p.state = isOut
	p.attempts = 1
	s.host(p.Host).pending++
}

func (s *memoryStore) host(name string) *storedHost {
	h := s.hosts[name]
	if h == nil {
		h = &storedHost{alone: true}
		s.hosts[name] = h
	}
	return h
}

// due returns the page whose turn has come. If there is none, it returns the time after which to
// look again, or 0 if only a change helps.
func (s *memoryStore) due() (next *storedPage, wait time.Duration) {
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

// some reports whether a page is in one of the states.
func (s *memoryStore) some(states ...pageState) bool {
	return slices.ContainsFunc(s.pages, func(p *storedPage) bool { return slices.Contains(states, p.state) })
}

func (s *memoryStore) Next(ctx context.Context) (*collyrobots.Page, error) {
	for {
		s.mu.Lock()
		if s.closed || ctx.Err() != nil {
			err := errStoreClosed
			if !s.closed {
				err = ctx.Err()
			}
			s.mu.Unlock()
			return nil, err
		}
		p, wait := s.due()
		if p != nil {
			s.handOut(p)
			page := p.Page
			s.mu.Unlock()
			return &page, nil
		}
		if !s.some(waits, isOut) {
			s.mu.Unlock()
			return nil, io.EOF
		}
		changed := s.changed
		s.mu.Unlock()
		var elapsed <-chan time.Time
		if wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			elapsed = timer.C
		}
		select {
		case <-changed:
		case <-elapsed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *memoryStore) End(p *collyrobots.Page, result collyrobots.PageResult) error {
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
		known.state = map[collyrobots.PageResult]pageState{
			collyrobots.PageReturned:  waits,
			collyrobots.PageDone:      isDone,
			collyrobots.PageDenied:    isDenied,
			collyrobots.PageFailed:    waits,
			collyrobots.PagePostponed: postponed,
		}[result]
		if result == collyrobots.PageFailed {
			known.Attempts++
			known.after = time.Now().Add(time.Minute)
			if known.Attempts == 3 {
				known.state = hasFailed
			}
		}
		return nil
	})
}

func (s *memoryStore) Pace(host string, next time.Time, alone bool) {
	s.change(func() error {
		h := s.host(host)
		h.known = true
		h.next = next
		h.alone = alone
		h.pending = max(h.pending-1, 0)
		return nil
	})
}

func (s *memoryStore) Stats() collyrobots.FrontierStats {
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

func (s *memoryStore) Waiting(host string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.Host == host && (p.state == waits || p.state == postponed) {
			n++
		}
	}
	return n
}

// failWith makes Add return err from now on, or work again if err is nil.
func (s *memoryStore) failWith(err error) {
	s.change(func() error { s.fail = err; return nil })
}

// close makes all methods fail, like the end of the process.
func (s *memoryStore) close() {
	s.change(func() error { s.closed = true; return nil })
}

// wantStates compares the paths of the pages in each state with want, such as "done: /0 /1, waits:
// /2".
func wantStates(t *testing.T, s *memoryStore, want string) {
	t.Helper()
	var got string
	states := s.states()
	for _, state := range []pageState{isDone, isDenied, hasFailed, isOut, postponed, waits} {
		if len(states[state]) == 0 {
			continue
		}
		if got != "" {
			got += ", "
		}
		got += string(state) + ":"
		slices.Sort(states[state])
		for _, page := range states[state] {
			u, _ := url.Parse(page)
			got += " " + u.RequestURI()
		}
	}
	if got != want {
		t.Errorf("the pages are\n\t%s\nwant\n\t%s", got, want)
	}
}
