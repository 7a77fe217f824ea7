package match

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// An index finds the rule that decides without comparing most of the rules. It refers to a rule by
// its number. A smaller number means a more specific rule.
type index struct {
	heads heads
	wilds wilds
}

func newIndex(l *List) *index {
	byHead, byText := splitRules(l)
	return &index{heads: newHeads(l, byHead), wilds: newWilds(l, byText)}
}

// splitRules divides the rules into those to be found by their head and those to be found by their
// text. A rule is found by its text if it has a wildcard and its head is short, shared by many such
// rules, or very long. Long heads are excluded because each different length of a head costs a
// lookup.
func splitRules(l *List) (byHead, byText []uint32) {
	const shortest, longest, mostShared = 4, 64, 4
	shared := make(map[string]int) // number of rules with a wildcard by their head
	for i := range l.count {
		if r := l.record(i); r.flags&wild != 0 {
			shared[l.head(r)]++
		}
	}
	byHead = make([]uint32, 0, l.count)
	for i := range l.count {
		r := l.record(i)
		head := l.head(r)
		n := len(head)
		if r.flags&wild == 0 || shortest <= n && n <= longest && shared[head] <= mostShared {
			byHead = append(byHead, i)
		} else {
			byText = append(byText, i)
		}
	}
	return byHead, byText
}

// find returns the number of the first rule that matches, or l.count if there is none. Like
// List.Find, it returns false if it cannot decide.
func (x *index) find(l *List, target string, normal int, isNormal func(rest string) bool) (i uint32, ok bool) {
	i, ok = x.heads.find(l, target, normal, isNormal)
	if ok {
		i = x.wilds.find(l, target, i)
	}
	return i, ok
}

// seed and gramFactor are random, so that the author of a file cannot choose texts that collide in
// the hash tables.
var (
	seed       = maphash.MakeSeed()
	gramFactor = rand.Uint32() | 1
)

// tableSize returns a power of two that is larger than 2*n.
func tableSize(n int) int { return 1 << bits.Len(uint(2*n)) }
