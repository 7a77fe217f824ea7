package dialect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Issue is a part of a robots.txt that a dialect may interpret in another way than its author
// intended.
type Issue struct {
	Line    int // line number in the file, starting at 1; 0 if the issue is about the whole file
	Problem Problem
	Detail  string // the key, the value or the line that has the problem
}

// String returns the issue as one line, such as "line 3: unknown key, line ignored: Noindex".
func (i Issue) String() string {
	s := i.Problem.Text()
	if i.Line > 0 {
		s = fmt.Sprintf("line %d: %s", i.Line, s)
	}
	if i.Detail != "" {
		s += ": " + i.Detail
	}
	return s
}

// A Problem is a kind of Issue. Its value is the ID that "collyrobots lint" prints for the problem, and
// does not change in later versions.
type Problem string

// The problems that [Dialect.Lint] reports.
const (
	NoColon         Problem = "no-colon"              // a line without a key and a colon
	UnknownKey      Problem = "unknown-key"           // a key that no dialect knows
	Unsupported     Problem = "unsupported-key"       // a key that this dialect does not know
	ValueIgnored    Problem = "ignored-value"         // a key that this dialect does not support, in a line that still belongs to a record
	TypoIgnored     Problem = "misspelt-key"          // a misspelt key
	TypoAccepted    Problem = "misspelt-key-accepted" // a misspelt key that is accepted
	ColonAdded      Problem = "colon-added"           // two words read as a key and a value
	OrphanRule      Problem = "rule-before-group"     // a line that belongs in a group, before any User-agent line
	NoToken         Problem = "bad-user-agent"        // a User-agent value that is not a product token
	NameCut         Problem = "user-agent-cut"        // a User-agent value with more text than a product token
	NoSlash         Problem = "pattern-no-slash"      // a pattern that begins with neither / nor *
	EmptyAllow      Problem = "empty-allow"           // an Allow without a pattern
	PlainWildcard   Problem = "literal-wildcard"      // * or $ in a dialect that gives them no special meaning
	BadDelay        Problem = "bad-crawl-delay"       // a Crawl-delay that is not a number of seconds
	DelayRead       Problem = "changed-crawl-delay"   // a Crawl-delay that the dialect changes to another number
	BadSitemap      Problem = "bad-sitemap"           // a Sitemap without a URL, or without an absolute URL in a dialect that requires one
	RelativeSitemap Problem = "relative-sitemap"      // a Sitemap that is a relative URL
	NoDisallow      Problem = "record-without-rule"   // a record without a Disallow or another rule
	LineCut         Problem = "line-cut"              // a line that has a NUL or is too long
	NotUTF8         Problem = "not-utf8"              // bytes that are not UTF-8
	UTF16           Problem = "utf16"                 // the file is in UTF-16
	FileCut         Problem = "file-cut"              // the file is too large
	UnsortedQuery   Problem = "unsorted-query"        // a query in an order that never matches
	FileRefused     Problem = "file-refused"          // a line that makes the dialect refuse the whole file
	GroupContinues  Problem = "group-continues"       // a User-agent line in the same group as those above a blank line or a Crawl-delay
	GroupEnded      Problem = "group-ended"           // a User-agent line that begins a group, although the names above it have no rules
	BadRate         Problem = "bad-request-rate"      // a Request-rate that is not a rate
	BadVisit        Problem = "bad-visit-time"        // a Visit-time that is not a window
	BadCleanParam   Problem = "bad-clean-param"       // a Clean-param that is not a list of parameters and a path
	LongRule        Problem = "pattern-too-long"      // a pattern that is too long for the dialect
	TooManyRules    Problem = "too-many-rules"        // the file has too many rules for the dialect
	FileOpen        Problem = "file-too-large"        // the file is too large for the dialect, so it restricts nothing
	StarAgain       Problem = "second-star-group"     // a second group of * in a dialect that permits only one
)

const noProblem Problem = ""

var problemTexts = map[Problem]string{
	NoColon:         "no key and colon, line ignored",
	UnknownKey:      "unknown key, line ignored",
	Unsupported:     "key not supported by this dialect, line ignored",
	ValueIgnored:    "key not supported by this dialect, value ignored",
	TypoIgnored:     "misspelt key, line ignored",
	TypoAccepted:    "misspelt key, accepted",
	ColonAdded:      "missing colon, accepted",
	OrphanRule:      "no User-agent line before it, line ignored",
	NoToken:         "names no product token",
	NameCut:         "only the letters, _ and - at the beginning of the name are compared",
	NoSlash:         "pattern begins with neither / nor *, never matches",
	EmptyAllow:      "no pattern, allows nothing",
	PlainWildcard:   "* and $ stand for themselves in this dialect",
	BadDelay:        "not a number of seconds, value ignored",
	DelayRead:       "changed to another number of seconds",
	BadSitemap:      "not an absolute URL",
	RelativeSitemap: "relative URL, resolved against the URL of this file",
	NoDisallow:      "record without a rule, ignored",
	LineCut:         "line has a NUL or is too long, rest of the line ignored",
	NotUTF8:         "not UTF-8, bytes are compared unchanged",
	UTF16:           "file is in UTF-16 instead of UTF-8, all lines ignored",
	FileCut:         "file is larger than 500 KiB, rest and cut line ignored",
	UnsortedQuery:   "query not in alphabetical order, never matches",
	FileRefused:     "whole file refused, every visit fails",
	GroupContinues:  "same group as the User-agent lines above, despite the blank line or Crawl-delay between them",
	GroupEnded:      "another group than the User-agent lines above, which have no rules, because of a line between them",
	BadRate:         "not a rate such as 10/1m or 10/1m 0600-1459, value ignored",
	BadVisit:        "not a window such as 0600-0845, value ignored",
	BadCleanParam:   "not a list of parameters and a path, line ignored",
	LongRule:        "pattern has more than 1024 characters, never matches",
	TooManyRules:    "file has more than 2048 rules, everything is allowed",
	FileOpen:        "file is larger than 500 KiB, everything is allowed",
	StarAgain:       "another group of *, combined with the first",
}

// Text returns a description of the problem and of its effect, such as "misspelt key, line ignored". It
// returns "" for a Problem that Lint does not report.
func (p Problem) Text() string { return problemTexts[p] }

// Lint parses a robots.txt file like [Dialect.Parse] and reports the lines that the dialect
// ignores, corrects, or interprets in a way that their author may not expect. The issues are in the
// order of the lines. If there are none, Lint returns nil.
func (d Dialect) Lint(body []byte) []Issue {
	if d == Temoto() {
		return lintTemoto(body)
	}
	l := &linter{parser: parser{v: d.variant()}}
	if hasMarkUTF16(body) && len(d.Parse(body).records) == 0 {
		return []Issue{{Problem: UTF16}}
	}
	l.lint(string(clip(body)))
	l.lintSize(len(body))
	slices.SortStableFunc(l.issues, func(a, b Issue) int { return a.Line - b.Line })
	return l.issues
}

// hasMarkUTF16 reports whether a file begins with a byte order mark of UTF-16 and has a NUL, which
// is a part of each ASCII character in UTF-16.
func hasMarkUTF16(body []byte) bool {
	marked := bytes.HasPrefix(body, []byte{0xFF, 0xFE}) || bytes.HasPrefix(body, []byte{0xFE, 0xFF})
	return marked && bytes.IndexByte(body, 0) >= 0
}

// lintSize reports a file of n bytes that exceeds a limit.
func (l *linter) lintSize(n int) {
	switch {
	case n > SizeLimit && l.v.limited:
		l.report(0, FileOpen, fmt.Sprintf("%d bytes", n))
	case n > SizeLimit:
		l.report(0, FileCut, fmt.Sprintf("%d bytes", n))
	case l.v.limited && l.rules > maxRules:
		l.report(0, TooManyRules, fmt.Sprintf("%d rules", l.rules))
	}
}

// A linter parses a file and reports the lines that a dialect ignores, corrects
// or reads in an unexpected way.
type linter struct {
	parser
	issues []Issue
	run    bool // a User-agent line would belong to the same group as the previous User-agent line
	gap    bool // a blank line or a Crawl-delay has followed that previous line
	broken bool // breaksRun was true for a line after the previous User-agent line, before any rule
	star   bool // there has been a User-agent line with *
}

func (l *linter) report(line uint32, p Problem, detail string) {
	if p != noProblem {
		l.issues = append(l.issues, Issue{Line: int(line), Problem: p, Detail: strings.Clone(detail)})
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
	if l.v.shortRuns && l.inRun && breaksRun(k, line) {
		l.inRun = false
		l.run = false
		l.broken = true
	}
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
	case k == delayLine && l.v.delay == noDelay, k == rateLine && !l.v.rates, k == visitLine:
		problem = l.v.problemOfUnsupported(k, value)
	case problem == noProblem:
		problem = l.v.problemOfValue(k, value)
	}
	if problem == OrphanRule || problem == Unsupported || problem == ValueIgnored {
		value = keyOf(line)
	}
	l.report(n, problem, value)
	l.lintRun(k, value, n)
}

// lintRun reports a User-agent line that belongs to the group above although a blank line or a
// Crawl-delay separates them. Authors often intend another group. It also reports a User-agent line
// that does not belong to the group above although that group has no rules.
func (l *linter) lintRun(k kind, value string, n uint32) {
	switch k {
	case agentLine:
		if l.run && l.gap {
			l.report(n, GroupContinues, value)
		}
		if l.broken {
			l.report(n, GroupEnded, value)
		}
		l.broken = false
		l.run = true
		l.gap = false
		if value == "*" && l.star && l.v.limited {
			l.report(n, StarAgain, "")
		}
		l.star = l.star || value == "*"
	case rateLine, visitLine:
		l.run = l.run && !l.v.rates
	case delayLine:
		l.run = l.run && !l.v.delayEndsRun
		l.gap = true
	case allowLine:
		l.run = l.run && l.v.onlyDisallow // where Allow is an unknown key
		l.broken = false
	case disallowLine:
		l.run = false
		l.broken = false
	}
}

// lintRecord reports a record of 1994 that was ignored because it has no rule. dropped is its first
// line, or 0 if no record was ignored.
func (l *linter) lintRecord(dropped uint32) {
	if dropped > 0 {
		l.report(dropped, NoDisallow, "")
	}
}

// problemOfOther returns the reason why a line has no meaning.
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

// problemOfSpelling returns the problem with the key of a line that was accepted.
func problemOfSpelling(line string) Problem {
	if k, _, _ := variants[rfc9309].parseLine(line); k != otherLine {
		return noProblem
	}
	if _, separator := splitLenient(cutLenient(line)); separator == ' ' {
		return ColonAdded
	}
	return TypoAccepted
}

// problemOfValue returns the problem with the value of a line that was accepted.
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
	case rateLine:
		if _, ok := parseRate(value); !ok {
			return BadRate
		}
	}
	return noProblem
}

// problemOfUnsupported returns the problem with a line that the dialect does not support. If the
// dialect ignores Request-rate and Visit-time, a crawler may obey them anyway.
func (v *variant) problemOfUnsupported(k kind, value string) Problem {
	if _, ok := parseRate(value); k == rateLine && !ok {
		return BadRate
	}
	if _, ok := parseWindow(value); k == visitLine && !ok {
		return BadVisit
	}
	if v.endsRun(k) {
		return ValueIgnored
	}
	return Unsupported
}

// problemOfName returns the problem with a User-agent value.
func (v *variant) problemOfName(value string) Problem {
	switch n := tokenLen(value); {
	case value == "*":
	case value == "":
		return NoToken
	case v.naming == wholeToken && n < len(value):
		return NoToken
	case v.naming == tokenPrefix && n == 0 && (value[0] != '*' || !isSpace(value[1])):
		return NoToken
	case v.naming == tokenPrefix && n < len(value):
		return NameCut
	case v.naming == hyphenParents && strings.ContainsAny(value, " \t"):
		return NoToken
	}
	return noProblem
}

// problemOfPattern returns the problem with the pattern of a rule.
func (v *variant) problemOfPattern(k kind, p string) Problem {
	switch {
	case p == "" && k == allowLine:
		return EmptyAllow
	case p == "":
	case p[0] != '/' && (v.plain || p[0] != '*'):
		return NoSlash
	case v.limited && isTooLong(p):
		return LongRule
	case v.plain && strings.ContainsAny(p, "*$"):
		return PlainWildcard
	}
	return noProblem
}

// keyOf returns the text before the colon of a line, or the whole line if it has no colon.
func keyOf(line string) string {
	line, _, _ = strings.Cut(line, ":")
	return trimRightSpace(trimLeftSpace(line))
}
