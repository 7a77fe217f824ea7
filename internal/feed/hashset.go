package feed

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// A hashSet is a set of 64-bit hashes that costs 10 to 14 octets for each. Hashes that collide are
// taken for one: among ten million, three times in a million sets. It may be used from any
// goroutine, and is read without a lock.
type hashSet struct {
	most   int         // hashes at the most, roughly; those that come later are not remembered
	full   atomic.Bool // there were more
	shards [hashShards]hashShard
}

const hashShards = 32 // a power of two

// A hashShard is an open-addressing table of its own, so that growing holds up nobody for long.
type hashShard struct {
	mu    sync.Mutex // for writing
	n     int
	table atomic.Pointer[[]atomic.Uint64] // 0: free
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

// add puts h into the set. It reports false if it is there already, and true for every new hash
// once the set is full.
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
	if table == nil || (shard.n+1)*100 > len(*table)*82 { // beyond, searches become long
		table = shard.grow(table)
	}
	i, _ := lookUp(*table, h)
	(*table)[i].Store(h)
	shard.n++
	return true
}

// grow makes a table that is 1.3 times as large, or what the allocator makes of that: doubling
// would leave it emptier than 14 octets a hash allow.
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

// lookUp returns where h is in a table, or the free place where it belongs.
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
