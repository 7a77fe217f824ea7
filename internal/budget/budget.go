// Package budget counts the pages that are sent to each host, up to a limit. It knows hosts only by
// name.
package budget

import (
	"hash/maphash"
	"sync"
)

// Pages counts the pages of all hosts. A host with a counted page takes about 30 bytes and is never
// forgotten. All methods may be called from any goroutine. Use New to create a Pages.
type Pages struct {
	seed   maphash.Seed
	shards [64]shard
}

// A shard has the counts of the hosts with the same hash modulo the number of shards. It stores
// only the hashes of their names. Two hosts with the same hash share one budget. Among a million
// hosts, the probability of such a pair is about one in 37 million.
type shard struct {
	// mu protects used.
	mu   sync.Mutex
	used map[uint64]uint32
}

// New returns a Pages that has counted nothing.
func New() *Pages { return &Pages{seed: maphash.MakeSeed()} }

// Used returns the number of counted pages of a host.
func (p *Pages) Used(host string) int {
	hash := maphash.String(p.seed, host)
	s := p.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.used[hash])
}

// Take counts a page that is about to be sent, and returns true. If limit pages are counted
// already, it returns false.
func (p *Pages) Take(host string, limit int) bool {
	hash := maphash.String(p.seed, host)
	s := p.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(s.used[hash]) >= limit {
		return false
	}
	if s.used == nil {
		s.used = make(map[uint64]uint32)
	}
	s.used[hash]++
	return true
}

// Return undoes Take for a page that was not sent.
func (p *Pages) Return(host string) {
	hash := maphash.String(p.seed, host)
	s := p.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[hash] > 1 {
		s.used[hash]--
	} else {
		delete(s.used, hash)
	}
}

func (p *Pages) shardOf(hash uint64) *shard { return &p.shards[hash%uint64(len(p.shards))] }
