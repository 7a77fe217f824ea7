package arrivals

import (
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2/storage"
)

// A Storage is the storage of a collector and its clones. It records each visit that the collector
// accepts, and passes all calls on to the storage of the user.
type Storage struct {
	storage.Storage // of the user
	visits          *Visits

	first atomic.Pointer[[]func()] // called before each visit is accepted

	// mu protects the fields below it.
	mu       sync.Mutex
	exempt   map[uint64]int       // how often IsVisited returns false although the hash was visited, by hash
	withheld map[uint64]*withheld // hashes of Withhold
}

// Wrap returns a Storage that records visits in v and passes all calls on to s. If s is a Storage
// of v, Wrap returns s. If s is a Storage of other Visits, the result replaces it.
func (v *Visits) Wrap(s storage.Storage) *Storage {
	if own, ok := s.(*Storage); ok {
		if own.visits == v {
			return own
		}
		s = own.Storage
	}
	return &Storage{Storage: s, visits: v, exempt: make(map[uint64]int), withheld: make(map[uint64]*withheld)}
}

// Before makes the Storage call f in each Visit, before its request exists.
func (s *Storage) Before(f func()) {
	for {
		known := s.first.Load()
		all := []func(){f}
		if known != nil {
			all = append(all, *known...)
		}
		if s.first.CompareAndSwap(known, &all) {
			return
		}
	}
}

// Visited implements storage.Storage. It waits while too many visits are on their way.
func (s *Storage) Visited(hash uint64) error {
	s.visits.wait()
	if first := s.first.Load(); first != nil {
		for _, f := range *first {
			f()
		}
	}
	var err error
	if !s.withholds(hash) {
		err = s.Storage.Visited(hash)
	}
	if err == nil {
		s.visits.accept(s, hash)
	}
	return err
}

// IsVisited implements storage.Storage.
func (s *Storage) IsVisited(hash uint64) (bool, error) {
	if s.isExempt(hash) {
		return false, nil
	}
	visited, err := s.Storage.IsVisited(hash)
	if visited && s.visits.known != nil {
		s.visits.known()
	}
	return visited, err
}

// isExempt reports whether IsVisited must return false for a hash, which it must only once.
func (s *Storage) isExempt(hash uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exempt[hash] == 0 {
		return false
	}
	s.addExempt(hash, -1)
	return true
}

// Exempt makes the next call of IsVisited with this hash return false, so that the collector
// accepts a page once more. The caller calls stop after the visit.
func (s *Storage) Exempt(hash uint64) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addExempt(hash, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.exempt[hash] > 0 {
			s.addExempt(hash, -1)
		}
	}
}

// addExempt adds n to the calls of IsVisited that return false. s.mu is held.
func (s *Storage) addExempt(hash uint64, n int) {
	s.exempt[hash] += n
	if s.exempt[hash] == 0 {
		delete(s.exempt, hash)
	}
}

// Arriving returns the visit with this hash whose request is about to be recorded. The caller must
// call its method Arrived. Arriving returns nil if there was no such visit: the request is a retry,
// or the collector does not look for visited URLs.
func (s *Storage) Arriving(hash uint64) *Visit {
	return s.visits.arriving(s, hash)
}
