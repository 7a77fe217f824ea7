package match

import (
	"iter"
	"math"
	"math/bits"
	"slices"
)

// wilds finds rules with wildcards by a gram, which is a sequence of four bytes of the rule's text.
// The gram of a rule is one that occurs in as few other rules as possible. A rule cannot match a
// target that does not contain its gram.
type wilds struct {
	starts  []uint32   // entries[starts[h]:starts[h+1]] are the entries with the hash h
	entries []gramRule // sorted by hash, then by rule
	others  []maskRule // rules without a gram, sorted by rule
}

// A gramRule is a rule and its gram.
type gramRule struct{ gram, rule uint32 }

// A maskRule is a rule and the set of the bytes that a target must contain, as in byteMask.
type maskRule struct {
	mask uint64
	rule uint32
}

const gramSize = 4

func newWilds(l *List, rules []uint32) wilds {
	var w wilds
	if len(rules) == 0 {
		return w
	}
	w.starts = make([]uint32, tableSize(len(rules))+1)
	often := make([]uint32, len(w.starts)) // number of grams of the rules by their hash
	for _, i := range rules {
		for gram := range grams(l, i) {
			often[w.hash(gram)]++
		}
	}
	for _, i := range rules {
		if gram, ok := w.rarest(l, i, often); ok {
			w.entries = append(w.entries, gramRule{gram: gram, rule: i})
			w.starts[w.hash(gram)+1]++
		} else {
			w.others = append(w.others, maskRule{mask: needs(l, i), rule: i})
		}
	}
	w.sort()
	return w
}

// any reports whether there are any rules.
func (w *wilds) any() bool { return len(w.entries) > 0 || len(w.others) > 0 }

// rarest returns the gram of a rule with the rarest hash. If the rule has no gram, ok is false.
func (w *wilds) rarest(l *List, i uint32, often []uint32) (rarest uint32, ok bool) {
	least := uint32(math.MaxUint32)
	for gram := range grams(l, i) {
		if n := often[w.hash(gram)]; n < least {
			rarest = gram
			least = n
			ok = true
		}
	}
	return rarest, ok
}

// sort sorts the entries by their hashes. Before sort, starts[h+1] is the number of entries with
// the hash h. sort converts these numbers to offsets.
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

// hash returns the hash of a gram, which is an index of starts.
func (w *wilds) hash(gram uint32) uint32 { return gram * gramFactor >> w.shift() }

func (w *wilds) shift() uint { return 32 - uint(bits.Len(uint(len(w.starts)-2))) }

// grams yields the grams of a rule's text. A text with two forms has no grams.
func grams(l *List, i uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		r := l.record(i)
		if r.flags&twoForms != 0 {
			return
		}
		text := l.text(r)
		run := 0 // number of bytes since the last wildcard
		for at := 0; at < len(text); at++ {
			run++
			if text[at] == '*' {
				run = 0
			}
			if run >= gramSize && !yield(load32(text[at+1-gramSize:])) {
				return
			}
		}
	}
}

// needs returns the set of the bytes that a target must contain if the rule matches.
func needs(l *List, i uint32) (mask uint64) {
	r := l.record(i)
	if r.flags&twoForms != 0 {
		return 0
	}
	text := l.text(r)
	for at := 0; at < len(text); at++ {
		if text[at] != '*' {
			mask |= 1 << (text[at] & 63)
		}
	}
	return mask
}

// byteMask returns the set of the bytes in s. Each bit of the set stands for four different bytes.
func byteMask(s string) (mask uint64) {
	for i := 0; i < len(s); i++ {
		mask |= 1 << (s[i] & 63)
	}
	return mask
}

// find returns the smallest number of a rule that matches, or best if that is smaller.
func (w *wilds) find(l *List, target string, best uint32) uint32 {
	if len(w.others) > 0 {
		best = w.findOther(l, target, best)
	}
	if len(w.entries) > 0 {
		best = w.findGram(l, target, best)
	}
	return best
}

// matches reports whether a rule matches. The whole target is in normal form.
func (w *wilds) matches(l *List, i uint32, target string) bool {
	matched, _ := l.matches(i, target, len(target), nil)
	return matched
}

// findOther is like find for the rules without a gram.
func (w *wilds) findOther(l *List, target string, best uint32) uint32 {
	mask := byteMask(target)
	for _, o := range w.others {
		if o.rule >= best {
			break
		}
		if o.mask&^mask == 0 && w.matches(l, o.rule, target) {
			return o.rule
		}
	}
	return best
}

// findGram is like find for the rules with a gram. If it has looked at more entries than there are,
// it continues with findSlowly.
func (w *wilds) findGram(l *List, target string, best uint32) uint32 {
	starts := w.starts
	shift := w.shift()
	looks := 0
	gram := uint32(0) // the last four bytes
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
			looks++
			if looks > len(w.entries) {
				return w.findSlowly(l, target, best)
			}
			if e.gram == gram && w.matches(l, e.rule, target) {
				best = e.rule
			}
		}
	}
	return best
}

// findSlowly is like findGram and looks at each rule at most once. It is faster for a target in
// which the same grams occur many times.
func (w *wilds) findSlowly(l *List, target string, best uint32) uint32 {
	var has [1 << 8]uint64
	const shift = 32 - 14
	for at := 0; at+gramSize <= len(target); at++ {
		h := load32(target[at:]) * gramFactor >> shift
		has[h>>6] |= 1 << (h & 63)
	}
	for _, e := range w.entries {
		h := e.gram * gramFactor >> shift
		if e.rule < best && has[h>>6]&(1<<(h&63)) != 0 && w.matches(l, e.rule, target) {
			best = e.rule
		}
	}
	return best
}
