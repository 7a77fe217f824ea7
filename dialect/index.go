package dialect

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// indexFrom is the number of rules from which a group is searched with an index
// instead of one by one.
const indexFrom = 24

// An index finds the rule that decides without a look at most of them. Rules are
// known by their number, the smaller the more specific, as Group.rule counts.
type index struct {
	heads heads
	wilds wilds
}

// newIndex makes an index of the rules of g.
func newIndex(g *Group) *index {
	byHead, byText := sortRules(g)
	return &index{newHeads(g, byHead), newWilds(g, byText)}
}

// sortRules returns the rules of g that are found by their head and the others:
// those with wildcards whose head is short, shared by many, or so long that there
// may be very many lengths.
func sortRules(g *Group) (byHead, byText []uint32) {
	const shortest, longest, mostShared = 4, 64, 4
	var wildcard, hashes []uint32
	byHead = make([]uint32, 0, g.count)
	for i := range g.count {
		if g.rule(i).flags&wild == 0 {
			byHead = append(byHead, i)
		} else {
			wildcard = append(wildcard, i)
		}
	}
	sharing := make([]uint32, tableSize(len(wildcard))) // by the hash of a head
	for _, i := range wildcard {
		h := uint32(maphash.String(seed, g.head(i, g.rule(i)))) & uint32(len(sharing)-1)
		hashes = append(hashes, h)
		sharing[h]++
	}
	for k, i := range wildcard {
		n := len(g.head(i, g.rule(i)))
		if shortest <= n && n <= longest && sharing[hashes[k]] <= mostShared {
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

// seed and gramFactor keep the authors of files from choosing texts that meet in
// the tables.
var (
	seed       = maphash.MakeSeed()
	gramFactor = rand.Uint32() | 1
)

// tableSize is a power of two, at least twice n.
func tableSize(n int) int { return 1 << bits.Len(uint(2*n)) }
