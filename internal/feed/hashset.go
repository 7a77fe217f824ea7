package feed

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// A hashSet is a set of 64-bit hashes. It takes 10 to 14 bytes for each hash. Different items with
// the same hash count as one; with ten million items, this happens in three of a million sets. A
// hashSet may be used from any goroutine. Reading takes no lock.
type hashSet struct {
	most   int         // roughly the largest number of hashes; later ones are not stored
	full   atomic.Bool // there were more hashes than most
	shards [hashShards]hashShard
}

const hashShards = 32 // a power of two

// A hashShard is one open-addressing table. There are several, so that other goroutines do not wait
// long while one table grows.
type hashShard struct {
	mu    sync.Mutex // held for writing
	n     int
	table atomic.Pointer[[]atomic.Uint64] // a place with 0 is free
}

// has reports whether h is in the set.
func (s *hashSet) has(h uint64) bool {
	h = max(h, 1)
	table := s.shards[h%hashShards].table.Load()
	if table == nil {
		return false
	}
	_, found := lookUp(*table, h)
	return found
}

// add adds h to the set. It returns false if h is already in the set. When the set is full, it
// stores no more hashes and returns true for each new one.
func (s *hashSet) add(h uint64) bool {
	h = max(h, 1)
	shard := &s.shards[h%hashShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	table := shard.table.Load()
	if table != nil {
		if _, found := lookUp(*table, h); found {
			return false
		}
	}
	if shard.n > s.most/hashShards {
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
func (shard *hashShard) grow(old *[]atomic.Uint64) *[]atomic.Uint64 {
	if old == nil {
		old = new([]atomic.Uint64)
	}
	table := slices.Grow([]atomic.Uint64(nil), max(32, len(*old)*13/10))
	table = table[:cap(table)]
	for i := range *old {
		if h := (*old)[i].Load(); h != 0 {
			at, _ := lookUp(table, h)
			table[at].Store(h)
		}
	}
	shard.table.Store(&table)
	return &table
}

// lookUp returns where h is in a table, or the free place to which it belongs.
func lookUp(table []atomic.Uint64, h uint64) (at int, found bool) {
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
