package dialect

import (
	"net/url"
	"unsafe"
)

// A Rule is the line that decided. The zero value, with Line 0, is no rule. In
// JSON a Pattern loses the octets that are not UTF-8.
type Rule struct {
	Allow   bool   `json:"allow"`
	Pattern string `json:"pattern"` // as it is written in the file
	Line    int    `json:"line"`    // in the file, from 1
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

// A Decision is whether a URL may be requested, and the rule that decided.
// Without a rule nothing in the file is about the URL, and it is allowed. A
// rule with an empty Pattern restricts nothing, whether it is an Allow or a
// Disallow.
type Decision struct {
	Allowed bool
	Rule    Rule
}

// Decide decides whether a URL may be requested, given its path and query as
// [Target] returns them. What follows a # is ignored, and a missing slash at
// the start is supplied. It does not allocate, except under [Temoto].
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
	return Decision{r.flags&(allowing|empty) != 0, Rule{r.flags&allowing != 0, g.pattern(i, r), int(r.line)}}
}

// DecideURL decides whether u may be requested. It is like Decide for the
// [Target] of u, but it does not allocate where Target does. Under [Temoto] it
// tests what Colly's built-in check tests, also where that is not the Target: for
// lower-case escapes, and for a host with a semicolon.
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
	// A decision is made of the group's own strings.
	d := g.Decide(unsafe.String(unsafe.SliceData(buf), len(buf)))
	*space = buf
	targets.Put(space)
	return d
}
