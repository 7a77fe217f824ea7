package policy

import "github.com/maypok86/otter/v2"

// What is kept in memory, measured as TestRetained does: by an entry without rules (policy, facts, key, place in the
// map), and by a reading beside the rules themselves, which take no more than the text that they were read in.
const (
	entryWeight   = 400
	readingWeight = 300
)

// newMap returns a map of policies that holds what weighs at most maxWeight.
func newMap(maxWeight uint64) *otter.Cache[key, *Policy] {
	return otter.Must(&otter.Options[key, *Policy]{
		MaximumWeight: maxWeight,
		Weigher:       func(_ key, p *Policy) uint32 { return p.weight() },
		OnDeletion:    func(e otter.DeletionEvent[key, *Policy]) { e.Value.use(-1) },
		Executor:      func(f func()) { f() }, // the upkeep is short: no goroutine to wait for in Close
	})
}

func put(m *otter.Cache[key, *Policy], k key, p *Policy) {
	p.use(+1)
	m.Set(k, p)
}

// use counts p as one who keeps its reading in memory, or as one less.
func (p *Policy) use(n int32) {
	if p.facts.copy != nil {
		p.facts.copy.reading.users.Add(n)
	}
}

// weight estimates the octets that p adds to the memory in use: an entry, and its part of the rules.
func (p *Policy) weight() uint32 {
	if p.facts.copy == nil || p.facts.copy.reading.size == 0 {
		return entryWeight
	}
	r := p.facts.copy.reading
	return entryWeight + uint32(readingWeight+r.size)/uint32(max(1, r.users.Load()))
}
