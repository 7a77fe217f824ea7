package lint

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A rule is a line of the file as a rule of one dialect.
type rule struct {
	dialect.Rule
	alone  *dialect.Group // a group with this rule only
	plain  bool           // the pattern has a sample, and overlaps compares it exactly
	sample string         // a target: a pattern that matches it matches every target that this rule matches
}

// allows reports whether the rule allows what it matches. A Disallow without a pattern does.
func (r *rule) allows() bool { return r.Allow || r.Pattern == "" }

// An order has the positions of the rules of a group in their order of precedence.
type order struct {
	spans map[int]span // by line
	lines []int        // in the order of the file
}

func newOrder(rules []dialect.Rule) *order {
	o := &order{spans: make(map[int]span, len(rules))}
	for i, rule := range rules {
		s, again := o.spans[rule.Line]
		if !again {
			s.first = i
			o.lines = append(o.lines, rule.Line)
		}
		s.last = i
		o.spans[rule.Line] = s
	}
	slices.Sort(o.lines)
	return o
}

// A span has the first and the last position of a rule in the order of precedence. They differ if
// the dialect reads the rule in several forms.
type span struct{ first, last int }

// An analysis finds the rules of one dialect that have no effect.
type analysis struct {
	*linter
	*reading
	rules   map[int]*rule // by line
	orders  []*order      // for each group
	every   *order        // of everyCrawler, or nil
	removed map[int]bool  // the lines of the rules that have no effect

	// filler is a byte that is in no pattern. In a sample, it stands for any text: a pattern can
	// match it only with a wildcard, which then matches any other text as well.
	filler byte
}

// lintRules finds the rules of a dialect that have no effect. A rule has no effect if its crawlers
// may request the same URLs without it, whether or not the other rules that were found are removed.
func (l *linter) lintRules(r *reading) {
	a := &analysis{linter: l, reading: r, rules: make(map[int]*rule), removed: make(map[int]bool)}
	if every := l.everyCrawler(r); every != nil {
		a.every = newOrder(every.rules)
	}
	a.filler = fillerFor(r.groups)
	if r.partial || a.filler == 0 || r.dialect == dialect.Temoto() {
		return
	}
	for _, g := range r.groups {
		a.orders = append(a.orders, newOrder(g.rules))
		for _, rule := range g.rules {
			if a.rules[rule.Line] == nil {
				a.rules[rule.Line] = a.newRule(rule)
			}
		}
	}
	for _, line := range slices.Backward(slices.Sorted(maps.Keys(a.rules))) {
		if a.budget < 0 {
			return
		}
		if f, ok := a.lintRule(a.rules[line]); ok && a.budget >= 0 {
			a.removed[line] = true
			l.add(r.dialect, f.id, line, f.text, "")
		}
	}
}

// fillerFor returns a byte that is in no pattern, or 0 if there is none.
func fillerFor(groups []*group) byte {
	var used [256]bool
	for _, g := range groups {
		for _, rule := range g.rules {
			for i := 0; i < len(rule.Pattern); i++ {
				used[rule.Pattern[i]] = true
			}
			for _, b := range []byte(unescape(rule.Pattern)) {
				used[b] = true
			}
		}
	}
	for _, b := range []byte("~!'();,zqxjkwvyZQXJKWVY0123456789") {
		if !used[b] {
			return b
		}
	}
	return 0
}

// unescape returns a pattern with its valid escapes decoded.
func unescape(pattern string) string {
	text, err := url.PathUnescape(pattern)
	if err == nil {
		return text
	}
	decoded := []byte(nil)
	for i := 0; i < len(pattern); i++ {
		if i+2 < len(pattern) && pattern[i] == '%' {
			if text, err := url.PathUnescape(pattern[i : i+3]); err == nil {
				decoded = append(decoded, text...)
				i += 2
				continue
			}
		}
		decoded = append(decoded, pattern[i])
	}
	return string(decoded)
}

func (a *analysis) newRule(r dialect.Rule) *rule {
	a.budget -= 64 + len(r.Pattern)
	file := "User-agent: *\n" + r.String() + "\n"
	n := &rule{Rule: r, alone: a.dialect.Parse([]byte(file)).Group()}
	literal := a.dialect == dialect.Original1994()
	if !isPlain(r.Pattern, literal) {
		return n
	}
	n.plain = true
	body := strings.TrimSuffix(r.Pattern, "$")
	if body == r.Pattern {
		body += "*"
	}
	n.sample = strings.ReplaceAll(body, "*", string(a.filler))
	if n.sample[0] != '/' {
		n.sample = "/" + n.sample // the text that the wildcard matches begins with a slash
	}
	return n
}

// isPlain reports whether a pattern consists of bytes that are compared as they are, and of * and $
// where they are special. If literal is set, they are not special anywhere.
func isPlain(pattern string, literal bool) bool {
	body := strings.TrimSuffix(pattern, "$")
	switch {
	case pattern == "", len(pattern) > 512:
		return false
	case literal && strings.ContainsAny(pattern, "*$"):
		return false
	case pattern[0] == '*' && len(body) > 1 && strings.IndexByte("/*", pattern[1]) >= 0:
		return false // the wildcard may match nothing
	}
	for i := 0; i < len(body); i++ {
		c := body[i]
		if (c < 'a' || 'z' < c) && (c < 'A' || 'Z' < c) && (c < '0' || '9' < c) && strings.IndexByte("-._~:/?[]@!&'()+,;=*", c) < 0 {
			return false
		}
	}
	return true
}

// A reason says why a rule has no effect.
type reason struct{ id, text string }

// lintRule returns the reason why a rule has no effect in any group. If it has an effect, ok is
// false.
func (a *analysis) lintRule(r *rule) (found reason, ok bool) {
	for i, group := range a.orders {
		a.budget -= 2
		if _, applies := group.spans[r.Line]; !applies {
			continue
		}
		others := group
		if a.every != nil && a.groups[i].crawler != "" {
			others = a.every
		}
		f, useless := a.lintInGroup(r, group, others)
		if !useless {
			return reason{}, false
		}
		if !ok {
			found, ok = f, true
		}
	}
	return found, ok
}

// lintInGroup is like lintRule for one group. others has the positions of all rules that may apply
// together with those of the group.
func (a *analysis) lintInGroup(r *rule, group, others *order) (found reason, ok bool) {
	a.budget -= 16 * (len(group.lines) + len(others.lines))
	at, ok := others.spans[r.Line]
	if !ok {
		return reason{}, false
	}
	earlier, later := a.covering(r, group, others)
	switch {
	case earlier != nil:
		return a.shadowed(r, earlier), true
	case at.first != at.last || !r.plain:
		return reason{}, false
	case later != nil:
		if a.isException(r, others, others.spans[later.Line].last) {
			return reason{}, false
		}
		return redundant(r, later), true
	case !r.allows() || a.isException(r, others, math.MaxInt):
		return reason{}, false
	case !a.denies(group):
		return reason{}, false // the Allow says that the group is open
	}
	return reason{id: "allow-without-effect", text: fmt.Sprintf("%q has no effect: no Disallow matches its URLs", shorten(r.String()))}, true
}

// covering looks for the rules of a group that match whatever r matches. earlier is one that
// precedes r, so that r never decides. If there is none, later is the first one after r that has the
// same effect. Both may be nil. others is that of lintInGroup.
func (a *analysis) covering(r *rule, group, others *order) (earlier, later *rule) {
	at := others.spans[r.Line]
	for _, line := range group.lines {
		other := a.rules[line]
		if other == r || a.removed[line] || !a.covers(other, r) {
			continue
		}
		where, ok := others.spans[line]
		switch {
		case !ok: // a rule without a pattern, and not the first
		case where.first < at.first && other.Pattern == r.Pattern: // so it has the same forms
			return other, nil
		case at.first != at.last:
		case where.last < at.first:
			return other, nil
		case where.first > at.last && other.allows() == r.allows() && (later == nil || where.last < others.spans[later.Line].last):
			later = other
		}
	}
	return nil, later
}

// isException reports whether r may take URLs from a rule with the opposite effect that follows it
// and precedes the position until. r must be plain and have one position.
func (a *analysis) isException(r *rule, others *order, until int) bool {
	at := others.spans[r.Line]
	for _, line := range others.lines {
		where := others.spans[line]
		other := a.rules[line]
		if other != nil && other.allows() == r.allows() || where.first >= until || where.last <= at.first {
			continue
		}
		if other == nil || where.first != where.last || a.overlap(other, r) {
			return true
		}
	}
	return false
}

// redundant returns the reason why r has no effect. The other rule follows it, has the same effect,
// and matches all of its targets.
func redundant(r, other *rule) reason {
	effect := "denies"
	if r.allows() {
		effect = "allows"
	}
	return reason{id: "redundant-rule", text: fmt.Sprintf("%q has no effect: line %d (%s) %s the same URLs and more", shorten(r.String()), other.Line, shorten(other.String()), effect)}
}

// denies reports whether one of the rules denies something.
func (a *analysis) denies(group *order) bool {
	for _, line := range group.lines {
		if !a.rules[line].allows() {
			return true
		}
	}
	return false
}

// shadowed returns the reason why r never decides. The other rule precedes it and matches all of
// its targets.
func (a *analysis) shadowed(r, other *rule) reason {
	same := r.Pattern == other.Pattern || other.plain && a.matches(r, other.sample)
	by := fmt.Sprintf("line %d (%s)", other.Line, shorten(other.String()))
	switch {
	case same && r.allows() == other.allows():
		return reason{id: "duplicate-rule", text: fmt.Sprintf("%q matches the same URLs as %s", shorten(r.String()), by)}
	case same:
		return reason{id: "contradiction", text: fmt.Sprintf("%q contradicts %s, which decides", shorten(r.String()), by)}
	}
	return reason{id: "shadowed-rule", text: fmt.Sprintf("%q never decides: %s precedes it for each of its URLs", shorten(r.String()), by)}
}

// covers reports whether a rule is known to match each target that r matches.
func (a *analysis) covers(other, r *rule) bool {
	if other.Pattern == r.Pattern {
		return true
	}
	return r.plain && a.matches(other, r.sample)
}

// matches reports whether a rule matches a target.
func (a *analysis) matches(r *rule, target string) bool {
	a.budget -= 32 + len(r.Pattern) + len(target)*(1+strings.Count(r.Pattern, "*")/4)
	return a.budget >= 0 && r.alone.Decide(target).Rule.Line > 0
}

// overlap reports whether a target may exist that both rules match. r must be plain.
func (a *analysis) overlap(other, r *rule) bool {
	if !other.plain {
		head := plainHead(other.Pattern)
		own := plainHead(r.Pattern)
		n := min(len(head), len(own))
		return head[:n] == own[:n]
	}
	a.budget -= 32 + len(other.Pattern)*len(r.Pattern)
	return a.budget < 0 || patternsOverlap(other.Pattern, r.Pattern)
}

// plainHead returns the beginning of a pattern up to the first byte that is special or may be
// escaped.
func plainHead(pattern string) string {
	for i := range len(pattern) {
		if c := pattern[i]; c == '*' || c == '$' || !isPlain(string(c), false) {
			return pattern[:i]
		}
	}
	return pattern
}

// patternsOverlap reports whether a text exists that two plain patterns match.
func patternsOverlap(a, b string) bool {
	a, b = closed(a), closed(b)
	row := make([]bool, len(b)+1) // row[j]: a[:i] and b[:j] can match the same text
	for i := 0; i <= len(a); i++ {
		above := false // row[j-1] of the row before
		for j := 0; j <= len(b); j++ {
			before := row[j]
			here := i == 0 && j == 0
			switch {
			case i > 0 && a[i-1] == '*' && before, j > 0 && b[j-1] == '*' && row[j-1]:
				here = true // the wildcard matches nothing more
			case i > 0 && j > 0 && a[i-1] == '*' && row[j-1]:
				here = true
			case i > 0 && j > 0 && b[j-1] == '*' && before:
				here = true
			case i > 0 && j > 0 && a[i-1] == b[j-1] && above:
				here = true
			}
			above = before
			row[j] = here
		}
	}
	return row[len(b)]
}

// closed returns a pattern without $ that matches whole texts only, with the same meaning.
func closed(pattern string) string {
	if body, anchored := strings.CutSuffix(pattern, "$"); anchored {
		return body
	}
	return pattern + "*"
}
