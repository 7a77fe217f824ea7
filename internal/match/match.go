// Package match finds the rule of a robots.txt that decides about a URL.
//
// A [List] holds the rules for one crawler. [List.Find] returns the most specific rule that matches
// a target, which is the path and query of a URL. A list with few rules compares the target with
// one rule after the other. A list with many rules has an index and compares only a few of them.
//
// Find compares bytes. [Draft.SetPattern] converts patterns, and [Coding.AppendNormal] converts
// targets, to the same normal form.
package match

import (
	"math"
	"slices"
	"strings"
)

// A Rule is an Allow or Disallow line. The zero value, with Line 0, means that there is no rule.
type Rule struct {
	Allow   bool
	Line    uint32 // line number in the file, starting at 1; less than 1<<24
	Pattern string // as it is written in the file
}

// A Draft is a rule for [New].
type Draft struct {
	Rule

	// Text is the normal form of the pattern. Targets are compared with it. It does not end with a
	// wildcard, and no two wildcards are adjacent. It is shorter than 1<<24 bytes.
	Text string
	Kind Kind

	// Rank is the number of bytes that count when rules are compared. It is less than 1<<24. A rule
	// with a rank but without a pattern counts as an Allow.
	Rank uint32

	rewritten bool // Pattern does not begin with Text; set by New
}

// Kind is a set of properties of a rule's text. A text without any of them is literal: it matches
// every target that begins with it.
type Kind uint8

const (
	// Anchored means that the target must end where the text ends.
	Anchored Kind = 1 << iota

	// Wild means that each * in the text is a wildcard. There is at least one.
	Wild

	// TwoForms means that the text consists of two forms of the pattern, separated by a line feed.
	// The pieces of the first form match anywhere in a target. The pieces of the second form match
	// only in its query. Both forms have the same number of wildcards and are equal up to the first
	// wildcard. The text is also Wild.
	TwoForms
)

// A List is an immutable list of rules, in the order of their precedence. The zero value has no
// rules. A List is safe for concurrent use.
type List struct {
	data  string // the rules and the extra text; see packed.go
	index *index // nil if there are few rules
	count uint32 // number of rules
	reach uint16 // the result of Reach; math.MaxUint16 means math.MaxInt
}

// indexFrom is the minimum number of rules of a list with an index. Shorter lists are searched rule
// by rule.
const indexFrom = 24

// New returns a list of rules and an extra text, which [List.Extra] returns. It stores the extra
// text together with the rules, so that a short list needs only one allocation. There must be fewer
// than 1<<20 drafts. New does not retain its arguments.
func New(drafts []Draft, extra string) List {
	for i := range drafts {
		d := &drafts[i]
		d.rewritten = !strings.HasPrefix(d.Pattern, d.Text)
	}
	var space [indexFrom]uint64
	order := appendOrder(slices.Grow(space[:0], len(drafts)), drafts)
	l := List{data: pack(drafts, order, extra), count: uint32(len(drafts))}
	wholeTarget := false
	if l.count >= indexFrom {
		l.index = newIndex(&l)
		wholeTarget = l.index.wilds.any()
	}
	longest := 0 // bytes of the longest head
	for i := range l.count {
		r := l.record(i)
		n := len(l.head(r))
		longest = max(longest, n)
		if l.index == nil && r.flags&wild != 0 && n <= 1 {
			wholeTarget = true // the head rules out hardly any target
		}
	}
	if wholeTarget {
		longest = math.MaxInt
	}
	l.reach = uint16(min(longest, math.MaxUint16-1) + 1)
	return l
}

// appendOrder appends the indexes of the drafts in the order of their precedence: the highest rank
// first, then Allow before Disallow, then the order of the drafts. It sorts integers that combine
// these criteria.
func appendOrder(order []uint64, drafts []Draft) []uint64 {
	const indexBits, rankBits = 20, 24
	for i := range drafts {
		d := &drafts[i]
		key := uint64(1<<rankBits-1-d.Rank) << 1
		if !d.Allow && (d.Pattern != "" || d.Rank == 0) {
			key |= 1
		}
		order = append(order, key<<indexBits|uint64(i))
	}
	slices.Sort(order)
	for i := range order {
		order[i] &= 1<<indexBits - 1
	}
	return order
}

// Len returns the number of rules.
func (l *List) Len() int { return int(l.count) }

// Rule returns the i-th rule. Rules that precede others have smaller numbers, from 0 to Len-1.
func (l *List) Rule(i int) Rule { return l.rule(uint32(i)) }

// Reach returns how many bytes of a target must be in normal form before [List.Find] is called. It
// is at least the size of the longest text up to the first wildcard, and one more byte, because a
// fragment may begin there.
func (l *List) Reach() int {
	if l.reach == math.MaxUint16 {
		return math.MaxInt
	}
	return int(l.reach)
}

// Find returns the rule that decides about a target, or the zero Rule if no rule matches. The
// target must begin with a slash. normal is the number of bytes at its beginning that are known to
// be in normal form. It must be at least Reach, or the length of the target if that is smaller.
//
// If the decision depends on the rest of the target, Find calls isNormal with it. If isNormal
// returns false, Find returns false, and the caller must convert the target to normal form.
func (l *List) Find(target string, normal int, isNormal func(rest string) bool) (r Rule, ok bool) {
	if l.index != nil {
		i, ok := l.index.find(l, target, normal, isNormal)
		if !ok || i == l.count {
			return Rule{}, ok
		}
		return l.rule(i), true
	}
	probes := l.probes()
	for p := 0; p+1 < len(probes); p += probeSize {
		if at := int(probes[p]); at >= len(target) || target[at] != probes[p+1] {
			continue
		}
		i := uint32(p / probeSize)
		matched, ok := l.matches(i, target, normal, isNormal)
		if !ok {
			return Rule{}, false
		}
		if matched {
			return l.rule(i), true
		}
	}
	return Rule{}, true
}

// matches reports whether the i-th rule matches a target. Like Find, it returns false for ok if it
// cannot decide.
func (l *List) matches(i uint32, target string, normal int, isNormal func(rest string) bool) (matched, ok bool) {
	r := l.record(i)
	text := l.text(r)
	toEnd := r.flags&anchored != 0
	if r.flags&wild == 0 {
		return strings.HasPrefix(target, text) && (!toEnd || len(target) == len(text)), true
	}
	star := 0 // offset of the first wildcard
	for text[star] != '*' {
		if star >= len(target) || target[star] != text[star] {
			return false, true
		}
		star++
	}
	switch {
	case normal < len(target) && !isNormal(target[normal:]):
		return false, false
	case r.flags&twoForms != 0:
		return matchTwoForms(text, target, star, toEnd), true
	}
	return matchWild(text[star+1:], target[star:], toEnd), true
}
