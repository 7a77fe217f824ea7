package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Issue is something in a robots.txt that a dialect may read in another way
// than its author thinks.
type Issue struct {
	Line    int // in the file, from 1; 0: the file as a whole
	Problem Problem
	Detail  string // the key, the value or the line it is about
}

// String returns the issue as one line: "line 3: unknown key, line ignored:
// Noindex".
func (i Issue) String() string {
	s := i.Problem.String()
	if i.Line > 0 {
		s = fmt.Sprintf("line %d: %s", i.Line, s)
	}
	if i.Detail != "" {
		s += ": " + i.Detail
	}
	return s
}

// A Problem is a kind of Issue. It prints as what is wrong and what became of
// it.
type Problem uint8

// The problems that [Dialect.Lint] reports.
const (
	noProblem        Problem = iota
	NoColon                  // not a key and a value
	UnknownKey               // a key that no dialect knows
	Unsupported              // a key that this dialect does not know
	TypoIgnored              // a misspelt key
	TypoAccepted             // a misspelt key that is accepted
	ColonAdded               // two words read as a key and a value
	OrphanRule               // a line of a group, before any User-agent line
	NamesNobody              // a User-agent value that names no product token
	NameCut                  // a User-agent value that has more than a product token
	NoSlash                  // a pattern that begins with neither / nor *
	EmptyAllow               // an Allow without a pattern
	PlainWildcard            // * or $ where they are not special
	BadDelay                 // a Crawl-delay that is not a number of seconds
	DelayRead                // a Crawl-delay that is read as another number
	BadSitemap               // a Sitemap that is not a URL, or not an absolute URL where it must be one
	RelativeSitemap          // a Sitemap that is a relative URL
	NoDisallow               // a record without a Disallow
	LineCut                  // a line with a NUL or of extreme length
	NotUTF8                  // bytes that are not UTF-8
	UTF16                    // the file is in UTF-16
	FileCut                  // the file is too large
	UnsortedQuery            // a query in an order that never matches
	FileRefused              // a line for which the whole file is refused
	GroupContinues           // a User-agent line that a blank line or a Crawl-delay does not keep from the group above
	numberOfProblems         // must be the last
)

var problemTexts = [numberOfProblems]string{
	noProblem:       "no problem",
	NoColon:         "no key and colon, line ignored",
	UnknownKey:      "unknown key, line ignored",
	Unsupported:     "key not supported by this dialect, line ignored",
	TypoIgnored:     "misspelt key, line ignored",
	TypoAccepted:    "misspelt key, accepted",
	ColonAdded:      "missing colon, accepted",
	OrphanRule:      "no User-agent line before it, line ignored",
	NamesNobody:     "names no product token",
	NameCut:         "only the beginning of the name, letters, _ and -, is compared",
	NoSlash:         "pattern begins with neither / nor *, never matches",
	EmptyAllow:      "no pattern, allows nothing",
	PlainWildcard:   "* and $ stand for themselves in this dialect",
	BadDelay:        "not a number of seconds, value ignored",
	DelayRead:       "delay read as another number of seconds",
	BadSitemap:      "not an absolute URL",
	RelativeSitemap: "relative URL, resolved against this file's",
	NoDisallow:      "record without a Disallow, ignored",
	LineCut:         "NUL or extreme length, rest of the line ignored",
	NotUTF8:         "not UTF-8, octets are compared as they stand",
	UTF16:           "file is UTF-16, not UTF-8, nothing is understood",
	FileCut:         "file is larger than 500 KiB, rest and cut line ignored",
	UnsortedQuery:   "query not in alphabetical order, never matches",
	FileRefused:     "whole file refused, every visit fails",
	GroupContinues:  "same group as the User-agent lines above, in spite of the blank line or Crawl-delay between",
}

// String returns what is wrong and what became of it.
func (p Problem) String() string {
	if p >= numberOfProblems {
		return fmt.Sprintf("problem %d", uint8(p))
	}
	return problemTexts[p]
}

// Lint reports what the dialect ignores or corrects in a robots.txt file, or
// reads in a way that its author may not expect, in the order of the lines. It
// reads the file as [Dialect.Parse] does; it returns nil for a file without
// issues.
func (d Dialect) Lint(body []byte) []Issue {
	if d == Temoto() {
		return lintTemoto(body)
	}
	l := &linter{parser: parser{v: d.variant()}}
	if len(body) >= 2 && (body[0] == 0xFF && body[1] == 0xFE || body[0] == 0xFE && body[1] == 0xFF) {
		return []Issue{{Problem: UTF16}}
	}
	l.lint(string(clip(body)))
	if len(body) > SizeLimit {
		l.report(0, FileCut, fmt.Sprintf("%d octets", len(body)))
	}
	slices.SortStableFunc(l.issues, func(a, b Issue) int { return a.Line - b.Line })
	return l.issues
}

// A linter parses a file and reports the lines that a dialect ignores, corrects
// or reads in an unexpected way.
type linter struct {
	parser
	issues []Issue
	run    bool // the next User-agent line is in the group of the one before
	gap    bool // a blank line or a Crawl-delay has followed that one
}

func (l *linter) report(line uint32, p Problem, detail string) {
	if p != noProblem {
		l.issues = append(l.issues, Issue{int(line), p, strings.Clone(detail)})
	}
}

func (l *linter) lint(text string) {
	rest := skipMark(text, l.v.lenient)
	bareCR := hasBareCR(rest)
	for n := uint32(1); rest != ""; n++ {
		var line string
		line, rest = nextLine(rest, bareCR)
		l.lintLine(line, n)
	}
	l.lintRecord(l.endRecord())
}

// lintLine reports the problems of one line.
func (l *linter) lintLine(line string, n uint32) {
	if said, _, _ := strings.Cut(line, "#"); l.v.lenient && len(said) > len(cutLenient(line)) {
		l.report(n, LineCut, "")
	}
	k, from, to := l.v.parseLine(line)
	if k == otherLine {
		if trimLeft(line) == "" {
			l.lintRecord(l.endRecord())
			l.run = l.run && !l.v.records
			l.gap = true
		}
		l.report(n, problemOfOther(line), keyOf(line))
		return
	}
	l.report(n, problemOfSpelling(line), keyOf(line))
	value := line[from:to]
	if !utf8.ValidString(value) {
		l.report(n, NotUTF8, value)
	}
	problem := l.add(record{line: n, kind: k}, value)
	switch {
	case k == delayLine && l.v.delay == noDelay:
		problem = Unsupported
	case problem == noProblem:
		problem = l.v.problemOfValue(k, value)
	}
	if problem == OrphanRule || problem == Unsupported {
		value = keyOf(line)
	}
	l.report(n, problem, value)
	l.lintRun(k, value, n)
}

// lintRun reports a User-agent line that belongs to the group above although it
// is apart from it. Authors often mean another group.
func (l *linter) lintRun(k kind, value string, n uint32) {
	switch k {
	case agentLine:
		if l.run && l.gap {
			l.report(n, GroupContinues, value)
		}
		l.run = true
		l.gap = false
	case delayLine:
		l.run = l.run && !l.v.delayEndsRun
		l.gap = true
	case allowLine:
		l.run = l.run && l.v.records // there it is an unknown line
	case disallowLine:
		l.run = false
	}
}

// lintRecord reports a record of 1994 that did not count.
func (l *linter) lintRecord(dropped []record) {
	if len(dropped) > 0 {
		l.report(dropped[0].line, NoDisallow, "")
	}
}

// problemOfOther returns why a line says nothing.
func problemOfOther(line string) Problem {
	line, _, _ = strings.Cut(line, "#")
	if trimLeftSpace(line) == "" {
		return noProblem
	}
	at, separator := splitLenient(line)
	k, _ := cutKey(trimLeftSpace(line), googleKeys)
	switch {
	case separator != ':':
		return NoColon
	case k == otherLine || trimRightSpace(trimLeftSpace(line[:at])) == "":
		return UnknownKey
	}
	return TypoIgnored
}

// problemOfSpelling returns what was wrong with the key of a line that was
// read.
func problemOfSpelling(line string) Problem {
	if k, _, _ := variants[rfc9309].parseLine(line); k != otherLine {
		return noProblem
	}
	if _, separator := splitLenient(cutLenient(line)); separator == ' ' {
		return ColonAdded
	}
	return TypoAccepted
}

// problemOfValue returns what is wrong with the value of a line that counts.
func (v *variant) problemOfValue(k kind, value string) Problem {
	switch k {
	case agentLine:
		return v.problemOfName(value)
	case allowLine, disallowLine:
		return v.problemOfPattern(k, value)
	case delayLine:
		written := parseDelay(value)
		read, ok := v.delay.read(written)
		switch {
		case !ok:
			return BadDelay
		case read != written:
			return DelayRead
		}
	case sitemapLine:
		if !isAbsolute(value) {
			return RelativeSitemap
		}
	}
	return noProblem
}

// problemOfName returns what is wrong with a User-agent value.
func (v *variant) problemOfName(value string) Problem {
	switch n := tokenLen(value); {
	case value == "*":
	case value == "":
		return NamesNobody
	case v.naming == wholeToken && n < len(value):
		return NamesNobody
	case v.naming == tokenPrefix && n == 0 && (value[0] != '*' || !isSpace(value[1])):
		return NamesNobody
	case v.naming == tokenPrefix && n < len(value):
		return NameCut
	case v.naming == hyphenParents && strings.ContainsAny(value, " \t"):
		return NamesNobody
	}
	return noProblem
}

// problemOfPattern returns what is wrong with the pattern of a rule.
func (v *variant) problemOfPattern(k kind, p string) Problem {
	switch {
	case p == "" && k == allowLine:
		return EmptyAllow
	case p == "":
	case p[0] != '/' && (v.plain || p[0] != '*'):
		return NoSlash
	case v.plain && strings.ContainsAny(p, "*$"):
		return PlainWildcard
	}
	return noProblem
}

// keyOf returns what stands before the colon of a line, or the line.
func keyOf(line string) string {
	line, _, _ = strings.Cut(line, ":")
	return trimRightSpace(trimLeftSpace(line))
}
