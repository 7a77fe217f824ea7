package dialect

import (
	"net/url"
	"strings"
	"sync"
	"unsafe"
)

// A Rule is the line that decided. The zero value, with Line 0, is no rule.
type Rule struct {
	Allow   bool
	Pattern string // as it is written in the file
	Line    int    // in the file, from 1
}

// String returns the rule as a line of robots.txt, or "" if there is none.
func (r Rule) String() string {
	switch {
	case r.Line == 0:
		return ""
	case r.Allow:
		return "Allow: " + r.Pattern
	}
	return "Disallow: " + r.Pattern
}

// A Decision says whether a URL may be requested, and the rule that says so; with
// no Rule nothing in the file is about the URL. A Rule with an empty Pattern
// restricts nothing, whether it is an Allow or a Disallow.
type Decision struct {
	Allowed bool
	Rule    Rule
}

// Decide says whether a URL may be requested, given its path and query as
// [Target] returns them; what follows a # is not looked at, and a missing slash
// at the start is supplied. It does not allocate, except under [Temoto].
func (g *Group) Decide(target string) Decision {
	if g.temoto != nil {
		return g.temoto.decide(target)
	}
	i := g.count
	switch {
	case g.count == 0:
	case g.isNormal(target):
		i = g.number(target)
	default:
		i = g.numberOdd(target)
	}
	if i == g.count {
		return Decision{Allowed: true}
	}
	return g.explain(int(i))
}

// DecideURL is Decide for the [Target] of u, which it does not keep: it does not
// allocate where Target must, for a query.
func (g *Group) DecideURL(u *url.URL) Decision {
	if u.RawQuery == "" || g.temoto != nil || g.count == 0 {
		return g.Decide(Target(u))
	}
	space := targets.Get().(*[]byte)
	buf := appendTarget((*space)[:0], u)
	// A decision is made of the group's own strings.
	d := g.Decide(unsafe.String(unsafe.SliceData(buf), len(buf)))
	*space = buf
	targets.Put(space)
	return d
}

// isNormal reports whether a target is in the form that rules are compared with.
func (g *Group) isNormal(target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	if g.dialect.variant().coding == canonical {
		return isCanonical(target)
	}
	return strings.IndexByte(target, '#') < 0
}

// number returns the number of the first rule that matches a normal target, or
// g.count: nothing is said of it.
func (g *Group) number(target string) uint32 {
	if g.dialect.variant().openRobots && target == "/robots.txt" {
		return g.count
	}
	if g.index != nil {
		return g.index.find(g, target)
	}
	return g.find(target)
}

// explain returns the decision of the i-th rule.
func (g *Group) explain(i int) Decision {
	r, end := g.rule(i), uint32(len(g.data))
	if i+1 < int(g.count) {
		end = g.rule(i + 1).at
	}
	at := r.at
	if r.flags&rewritten != 0 {
		at += r.size
	}
	return Decision{r.flags&(allowing|empty) != 0, Rule{r.flags&allowing != 0, g.data[at:end], int(r.line)}}
}

// find returns the number of the first rule that matches, or g.count, by a look
// at one rule after the other.
func (g *Group) find(target string) uint32 {
	for i := range g.count {
		p := int(i) * packedSize
		packed := g.data[p : p+packedSize]
		at, size, last := load32(packed), load32(packed[4:]), packed[11]
		n, f := size&lowMask, flags(size>>24)
		switch {
		case f&(anchored|wild|twofold) != 0:
			if f.match(g.data[at:at+n], target) {
				return i
			}
		// Most texts differ from the target in their last octet already.
		case n == 0, n <= uint32(len(target)) && target[n-1] == last && target[:n] == g.data[at:at+n]:
			return i
		}
	}
	return g.count
}

// matches reports whether the i-th rule matches a target.
func (g *Group) matches(i uint32, target string) bool {
	r := g.rule(int(i))
	return r.flags.match(g.text(r), target)
}

// match reports whether a rule with these flags and text matches a target.
func (f flags) match(text, target string) bool {
	switch f & (anchored | wild | twofold) {
	case 0:
		return strings.HasPrefix(target, text)
	case anchored:
		return target == text
	case wild, wild | anchored:
		return matchWild(text, target, f&anchored != 0)
	}
	return matchTwofold(text, target, f&anchored != 0)
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
	i := g.number(unsafe.String(unsafe.SliceData(buf), len(buf)))
	*space = buf
	targets.Put(space)
	return i
}
