// Package hashset has a compact set of hashes for many goroutines.
package hashset

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// A Set is a set of 64-bit hashes. It takes 10 to 14 bytes for each hash. Different items with the
// same hash count as one; with ten million items, this happens in three of a million sets. A Set
// may be used from any goroutine. Has takes no lock.
type Set struct {
	limit  int         // roughly the largest number of hashes; later ones are not stored
	full   atomic.Bool // there were more hashes than limit
	shards [numShards]shard
}

const numShards = 32 // a power of two

// A shard is one open-addressing table. There are several, so that other goroutines do not wait
// long while one table grows.
type shard struct {
	mu    sync.Mutex // held for writing
	n     int
	table atomic.Pointer[[]atomic.Uint64] // a slot with 0 is free
}

// New returns an empty set that stores roughly limit hashes at most.
func New(limit int) *Set { return &Set{limit: limit} }

// Limit returns the limit that was passed to New.
func (s *Set) Limit() int { return s.limit }

// IsFull reports whether a hash was not stored because of the limit.
func (s *Set) IsFull() bool { return s.full.Load() }

// Has reports whether h is in the set.
func (s *Set) Has(h uint64) bool {
	h = max(h, 1)
	table := s.shards[h%numShards].table.Load()
	if table == nil {
		return false
	}
	_, found := lookUp(*table, h)
	return found
}

// Add adds h to the set. It returns false if h is already in the set. When the set is full, Add
// stores no more hashes and returns true for each new one.
func (s *Set) Add(h uint64) bool {
	h = max(h, 1)
	shard := &s.shards[h%numShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	table := shard.table.Load()
	if table != nil {
		if _, found := lookUp(*table, h); found {
			return false
		}
	}
	if shard.n > s.limit/numShards {
		s.full.Store(true)
		return true
	}
	if table == nil || (shard.n+1)*100 > len(*table)*82 { // in a fuller table, searches take long
		table = shard.grow(table)
	}
	i, _ := lookUp(*table, h)
	(*table)[i].Store(h)
	shard.n++
	return true
}

// grow replaces the table by one that is 1.3 times as large, rounded up by the allocator. A table
// that doubles would take more than 14 bytes for each hash.
func (shard *shard) grow(old *[]atomic.Uint64) *[]atomic.Uint64 {
	if old == nil {
		old = new([]atomic.Uint64)
	}
	table := slices.Grow([]atomic.Uint64(nil), max(32, len(*old)*13/10))
	table = table[:cap(table)]
	for i := range *old {
		if h := (*old)[i].Load(); h != 0 {
			slot, _ := lookUp(table, h)
			table[slot].Store(h)
		}
	}
	shard.table.Store(&table)
	return &table
}

// lookUp returns the slot of a table that holds h. If there is none, it returns the free slot where
// h must be stored.
func lookUp(table []atomic.Uint64, h uint64) (slot int, found bool) {
	hi, _ := bits.Mul64(h, uint64(len(table)))
	for i := int(hi); ; i++ {
		if i == len(table) {
			i = 0
		}
		switch table[i].Load() {
		case h:
			return i, true
		case 0:
			return i, false
		}
	}
}
