package dialect

import (
	"math"
	"strings"
	"sync"
	"unsafe"
)

// number returns the number of the first rule that matches target, or g.count
// if none does. So many octets of target as normal says are known to be in
// normal form; if a wildcard needs the others and they are not, number returns
// odd.
func (g *Group) number(target string, normal int) uint32 {
	if g.dialect.variant().openRobots && target == "/robots.txt" {
		return g.count
	}
	if g.index != nil {
		return g.index.find(g, target)
	}
	return g.find(target, normal)
}

// odd is the number of no rule: the target must be brought into normal form
// first.
const odd = math.MaxUint32

// longestHead returns how many octets of a target a look at the heads of all
// rules needs. A wildcard without a head, or with a slash only, is looked for
// in the whole target.
func (g *Group) longestHead() (n int) {
	for i := range g.count {
		r := g.rule(i)
		size := len(g.head(i, r))
		if r.flags&wild != 0 && size <= 1 {
			return math.MaxInt
		}
		n = max(n, size)
	}
	return n
}

// reachOf returns Group.reach for what is looked at first: one octet more,
// since a fragment may begin there, and enough to know /robots.txt from a
// longer path.
func reachOf(n int) uint16 {
	return uint16(min(max(n, len("/robots.txt")), math.MaxUint16-1) + 1)
}

// first returns how many octets of a target must be in normal form to begin
// with.
func (g *Group) first(target string) int {
	if g.reach == math.MaxUint16 {
		return len(target)
	}
	return min(len(target), int(g.reach))
}

// isNormal reports whether a part of a target is in the form that rules are
// compared with.
func (g *Group) isNormal(part string) bool {
	if g.dialect.variant().coding == canonical {
		return isCanonical(part)
	}
	return strings.IndexByte(part, '#') < 0
}

// find is number by a look at one rule after the other.
func (g *Group) find(target string, normal int) uint32 {
	probes := g.data[:g.count*probeSize]
	for p := 0; p+1 < len(probes); p += probeSize {
		if at := int(probes[p]); at >= len(target) || target[at] != probes[p+1] {
			continue
		}
		i := uint32(p / probeSize)
		r := g.rule(i)
		if normal < len(target) && r.flags&wild != 0 {
			if !g.isNormal(target[normal:]) {
				return odd
			}
			normal = len(target)
		}
		if g.matches(i, r, target) {
			return i
		}
	}
	return g.count
}

// matches reports whether the i-th rule, r, matches a target.
func (g *Group) matches(i uint32, r rule, target string) bool {
	text := g.text(r)
	switch r.flags & (anchored | wild | twofold) {
	case 0:
		return strings.HasPrefix(target, text)
	case anchored:
		return target == text
	case wild, wild | anchored:
		return matchWild(text, target, int(g.probe(i).at)+1, r.flags&anchored != 0)
	}
	return matchTwofold(text, target, r.flags&anchored != 0)
}

// targets keeps space for targets that are not in normal form.
var targets = sync.Pool{New: func() any { return new([]byte) }}

// numberOdd is number for a target that is not normal.
func (g *Group) numberOdd(target string) uint32 {
	if i := strings.IndexByte(target, '#'); i >= 0 {
		target = target[:i]
	}
	space := targets.Get().(*[]byte)
	buf := (*space)[:0]
	if target == "" || target[0] != '/' {
		buf = append(buf, '/')
	}
	if g.dialect.variant().coding == canonical {
		buf, _ = appendCanonical(buf, target, false, false)
	} else {
		buf = append(buf, target...)
	}
	// Nothing keeps the octets, and they do not change before they go back.
	i := g.number(unsafe.String(unsafe.SliceData(buf), len(buf)), len(buf))
	*space = buf
	targets.Put(space)
	return i
}
