package kit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A MemoryStore is a urlstore.Store in memory, for tests. It survives its crawl: Reopen returns what a
// process would find that opens it after a kill.
type MemoryStore struct {
	mu      sync.Mutex
	pages   []*storedPage // in the order of Add
	hosts   map[string]*storedHost
	changed chan struct{} // closed and replaced at each change
	closed  bool
	fail    error // the error of Add; nil if it works
	records store.Store

	duplicates int
}

// A storedPage is a page and its state.
type storedPage struct {
	urlstore.Page
	state    PageState
	attempts int       // that have not ended
	after    time.Time // it waits at least until then
}

type PageState string

const (
	Waits     PageState = "waits"
	IsOut     PageState = "out"
	Postponed PageState = "postponed"
	IsDone    PageState = "done"
	IsDenied  PageState = "denied"
	hasFailed PageState = "failed"
)

type storedHost struct {
	next     time.Time
	alone    bool
	out      int
	answered int // the pages that are out and have had a response
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{hosts: make(map[string]*storedHost), changed: make(chan struct{}), records: store.NewMemory()}
}

var errStoreClosed = errors.New("memoryStore: closed")

// Reopen returns a store with the pages of s as the next run finds them. Pages that are out wait.
func (s *MemoryStore) Reopen() *MemoryStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := NewMemoryStore()
	next.records = s.records
	for _, p := range s.pages {
		kept := &storedPage{Page: p.Page, state: p.state}
		if p.state == IsOut || p.state == Postponed {
			kept.state = Waits
		}
		next.pages = append(next.pages, kept)
	}
	return next
}

// States returns the URLs of the pages in each state.
func (s *MemoryStore) States() map[PageState][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make(map[PageState][]string)
	for _, p := range s.pages {
		states[p.state] = append(states[p.state], p.URL)
	}
	return states
}

// change runs f and wakes Next.
func (s *MemoryStore) change(f func() error) error {
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

func (s *MemoryStore) Add(p *urlstore.Page) (added bool, err error) {
	err = s.change(func() error {
		if s.fail != nil {
			return s.fail
		}
		if known := s.find(p); known != nil {
			p.ID = known.ID
			s.duplicates++
			return nil
		}
		added = true
		p.Found = time.Now()
		p.ID = uint64(len(s.pages) + 1)
		s.pages = append(s.pages, &storedPage{Page: *p, state: Waits})
		return nil
	})
	return added, err
}

// identify sets Host and Key of a page if they are empty.
func identify(p *urlstore.Page) {
	key, host, _ := urlstore.Normalize(p.URL)
	p.Key = cmp.Or(p.Key, key, p.URL)
	p.Host = cmp.Or(p.Host, host)
}

// find returns the page with the collector and the key of p, or nil.
func (s *MemoryStore) find(p *urlstore.Page) *storedPage {
	identify(p)
	i := slices.IndexFunc(s.pages, func(known *storedPage) bool {
		return known.Collector == p.Collector && known.Key == p.Key
	})
	if i < 0 {
		return nil
	}
	return s.pages[i]
}

func (s *MemoryStore) Take(p *urlstore.Page) (taken bool) {
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

func (s *MemoryStore) Again(p *urlstore.Page) error {
	return s.change(func() error {
		known := s.find(p)
		if known == nil {
			return errors.New("memoryStore: Again of an unknown page")
		}
		p.ID = known.ID
		if known.state == IsOut {
			known.attempts++
			return nil
		}
		s.handOut(known)
		return nil
	})
}

func (s *MemoryStore) handOut(p *storedPage) {
	p.state = IsOut
	p.attempts = 1
	s.host(p.Host).out++
}

func (s *MemoryStore) host(name string) *storedHost {
	h := s.hosts[name]
	if h == nil {
		h = &storedHost{alone: true}
		s.hosts[name] = h
	}
	return h
}

// due returns the page whose turn has come. If there is none, it returns the time after which to
// look again, or 0 if only a change helps.
func (s *MemoryStore) due() (next *storedPage, wait time.Duration) {
	now := time.Now()
	for _, p := range s.pages {
		if p.state != Waits {
			continue
		}
		h := s.host(p.Host)
		if h.alone && h.out > h.answered {
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
func (s *MemoryStore) some(states ...PageState) bool {
	return slices.ContainsFunc(s.pages, func(p *storedPage) bool { return slices.Contains(states, p.state) })
}

func (s *MemoryStore) Next(ctx context.Context) (*urlstore.Page, error) {
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
		if !s.some(Waits, IsOut) {
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

func (s *MemoryStore) End(p *urlstore.Page, result urlstore.Result) error {
	return s.change(func() error {
		known := s.find(p)
		if known == nil || known.state != IsOut && known.state != Postponed {
			return nil
		}
		if known.attempts > 1 {
			known.attempts--
			return nil
		}
		if known.state == IsOut {
			h := s.host(p.Host)
			h.out--
			h.answered = max(h.answered-1, 0)
		}
		known.state = map[urlstore.Result]PageState{
			urlstore.Returned:  Waits,
			urlstore.Done:      IsDone,
			urlstore.Denied:    IsDenied,
			urlstore.Failed:    Waits,
			urlstore.Postponed: Postponed,
		}[result]
		if result == urlstore.Failed {
			known.Attempts++
			known.after = time.Now().Add(time.Minute)
			if known.Attempts == 3 {
				known.state = hasFailed
			}
		}
		return nil
	})
}

func (s *MemoryStore) Pace(host string, next time.Time, alone bool) {
	s.change(func() error {
		h := s.host(host)
		h.next = next
		h.alone = alone
		h.answered = min(h.answered+1, h.out)
		return nil
	})
}

func (s *MemoryStore) Stats() urlstore.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := urlstore.Stats{Duplicates: s.duplicates}
	hosts := make(map[string]bool)
	for _, p := range s.pages {
		switch p.state {
		case Waits, Postponed:
			stats.Waiting++
			hosts[p.Host] = true
			if stats.Oldest.IsZero() {
				stats.Oldest = p.Found
			}
		case IsOut:
			stats.Out++
		case IsDone:
			stats.Done++
		case IsDenied:
			stats.Denied++
		case hasFailed:
			stats.Failed++
		}
	}
	stats.Hosts = len(hosts)
	return stats
}

func (s *MemoryStore) Waiting(host string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.Host == host && (p.state == Waits || p.state == Postponed) {
			n++
		}
	}
	return n
}

func (s *MemoryStore) Records() store.Store { return s.records }

// FailWith makes Add return err from now on, or work again if err is nil.
func (s *MemoryStore) FailWith(err error) {
	s.change(func() error { s.fail = err; return nil })
}

// Close makes all methods fail, like the end of the process.
func (s *MemoryStore) Close() {
	s.change(func() error { s.closed = true; return nil })
}

// WantStates compares the paths of the pages in each state with want, such as "done: /0 /1, waits:
// /2".
func WantStates(t *testing.T, s *MemoryStore, want string) {
	t.Helper()
	var got string
	states := s.States()
	for _, state := range []PageState{IsDone, IsDenied, hasFailed, IsOut, Postponed, Waits} {
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
