package dialect

import (
	"net/url"
	"sync"
	"unsafe"

	"github.com/collyrobots/collyrobots/internal/match"
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

// A Verdict says whether a URL may be requested and which rule decided. If no rule matches the
// URL, the URL is allowed. A rule with an empty Pattern restricts nothing, whether it is an Allow
// or a Disallow.
type Verdict struct {
	Allowed bool
	Rule    Rule
}

// Decide decides whether a URL may be requested. The target is the path and query of the URL as
// [Target] returns them. Decide ignores a # and everything after it, and it adds a missing slash at
// the beginning. It does not allocate, except for [Temoto].
func (g *Group) Decide(target string) Verdict {
	if g.temoto != nil {
		return g.temoto.decide(target)
	}
	if g.rules.Len() == 0 {
		return Verdict{Allowed: true}
	}
	r := g.find(target)
	rule := Rule{Allow: r.Allow, Pattern: r.Pattern, Line: int(r.Line)}
	return Verdict{Allowed: r.Allow || r.Pattern == "", Rule: rule}
}

// targets holds buffers for targets.
var targets = sync.Pool{New: func() any { return new([]byte) }}

// DecideURL decides whether u may be requested. It is like Decide with the [Target] of u, but it
// does not allocate even if Target does. For [Temoto], it tests the same text as Colly's built-in
// check. This text differs from the Target if the URL has lower-case escapes or a host with a
// semicolon.
func (g *Group) DecideURL(u *url.URL) Verdict {
	if g.temoto != nil {
		return g.temoto.decideURL(u)
	}
	if g.rules.Len() == 0 {
		return Verdict{Allowed: true}
	}
	if target, ok := plainTarget(u); ok {
		return g.Decide(target)
	}
	buf := targets.Get().(*[]byte)
	*buf = appendTarget((*buf)[:0], u)
	// The buffer can be reused, because a Verdict only holds strings of the group.
	d := g.Decide(unsafe.String(unsafe.SliceData(*buf), len(*buf)))
	targets.Put(buf)
	return d
}

const robotsPath = "/robots.txt"

// find returns the rule that decides about a target, or the zero Rule if no rule matches. In
// most cases, it does not have to convert the target to normal form.
func (g *Group) find(target string) match.Rule {
	v := g.dialect.variant()
	// These bytes are enough for the literal rules and to recognize /robots.txt.
	n := min(len(target), max(g.rules.Reach(), len(robotsPath)+1))
	if n == 0 || target[0] != '/' || !v.isNormal(target[:n]) {
		return g.findOdd(target)
	}
	if v.openRobots && target == robotsPath {
		return match.Rule{}
	}
	r, ok := g.rules.Find(target, n, v.isNormal)
	if !ok {
		return g.findOdd(target)
	}
	return r
}

// findOdd is like find for a target that must be converted to normal form first.
func (g *Group) findOdd(target string) (r match.Rule) {
	v := g.dialect.variant()
	buf := targets.Get().(*[]byte)
	*buf = v.coding.AppendNormal((*buf)[:0], target)
	normal := unsafe.String(unsafe.SliceData(*buf), len(*buf))
	if !v.openRobots || normal != robotsPath {
		r, _ = g.rules.Find(normal, len(normal), v.isNormal)
	}
	// The buffer can be reused, because a Rule only holds strings of the group.
	targets.Put(buf)
	return r
}
