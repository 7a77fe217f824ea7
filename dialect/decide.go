package dialect

import (
	"net/url"
	"unsafe"
)

// A Rule is the line that decided. The zero value, with Line 0, means that no rule matched. In
// JSON, bytes of Pattern that are not valid UTF-8 are replaced.
type Rule struct {
	Allow   bool   `json:"allow"`
	Pattern string `json:"pattern"` // as it is written in the file
	Line    int    `json:"line"`    // line number in the file, starting at 1
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

// A Decision says whether a URL may be requested and which rule decided. If no rule matches the
// URL, the URL is allowed. A rule with an empty Pattern restricts nothing, whether it is an Allow
// or a Disallow.
type Decision struct {
	Allowed bool
	Rule    Rule
}

// Decide decides whether a URL may be requested. The target is the path and query of the URL as
// [Target] returns them. Decide ignores a # and everything after it, and it adds a missing slash at
// the beginning. It does not allocate, except for [Temoto].
func (g *Group) Decide(target string) Decision {
	if g.temoto != nil {
		return g.temoto.decide(target)
	}
	if g.count == 0 {
		return Decision{Allowed: true}
	}
	i := uint32(odd)
	if n := g.first(target); n > 0 && target[0] == '/' && g.isNormal(target[:n]) {
		i = g.number(target, n)
	}
	if i == odd {
		i = g.numberOdd(target)
	}
	if i == g.count {
		return Decision{Allowed: true}
	}
	r := g.rule(i)
	rule := Rule{Allow: r.flags&allowing != 0, Pattern: g.pattern(i, r), Line: int(r.line)}
	return Decision{Allowed: r.flags&(allowing|empty) != 0, Rule: rule}
}

// DecideURL decides whether u may be requested. It is like Decide with the [Target] of u, but it
// does not allocate even if Target does. For [Temoto], it tests the same text as Colly's built-in
// check. This text differs from the Target if the URL has lower-case escapes or a host with a
// semicolon.
func (g *Group) DecideURL(u *url.URL) Decision {
	if g.temoto != nil {
		return g.temoto.decideURL(u)
	}
	if g.count == 0 {
		return Decision{Allowed: true}
	}
	if target, ok := plainTarget(u); ok {
		return g.Decide(target)
	}
	space := targets.Get().(*[]byte)
	buf := appendTarget((*space)[:0], u)
	// The buffer can be reused, because a Decision only holds strings of the group.
	d := g.Decide(unsafe.String(unsafe.SliceData(buf), len(buf)))
	*space = buf
	targets.Put(space)
	return d
}
