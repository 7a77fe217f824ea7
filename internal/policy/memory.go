package policy

import (
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

// newMap returns a map of policies that holds what weighs at most maxWeight.
func (c *Cache) newMap(maxWeight uint64) *otter.Cache[dialect.Authority, *Policy] {
	return otter.Must(&otter.Options[dialect.Authority, *Policy]{
		MaximumWeight: maxWeight,
		Weigher:       func(_ dialect.Authority, p *Policy) uint32 { return p.weight() },
		OnDeletion:    func(e otter.DeletionEvent[dialect.Authority, *Policy]) { c.dropped(e.Value) },
		Executor:      func(f func()) { f() }, // the upkeep is short: no goroutine to wait for in Close
	})
}

// keep puts p, which nobody has seen yet, into the map.
func (c *Cache) keep(p *Policy) {
	if p.copy != nil {
		if r := c.reader.use(p.copy.reading); r != p.copy.reading {
			s := *p.copy
			s.reading = r
			p.copy = &s
		}
	}
	c.policies.Set(p.Authority, p)
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
