package match

import (
	"hash/maphash"
	"slices"
)

// heads finds rules by their heads, which are the bytes that a target must begin with. For each
// length of a head, it looks up the beginning of the target with this length in a hash table.
type heads struct {
	lengths []uint32 // the lengths of the heads, in ascending order
	table   []entry  // each in the slot of the hash of its head or after it
}

// An entry is the number of a rule plus one, in the low bits, and some bits of the hash of its
// head. If an entry is 0, the slot is free.
type entry uint32

const numberBits = 20

func newEntry(i uint32, hash uint64) entry {
	return entry(i+1) | entry(hash>>(32+numberBits))<<numberBits
}

// number returns the number of the rule.
func (e entry) number() uint32 { return uint32(e)&(1<<numberBits-1) - 1 }

// has reports whether the head of the rule may have the given hash.
func (e entry) has(hash uint64) bool { return uint32(e)>>numberBits == uint32(hash>>(32+numberBits)) }

func newHeads(l *List, rules []uint32) heads {
	h := heads{table: make([]entry, tableSize(len(rules)))}
	for _, i := range rules {
		r := l.record(i)
		head := l.head(r)
		h.insert(l, i, maphash.String(seed, head))
		if n := len(h.lengths); n == 0 || h.lengths[n-1] != uint32(len(head)) {
			h.lengths = append(h.lengths, uint32(len(head)))
		}
	}
	slices.Sort(h.lengths)
	h.lengths = slices.Clone(slices.Compact(h.lengths))
	return h
}

// insert adds the i-th rule to the table, unless the table already has a more specific rule that
// matches the same targets.
func (h *heads) insert(l *List, i uint32, hash uint64) {
	for slot := hash; ; slot++ {
		e := &h.table[slot&uint64(len(h.table)-1)]
		if *e == 0 {
			*e = newEntry(i, hash)
			return
		}
		if e.has(hash) && l.same(l.record(e.number()), l.record(i)) {
			return
		}
	}
}

// find is like index.find for the rules in heads.
func (h *heads) find(l *List, target string, normal int, isNormal func(rest string) bool) (best uint32, ok bool) {
	best = l.count
	for _, n := range h.lengths {
		if int(n) > len(target) {
			break
		}
		hash := maphash.String(seed, target[:n])
		for slot := hash; ; slot++ {
			e := h.table[slot&uint64(len(h.table)-1)]
			if e == 0 {
				break
			}
			i := e.number()
			if !e.has(hash) || i >= best {
				continue
			}
			matched, ok := l.matches(i, target, normal, isNormal)
			if !ok {
				return 0, false
			}
			if matched {
				best = i
			}
		}
	}
	return best, true
}
