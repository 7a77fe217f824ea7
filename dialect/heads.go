package dialect

import (
	"hash/maphash"
	"slices"
)

// heads finds rules by their heads, which are the bytes that a target must begin with. For each
// length of a head, it looks up the beginning of the target with this length in a hash table.
type heads struct {
	lengths []uint32 // the lengths of the heads, in ascending order
	table   []uint32 // rule number + 1, in the slot of the hash of its head or after it; 0 is free
}

func newHeads(g *Group, rules []uint32) heads {
	h := heads{table: make([]uint32, tableSize(len(rules)))}
	for _, i := range rules {
		r := g.rule(i)
		head := g.head(i, r)
		h.insert(g, i, r, maphash.String(seed, head))
		if n := len(h.lengths); n == 0 || h.lengths[n-1] != uint32(len(head)) {
			h.lengths = append(h.lengths, uint32(len(head)))
		}
	}
	slices.Sort(h.lengths)
	h.lengths = slices.Clone(slices.Compact(h.lengths))
	return h
}

// insert adds r, the i-th rule, to the table, unless the table already has a more specific rule
// that matches the same targets.
func (h *heads) insert(g *Group, i uint32, r rule, hash uint64) {
	for slot := hash; ; slot++ {
		entry := &h.table[slot&uint64(len(h.table)-1)]
		if *entry == 0 {
			*entry = i + 1
			return
		}
		if g.same(g.rule(*entry-1), r) {
			return
		}
	}
}

// find returns the smallest number of a rule that matches, or g.count.
func (h *heads) find(g *Group, target string) uint32 {
	best := g.count
	for _, n := range h.lengths {
		if int(n) > len(target) {
			break
		}
		own := probeFor(target[:n])
		for slot := maphash.String(seed, target[:n]); ; slot++ {
			entry := h.table[slot&uint64(len(h.table)-1)]
			if entry == 0 {
				break
			}
			if i := entry - 1; i < best && g.probe(i) == own && g.matches(i, g.rule(i), target) {
				best = i
			}
		}
	}
	return best
}
