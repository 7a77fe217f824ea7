package dialect

import (
	"hash/maphash"
	"slices"
)

// heads finds rules by the octets that a target must begin with: it looks for a
// beginning of each length that there is in a hash table.
type heads struct {
	lengths []uint32 // of the heads, ascending
	table   []uint32 // number of a rule + 1, at the hash of its head or after; 0 ends
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

// insert puts the i-th rule, r, into the table, unless a more specific one is
// the same.
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
