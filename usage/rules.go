package usage

import (
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/internal/match"
)

// A rule is what a Content-Usage or a Content-Signal line of a robots.txt says.
type rule struct {
	preferences Preferences
	use         Use
}

// A line is a Content-Usage or a Content-Signal line of a robots.txt.
type line struct {
	path string // the path pattern as written; "" if the line applies to all paths
	rule
}

// cutPath cuts the path pattern off the value of a line: the text after the colon, without a
// comment. The value has a pattern if it begins with a slash, and the pattern ends at the first
// blank or tab (draft-ietf-aipref-attach-05, "Processing Content-Usage Rules"; contentsignals.org,
// "Advanced usage").
func cutPath(value string) (path, list string) {
	value = strings.Trim(value, " \t\r\n")
	if !strings.HasPrefix(value, "/") {
		return "", value
	}
	end := strings.IndexAny(value, " \t")
	if end < 0 {
		return value, ""
	}
	return value[:end], strings.Trim(value[end:], " \t")
}

// stronger returns a rule with the more restrictive statements of x and y.
func (x rule) stronger(y rule) rule {
	x.preferences = x.preferences.Combine(y.preferences)
	x.use = narrower(x.use, y.use)
	return x
}

// rules has the lines of a robots.txt with one key. The line with the longest path pattern that
// matches decides. If several have this length, the most restrictive one decides.
type rules struct {
	everywhere rule       // all lines without a path
	paths      *pathRules // nil if no line has a path
}

// newRules returns the rules of some lines, or nil if there are none.
func newRules(lines []line) *rules {
	if len(lines) == 0 {
		return nil
	}
	r := &rules{}
	var withPath []line
	for _, l := range lines {
		if l.path == "" {
			r.everywhere = r.everywhere.stronger(l.rule)
		} else {
			withPath = append(withPath, l)
		}
	}
	if withPath != nil {
		r.paths = newPathRules(withPath, r.everywhere)
	}
	return r
}

// of returns what the lines say together about a target in normal form. r may be nil.
func (r *rules) of(target string) rule {
	if r == nil {
		return rule{}
	}
	decides := r.everywhere
	if r.paths == nil {
		return decides
	}
	if x := r.paths.find(&r.paths.search, target); x != nil {
		decides.preferences.Search = x.preferences.Search
	}
	if x := r.paths.find(&r.paths.aiUse, target); x != nil {
		decides.preferences.AIUse = x.preferences.AIUse
	}
	if x := r.paths.find(&r.paths.trainAI, target); x != nil {
		decides.preferences.TrainAI = x.preferences.TrainAI
	}
	if x := r.paths.find(&r.paths.use, target); x != nil {
		decides.use = x.use
	}
	return decides
}

// pathRules finds the rule with a path that decides about a target. This may be another rule for
// each of the uses, because the most restrictive of several rules with the same length may be
// another one. So each use has a list. The list of a use that is never mentioned is empty.
type pathRules struct {
	rules   []rule // in the order of the file
	search  match.List
	aiUse   match.List
	trainAI match.List
	use     match.List // for the key use of Content-Signal
}

// newPathRules returns the rules of lines with a path. everywhere is the rule for other targets.
func newPathRules(lines []line, everywhere rule) *pathRules {
	p := &pathRules{rules: make([]rule, len(lines))}
	for i := range lines {
		p.rules[i] = lines[i].rule
	}
	p.search = inOrder(lines, everywhere, func(r rule) int { return int(r.preferences.Search.Preference) })
	p.aiUse = inOrder(lines, everywhere, func(r rule) int { return int(r.preferences.AIUse.Preference) })
	p.trainAI = inOrder(lines, everywhere, func(r rule) int { return int(r.preferences.TrainAI.Preference) })
	p.use = inOrder(lines, everywhere, func(r rule) int { return r.use.strength() })
	return p
}

// inOrder returns the patterns of lines as a list in which, if patterns have the same length, a
// stronger rule precedes a weaker one. The strength of a rule that says nothing is 0. If all
// strengths are 0, which includes that of everywhere, the list is empty.
func inOrder(lines []line, everywhere rule, strength func(rule) int) match.List {
	order := make([]int, len(lines))
	mentioned := strength(everywhere) > 0
	for i := range order {
		order[i] = i
		mentioned = mentioned || strength(lines[i].rule) > 0
	}
	if !mentioned {
		return match.List{}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strength(lines[b].rule) - strength(lines[a].rule) })
	var drafts []match.Draft
	for _, i := range order {
		drafts = appendDrafts(drafts, i, lines[i].path)
	}
	return match.New(drafts, "")
}

// find returns the rule in a list that decides about a target, or nil if there is none.
func (p *pathRules) find(l *match.List, target string) *rule {
	if i, ok := find(l, target); ok {
		return &p.rules[i]
	}
	return nil
}

// Sizes in bytes for estimates of memory.
const (
	robotsSize = 400 // a RobotsTxt without rules that have a path
	ruleSize   = 200 // a rule with a path or a license, without its text
	draftSize  = 40  // a rule in a match.List, without its text
)

// size returns the estimated size of the rules with a path in memory, in bytes. r may be nil.
func (r *rules) size() int {
	if r == nil || r.paths == nil {
		return 0
	}
	p := r.paths
	size := ruleSize * len(p.rules)
	for _, l := range []*match.List{&p.search, &p.aiUse, &p.trainAI, &p.use} {
		for i := range l.Len() {
			size += draftSize + 2*len(l.Rule(i).Pattern)
		}
	}
	return size
}

// appendDrafts adds drafts of the i-th pattern, which begins with a slash. Their line is i+1.
func appendDrafts(drafts []match.Draft, i int, pattern string) []match.Draft {
	d := match.Draft{Rule: match.Rule{Allow: true, Line: uint32(i + 1), Pattern: pattern}}
	escaped := d
	d.SetPattern(nil, pattern, match.Canonical)
	drafts = append(drafts, d)
	if !match.HasNormalEscapes(pattern, false) {
		escaped.SetPattern(nil, string(match.AppendEscapes(nil, pattern)), match.Canonical) // as normal writes it
		drafts = append(drafts, escaped)
	}
	return drafts
}

// find returns the number of the pattern that decides about a target in normal form.
func find(l *match.List, target string) (i int, ok bool) {
	r, _ := l.Find(target, len(target), nil)
	return int(r.Line) - 1, r.Line > 0
}

// Target returns the part of a URL that patterns apply to: its path and its query.
func Target(u *url.URL) string {
	target := u.EscapedPath()
	if target == "" {
		target = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		target += "?" + u.RawQuery
	}
	return target
}

// normal returns a target in the form in which patterns are compared with it.
func normal(target string) string {
	if match.IsCanonical(target) && strings.HasPrefix(target, "/") {
		return target
	}
	return string(match.Canonical.AppendNormal(nil, string(match.AppendEscapes(nil, target))))
}
