package policy

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// What is kept in memory, measured as TestRetained does: by an authority without rules (its policy,
// copy and place in the map), by a failure with its error, by validators, and by a reading beside
// the rules themselves, which take no more than the text that they were read in.
const (
	entryWeight      = 250
	failureWeight    = 250
	validatorsWeight = 100
	readingWeight    = 220
)

// weightOf estimates the octets that a reading takes beside its place in the map.
func weightOf(d dialect.Dialect, size int) uint32 {
	switch {
	case size == 0:
		return 0
	case d == dialect.Temoto():
		size *= 4 // temoto keeps each rule apart, and makes a regexp of many
	}
	return readingWeight + uint32(size)
}

// A table keeps policies, in parts that are bounded each on its own: one map of a million would
// move all of them at once whenever it grows, for a quarter of a second. A part is made when it is
// needed.
type table struct {
	seed    maphash.Seed
	parts   []atomic.Pointer[otter.Cache[dialect.Authority, *Policy]]
	most    uint64 // weight of a part
	dropped func(*Policy)
}

// leastPart is the weight of a part: that of the largest policies fits in it several times.
const leastPart = 8_000_000

// newTable returns a table that holds what weighs at most maxWeight. dropped is called with each
// policy that is no longer in it.
func newTable(maxWeight uint64, dropped func(*Policy)) *table {
	n := max(maxWeight/leastPart, 1)
	return &table{
		seed: maphash.MakeSeed(), parts: make([]atomic.Pointer[otter.Cache[dialect.Authority, *Policy]], n),
		most: maxWeight / n, dropped: dropped,
	}
}

// get returns the policy of a, or nil.
func (t *table) get(a dialect.Authority) *Policy {
	if part := t.part(a).Load(); part != nil {
		p, _ := part.GetIfPresent(a)
		return p
	}
	return nil
}

// put puts a policy in place of the one of the same authority.
func (t *table) put(p *Policy) {
	at := t.part(p.Authority)
	part := at.Load()
	if part == nil {
		at.CompareAndSwap(nil, t.newPart())
		part = at.Load()
	}
	part.Set(p.Authority, p)
}

func (t *table) part(a dialect.Authority) *atomic.Pointer[otter.Cache[dialect.Authority, *Policy]] {
	return &t.parts[maphash.String(t.seed, a.Host)%uint64(len(t.parts))]
}

func (t *table) newPart() *otter.Cache[dialect.Authority, *Policy] {
	return otter.Must(&otter.Options[dialect.Authority, *Policy]{
		MaximumWeight: t.most,
		Weigher:       func(_ dialect.Authority, p *Policy) uint32 { return p.weight() },
		OnDeletion:    func(e otter.DeletionEvent[dialect.Authority, *Policy]) { t.dropped(e.Value) },
		Executor:      func(f func()) { f() }, // the upkeep is short: no goroutine to wait for in Close
	})
}

// all yields the policies, in no order. Those that come or go meanwhile may be missing.
func (t *table) all(yield func(*Policy) bool) {
	for part := range t.made {
		for p := range part.Values() {
			if !yield(p) {
				return
			}
		}
	}
}

// clear drops all policies.
func (t *table) clear() {
	for part := range t.made {
		part.InvalidateAll()
	}
}

// made yields the parts that have been made.
func (t *table) made(yield func(*otter.Cache[dialect.Authority, *Policy]) bool) {
	for i := range t.parts {
		if part := t.parts[i].Load(); part != nil && !yield(part) {
			return
		}
	}
}

// keep puts p, which is new, into the map, and returns it. A fetch that was not answered does not
// replace the answer that another one has brought meanwhile: keep returns that.
func (c *Cache) keep(p *Policy) *Policy {
	if p.copy != nil {
		if r := c.reader.use(p.copy.reading); r != p.copy.reading {
			s := *p.copy
			s.reading = r
			p.copy = &s
		}
	}
	if !p.unanswered() {
		c.policies.put(p)
		return p
	}
	c.silences.Lock()
	defer c.silences.Unlock()
	known := c.policies.get(p.Authority)
	if known.Fresh(time.Now()) && !known.unanswered() {
		c.dropped(p)
		return known
	}
	s := p.failure.silence
	s.next = known.others(s.way, maxWays)
	c.policies.put(p)
	return p
}

// dropped lets go of what p, which is no longer in the map, has used.
func (c *Cache) dropped(p *Policy) {
	if p.copy != nil {
		c.reader.drop(p.copy.reading)
	}
}

// weight estimates the octets that p adds to the memory in use: an entry, and its part of the
// rules.
func (p *Policy) weight() uint32 {
	weight := uint32(entryWeight)
	if p.failure != nil {
		weight += failureWeight
	}
	if p.unanswered() && p.failure.silence.next != nil {
		weight += p.failure.silence.next.weight()
	}
	if p.copy == nil {
		return weight
	}
	if p.copy.validators != nil {
		weight += validatorsWeight
	}
	if r := p.copy.reading; r != nil {
		weight += r.weight / uint32(max(1, r.users.Load()))
	}
	return weight
}
