package dialect

import (
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
)

// indexFrom is the number of rules from which a group is searched with an index
// instead of one by one.
const indexFrom = 24

// An index finds the rule that decides without a look at most of them. Rules
// are known by their number, the smaller the more specific, as Group.rule
// counts.
type index struct {
	heads heads
	wilds wilds
}

// newIndex makes an index of the rules of g. A target must be in normal form as
// far as reach says before the index is asked: of wildcards it is asked for all
// of it.
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
	x = &index{newHeads(g, append(literal, byHead...)), newWilds(g, byText)}
	if len(wildcard) > 0 {
		return x, math.MaxInt
	}
	return x, int(x.heads.lengths[len(x.heads.lengths)-1])
}

// sortWildcards returns the rules that are found by their head and the others:
// those whose head is short, shared by many, or so long that there may be very
// many lengths.
func sortWildcards(g *Group, wildcard []uint32) (byHead, byText []uint32) {
	const shortest, longest, mostShared = 4, 64, 4
	sharing := make([]uint32, tableSize(len(wildcard))) // by the hash of a head; 0: of none
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

// seed and gramFactor keep the authors of files from choosing texts that meet
// in the tables.
var (
	seed       = maphash.MakeSeed()
	gramFactor = rand.Uint32() | 1
)

// tableSize is a power of two, at least twice n.
func tableSize(n int) int { return 1 << bits.Len(uint(2*n)) }
