package dialect

import (
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
	if g.count == 0 {
		return Decision{Allowed: true}
	}
	if len(target) > 0 && target[0] == '/' {
		if g.dialect.variant().coding == canonical {
			if isCanonical(target) {
				return g.decide(target)
			}
		} else if strings.IndexByte(target, '#') < 0 {
			return g.decide(target)
		}
	}
	return g.decideOdd(target)
}

// decide finds the first rule that matches a target in normal form.
func (g *Group) decide(target string) Decision {
	if g.dialect.variant().openRobots && target == "/robots.txt" {
		return Decision{Allowed: true}
	}
	i := uint32(0)
	if g.index != nil {
		i = g.index.find(g, target)
	} else {
		for i < g.count && !g.matches(i, target) {
			i++
		}
	}
	if i == g.count {
		return Decision{Allowed: true}
	}
	return g.explain(int(i))
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

// matches reports whether the i-th rule matches a target.
func (g *Group) matches(i uint32, target string) bool {
	r := g.rule(int(i))
	return r.matches(g.text(r), target)
}

// matches reports whether r, whose text is given, matches a target.
func (r rule) matches(text, target string) bool {
	switch n := len(text); r.flags & (anchored | wild | twofold) {
	case 0:
		// Most patterns end otherwise than the target goes on there.
		return n == 0 || n <= len(target) && target[n-1] == text[n-1] && target[:n] == text
	case anchored:
		return target == text
	case wild, wild | anchored:
		return matchWild(text, target, r.flags&anchored != 0)
	}
	return matchTwofold(text, target, r.flags&anchored != 0)
}

// targets keeps space for targets that are not in normal form.
var targets = sync.Pool{New: func() any { return new([]byte) }}

// decideOdd brings a target into normal form and decides.
func (g *Group) decideOdd(target string) Decision {
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
	// The octets do not change before they go back to the pool, and the Decision
	// keeps none of them.
	decision := g.decide(unsafe.String(unsafe.SliceData(buf), len(buf)))
	*space = buf
	targets.Put(space)
	return decision
}
