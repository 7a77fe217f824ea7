package policy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// A policyMap is a bounded map of policies. It consists of parts, each with its own bound, because
// a single map of a million policies would take a quarter of a second to move all of them whenever
// it grows. A part is made when it is needed.
type policyMap struct {
	seed    maphash.Seed
	parts   []atomic.Pointer[policyPart]
	most    uint64 // the maximum weight of a part
	dropped func(*Policy)
}

type policyPart = otter.Cache[dialect.Authority, *Policy]

// minPartWeight is the smallest maximum weight of a part. The largest policies fit into it several
// times.
const minPartWeight = 8_000_000

// newPolicyMap returns a map of policies that weigh at most maxWeight in all. It calls dropped with
// each policy that is removed.
func newPolicyMap(maxWeight uint64, dropped func(*Policy)) *policyMap {
	n := max(maxWeight/minPartWeight, 1)
	return &policyMap{
		seed:    maphash.MakeSeed(),
		parts:   make([]atomic.Pointer[policyPart], n),
		most:    maxWeight / n,
		dropped: dropped,
	}
}

// get returns the policy of a, or nil.
func (m *policyMap) get(a dialect.Authority) *Policy {
	if part := m.part(a).Load(); part != nil {
		p, _ := part.GetIfPresent(a)
		return p
	}
	return nil
}

// put stores a policy in place of the one of the same authority.
func (m *policyMap) put(p *Policy) {
	at := m.part(p.Authority)
	part := at.Load()
	if part == nil {
		at.CompareAndSwap(nil, m.newPart())
		part = at.Load()
	}
	part.Set(p.Authority, p)
}

func (m *policyMap) part(a dialect.Authority) *atomic.Pointer[policyPart] {
	return &m.parts[maphash.String(m.seed, a.Host)%uint64(len(m.parts))]
}

func (m *policyMap) newPart() *policyPart {
	return otter.Must(&otter.Options[dialect.Authority, *Policy]{
		MaximumWeight: m.most,
		Weigher:       func(_ dialect.Authority, p *Policy) uint32 { return p.weight() },
		OnDeletion:    func(e otter.DeletionEvent[dialect.Authority, *Policy]) { m.dropped(e.Value) },
		Executor:      func(f func()) { f() }, // the work is short, and Close has no goroutine to wait for
	})
}

// all yields the policies, in no particular order. It may miss policies that are added or removed
// during the iteration.
func (m *policyMap) all(yield func(*Policy) bool) {
	for part := range m.made {
		for p := range part.Values() {
			if !yield(p) {
				return
			}
		}
	}
}

// clear removes all policies.
func (m *policyMap) clear() {
	for part := range m.made {
		part.InvalidateAll()
	}
}

// made yields the parts that have been made.
func (m *policyMap) made(yield func(*policyPart) bool) {
	for i := range m.parts {
		if part := m.parts[i].Load(); part != nil && !yield(part) {
			return
		}
	}
}

// The memory in bytes that each part of a policy takes, as TestRetained measures it.
const (
	entryWeight      = 250 // an authority without rules: its policy, copy and place in the map
	failureWeight    = 250 // a failure with its error
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
