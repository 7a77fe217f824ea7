package dialect

import (
	"math"
	"strings"
	"sync"
	"unsafe"
)

// number returns the number of the first rule that matches target, or g.count if none matches. The
// first bytes of target, as many as normal says, are known to be in normal form. If a wildcard has
// to be matched against the other bytes and these are not in normal form, number returns odd.
func (g *Group) number(target string, normal int) uint32 {
	if g.dialect.variant().openRobots && target == "/robots.txt" {
		return g.count
	}
	if g.index != nil {
		return g.index.find(g, target)
	}
	return g.find(target, normal)
}

// odd is returned instead of the number of a rule if the target must be converted to normal form
// first.
const odd = math.MaxUint32

// longestHead returns how many bytes of a target are needed to compare it with the heads of all
// rules. If a rule has a wildcard and its head is empty or only a slash, longestHead returns
// math.MaxInt, because the head rules out hardly any target.
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

// reachOf returns Group.reach if the comparison needs n bytes of a target. It adds one byte,
// because a fragment may begin there. The result is large enough to distinguish /robots.txt from a
// longer path.
func reachOf(n int) uint16 {
	return uint16(min(max(n, len("/robots.txt")), math.MaxUint16-1) + 1)
}

// first returns how many bytes of a target must be in normal form before it is compared.
func (g *Group) first(target string) int {
	if g.reach == math.MaxUint16 {
		return len(target)
	}
	return min(len(target), int(g.reach))
}

// isNormal reports whether a part of a target is in the form in which rules are compared.
func (g *Group) isNormal(part string) bool {
	if g.dialect.variant().coding == canonical {
		return isCanonical(part)
	}
	return strings.IndexByte(part, '#') < 0
}

// find is like number and compares one rule after the other, without the index.
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

// targets holds buffers for targets that are not in normal form.
var targets = sync.Pool{New: func() any { return new([]byte) }}

// numberOdd is like number for a target that is not in normal form.
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
	// The string is safe: number does not keep it, and buf does not change before number returns.
	i := g.number(unsafe.String(unsafe.SliceData(buf), len(buf)), len(buf))
	*space = buf
	targets.Put(space)
	return i
}
