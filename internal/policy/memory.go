package policy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Memory keeps the policies of one or several caches. Its bound is for all of them together, so a
// program may have a cache for each of many names. The policies of a cache that is no longer used
// are dropped as others come.
//
// A Memory consists of parts, each with its own bound, because a single map of a million policies
// would take a quarter of a second to move all of them whenever it grows. A part is made when it is
// needed.
type Memory struct {
	seed   maphash.Seed
	parts  []atomic.Pointer[policyPart]
	most   uint64        // the maximum weight of a part
	caches atomic.Uint64 // the number of caches that were made
}

// A policyKey identifies a policy in a Memory.
type policyKey struct {
	authority dialect.Authority
	cache     *Cache
}

type policyPart = otter.Cache[policyKey, *Policy]

// minPartWeight is the smallest maximum weight of a part. The largest policies fit into it several
// times.
const minPartWeight = 8_000_000

// NewMemory returns a Memory for policies that weigh at most maxWeight in all, in estimated bytes.
// If maxWeight is 0, it is DefaultMaxWeight.
func NewMemory(maxWeight uint64) *Memory {
	if maxWeight == 0 {
		maxWeight = DefaultMaxWeight
	}
	n := max(maxWeight/minPartWeight, 1)
	return &Memory{
		seed:  maphash.MakeSeed(),
		parts: make([]atomic.Pointer[policyPart], n),
		most:  maxWeight / n,
	}
}

// get returns the policy of a in c, or nil.
func (m *Memory) get(c *Cache, a dialect.Authority) *Policy {
	if part := m.part(c, a).Load(); part != nil {
		p, _ := part.GetIfPresent(policyKey{authority: a, cache: c})
		return p
	}
	return nil
}

// put stores a policy of c in place of the one of the same authority.
func (m *Memory) put(c *Cache, p *Policy) {
	at := m.part(c, p.Authority)
	part := at.Load()
	if part == nil {
		at.CompareAndSwap(nil, m.newPart())
		part = at.Load()
	}
	part.Set(policyKey{authority: p.Authority, cache: c}, p)
}

// part returns the part for the policy of a in c. The policies of one host in many caches are in
// many parts.
func (m *Memory) part(c *Cache, a dialect.Authority) *atomic.Pointer[policyPart] {
	return &m.parts[(maphash.String(m.seed, a.Host)+c.number)%uint64(len(m.parts))]
}

func (m *Memory) newPart() *policyPart {
	return otter.Must(&otter.Options[policyKey, *Policy]{
		MaximumWeight: m.most,
		Weigher:       func(_ policyKey, p *Policy) uint32 { return p.weight() },
		OnDeletion:    func(e otter.DeletionEvent[policyKey, *Policy]) { e.Key.cache.dropped(e.Value) },
		Executor:      func(f func()) { f() }, // the work is short, and Close has no goroutine to wait for
	})
}

// All yields the policies of all caches, including expired ones, in no particular order. It leaves
// out the caches that CloseIdle has closed. It may miss policies that are added or removed during
// the iteration.
func (m *Memory) All(yield func(*Policy) bool) {
	for part := range m.made {
		for key, p := range part.All() {
			if !key.cache.left.Load() && !yield(p) {
				return
			}
		}
	}
}

// Clear removes all policies.
func (m *Memory) Clear() {
	for part := range m.made {
		part.InvalidateAll()
	}
}

// made yields the parts that have been made.
func (m *Memory) made(yield func(*policyPart) bool) {
	for i := range m.parts {
		if part := m.parts[i].Load(); part != nil && !yield(part) {
			return
		}
	}
}

// The memory in bytes that each part of a policy takes, as TestRetained measures it.
const (
	entryWeight      = 250 // an authority without rules: its policy, copy and place in the map
	failureWeight    = 270 // a failure with its error
	validatorsWeight = 100
	parsedWeight     = 220 // a parsed file in addition to its rules, which take as much as their text
)

// parsedFileWeight estimates the bytes that the parsed file of a text takes. size is the length of
// the text.
func parsedFileWeight(d dialect.Dialect, size int) uint32 {
	switch {
	case size == 0:
		return 0
	case d == dialect.Temoto():
		size *= 4 // temoto stores each rule separately, and compiles many of them to regular expressions
	}
	return parsedWeight + uint32(size)
}

// weight estimates the bytes that p adds to the memory in use: those of an entry, and its share of
// the rules.
func (p *Policy) weight() uint32 {
	weight := uint32(entryWeight)
	if p.failure != nil {
		weight += failureWeight
	}
	if p.unanswered() && p.failure.unanswered.next != nil {
		weight += p.failure.unanswered.next.weight()
	}
	if p.copy == nil {
		return weight
	}
	if p.copy.validators != nil {
		weight += validatorsWeight
	}
	if f := p.copy.parsed; f != nil {
		weight += f.weight / uint32(max(1, f.users.Load()))
	}
	return weight
}
