package dialect

import (
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
)

// indexFrom is the minimum number of rules of a group with an index. Smaller groups are searched
// rule by rule.
const indexFrom = 24

// An index finds the rule that decides without comparing most of the rules. It refers to a rule by
// its number in Group.rule. A smaller number means a more specific rule.
type index struct {
	heads heads
	wilds wilds
}

// newIndex returns an index of the rules of g. The first reach bytes of a target must be in normal
// form before the index can be used. If there are wildcards, this is the whole target.
func newIndex(g *Group) (x *index, reach int) {
	var wildcard []uint32
	literal := make([]uint32, 0, g.count)
	for i := range g.count {
		if g.flags(i)&wild == 0 {
			literal = append(literal, i)
		} else {
			wildcard = append(wildcard, i)
		}
	}
	byHead, byText := sortWildcards(g, wildcard)
	x = &index{heads: newHeads(g, append(literal, byHead...)), wilds: newWilds(g, byText)}
	if len(wildcard) > 0 {
		return x, math.MaxInt
	}
	return x, int(x.heads.lengths[len(x.heads.lengths)-1])
}

// sortWildcards divides the rules with wildcards into those to be found by their head and those to
// be found by their text. A rule is found by its text if its head is short, shared by many rules,
// or very long. Long heads are excluded because each different length of a head costs a lookup.
func sortWildcards(g *Group, wildcard []uint32) (byHead, byText []uint32) {
	const shortest, longest, mostShared = 4, 64, 4
	sharing := make([]uint32, tableSize(len(wildcard))) // number of rules by the hash of their head
	hashes := make([]uint32, len(wildcard))
	for k, i := range wildcard {
		if n := int(g.probe(i).at) + 1; shortest <= n && n <= longest {
			hashes[k] = uint32(maphash.String(seed, g.head(i, g.rule(i))))&uint32(len(sharing)-1) | 1
			sharing[hashes[k]]++
		}
	}
	for k, i := range wildcard {
		if h := hashes[k]; h != 0 && sharing[h] <= mostShared {
			byHead = append(byHead, i)
		} else {
			byText = append(byText, i)
		}
	}
	return byHead, byText
}

// find returns the number of the first rule that matches, or g.count.
func (x *index) find(g *Group, target string) uint32 {
	return x.wilds.find(g, target, x.heads.find(g, target))
}

// seed and gramFactor are random, so that the author of a file cannot choose texts that collide in
// the hash tables.
var (
	seed       = maphash.MakeSeed()
	gramFactor = rand.Uint32() | 1
)

// tableSize returns a power of two that is larger than 2*n.
func tableSize(n int) int { return 1 << bits.Len(uint(2*n)) }
