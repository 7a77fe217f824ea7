package dialect

import (
	"iter"
	"math"
	"math/bits"
	"slices"
)

// wilds finds texts with wildcards by a gram, four octets that stand side by
// side in the text and in few others. A target that has not the gram cannot
// match the text.
type wilds struct {
	starts  []uint32   // of the grams with one hash in entries
	entries []gramRule // by hash, then by rule
	others  []maskRule // rules without a gram, by rule
}

// A gramRule is a rule and its gram.
type gramRule struct{ gram, rule uint32 }

// A maskRule is a rule and the octets that it needs, as octetMask has them.
type maskRule struct {
	mask uint64
	rule uint32
}

const gramSize = 4

func newWilds(g *Group, rules []uint32) wilds {
	var w wilds
	if len(rules) == 0 {
		return w
	}
	w.starts = make([]uint32, tableSize(len(rules))+1)
	often := make([]uint32, len(w.starts)) // how many grams of the rules have a hash
	for _, i := range rules {
		for gram := range grams(g, i) {
			often[w.hash(gram)]++
		}
	}
	for _, i := range rules {
		if gram, ok := w.rarest(g, i, often); ok {
			w.entries = append(w.entries, gramRule{gram, i})
			w.starts[w.hash(gram)+1]++
		} else {
			w.others = append(w.others, maskRule{needs(g, i), i})
		}
	}
	w.sort()
	return w
}

// rarest returns the gram of a rule whose hash is the rarest, if the rule has
// one.
func (w *wilds) rarest(g *Group, i uint32, often []uint32) (rarest uint32, ok bool) {
	least := uint32(math.MaxUint32)
	for gram := range grams(g, i) {
		if n := often[w.hash(gram)]; n < least {
			rarest, least, ok = gram, n, true
		}
	}
	return rarest, ok
}

// sort puts the entries into the order of their hashes; starts has counted
// them.
func (w *wilds) sort() {
	for h := range len(w.starts) - 1 {
		w.starts[h+1] += w.starts[h]
	}
	slices.SortFunc(w.entries, func(a, b gramRule) int {
		if ha, hb := w.hash(a.gram), w.hash(b.gram); ha != hb {
			return int(ha) - int(hb)
		}
		return int(a.rule) - int(b.rule)
	})
}

// hash returns where starts has the first entry of a gram.
func (w *wilds) hash(gram uint32) uint32 { return gram * gramFactor >> w.shift() }

func (w *wilds) shift() uint { return 32 - uint(bits.Len(uint(len(w.starts)-2))) }

// grams yields the grams of a rule's text. A text of two forms has none.
func grams(g *Group, i uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		r := g.rule(i)
		if r.flags&twofold != 0 {
			return
		}
		text, run := g.text(r), 0 // octets since a wildcard
		for at := 0; at < len(text); at++ {
			if run++; text[at] == '*' {
				run = 0
			}
			if run >= gramSize && !yield(load32(text[at+1-gramSize:])) {
				return
			}
		}
	}
}

// needs returns the octets that a target must have for a rule.
func needs(g *Group, i uint32) (mask uint64) {
	r := g.rule(i)
	if r.flags&twofold != 0 {
		return 0
	}
	text := g.text(r)
	for at := 0; at < len(text); at++ {
		if text[at] != '*' {
			mask |= 1 << (text[at] & 63)
		}
	}
	return mask
}

// octetMask is the set of the octets in s, four to a bit.
func octetMask(s string) (mask uint64) {
	for i := 0; i < len(s); i++ {
		mask |= 1 << (s[i] & 63)
	}
	return mask
}

// find returns the smallest number of a rule that matches, or best if that is
// smaller.
func (w *wilds) find(g *Group, target string, best uint32) uint32 {
	if len(w.others) > 0 {
		best = w.findOther(g, target, best)
	}
	if len(w.entries) > 0 {
		best = w.findGram(g, target, best)
	}
	return best
}

// findOther is find among the rules without a gram.
func (w *wilds) findOther(g *Group, target string, best uint32) uint32 {
	mask := octetMask(target)
	for _, o := range w.others {
		if o.rule >= best {
			break
		}
		if o.mask&^mask == 0 && g.matches(o.rule, g.rule(o.rule), target) {
			return o.rule
		}
	}
	return best
}

// findGram is find among the rules with a gram.
func (w *wilds) findGram(g *Group, target string, best uint32) uint32 {
	starts, shift, looks := w.starts, w.shift(), 0
	gram := uint32(0) // the last four octets
	for at := 0; at < len(target); at++ {
		gram = gram>>8 | uint32(target[at])<<24
		h := gram * gramFactor >> shift
		from, to := starts[h], starts[h+1]
		if from == to || at+1 < gramSize {
			continue
		}
		for _, e := range w.entries[from:to] {
			if e.rule >= best {
				break
			}
			if looks++; looks > len(w.entries) {
				return w.findSlowly(g, target, best)
			}
			if e.gram == gram && g.matches(e.rule, g.rule(e.rule), target) {
				best = e.rule
			}
		}
	}
	return best
}

// findSlowly is findGram for a target in which grams come again and again: it
// looks at each rule once.
func (w *wilds) findSlowly(g *Group, target string, best uint32) uint32 {
	var has [1 << 8]uint64
	const shift = 32 - 14
	for at := 0; at+gramSize <= len(target); at++ {
		h := load32(target[at:]) * gramFactor >> shift
		has[h>>6] |= 1 << (h & 63)
	}
	for _, e := range w.entries {
		h := e.gram * gramFactor >> shift
		if e.rule < best && has[h>>6]&(1<<(h&63)) != 0 && g.matches(e.rule, g.rule(e.rule), target) {
			best = e.rule
		}
	}
	return best
}
