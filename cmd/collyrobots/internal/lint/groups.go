package lint

import (
	"fmt"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A reading is the file as one dialect reads it.
type reading struct {
	dialect dialect.Dialect
	rules   *dialect.Rules
	groups  []*group // first the group of crawlers that the file does not name
	partial bool     // the file has too many names to find all groups
}

// A group has the rules for some crawlers.
type group struct {
	crawler string // one of the crawlers; "" if the file does not name it
	group   *dialect.Group
	rules   []dialect.Rule // in the order of precedence
}

// read parses the file and finds its groups.
func (l *linter) read(d dialect.Dialect) *reading {
	r := &reading{dialect: d, rules: d.Parse(l.body)}
	seen := make(map[string]bool)
	for _, name := range append([]string{""}, l.crawlers(false)...) {
		g := l.groupOf(r, name)
		if g == nil {
			r.partial = true
			break
		}
		signature := g.group.Name() + "\n" + fmt.Sprint(linesOfRules(g.rules))
		if namesParts(d) && name == "" {
			signature += "unnamed" // everyCrawler does not apply to these crawlers
		}
		if d == dialect.Temoto() || !seen[signature] {
			seen[signature] = true
			r.groups = append(r.groups, g)
		}
	}
	return r
}

// groupOf returns the group for a crawler. If crawler is empty, it returns the group for crawlers
// that the file does not name. It returns nil if the budget is used up.
func (l *linter) groupOf(r *reading, crawler string) *group {
	cost := len(l.lines) * (16 + len(crawler))
	if r.dialect == dialect.Temoto() {
		cost = len(l.lines) * len(l.lines) // it compares each name with each group
	}
	l.budget -= cost
	if l.budget < 0 {
		return nil
	}
	var tokens []string
	if crawler != "" {
		tokens = []string{crawler}
	}
	g := r.rules.Group(tokens...)
	return &group{crawler: crawler, group: g, rules: g.Rules()}
}

// linesOfRules returns the line numbers of rules.
func linesOfRules(rules []dialect.Rule) []int {
	lines := make([]int, len(rules))
	for i, rule := range rules {
		lines[i] = rule.Line
	}
	return lines
}

// crawlers returns names of crawlers that the file may have groups for. Dialects cut the values of
// User-agent lines at different places, so each value may give several names. If asWritten is set,
// names that are cut within a word are omitted.
func (l *linter) crawlers(asWritten bool) (names []string) {
	seen := make(map[string]bool)
	add := func(name string) {
		name = strings.TrimSpace(name)
		if folded := strings.ToLower(name); name != "" && name != "*" && !seen[folded] {
			seen[folded] = true
			names = append(names, name)
		}
	}
	for _, line := range l.lines {
		if !strings.Contains(line.key, "user") { // some dialects accept misspelt keys
			continue
		}
		words := strings.FieldsFunc(line.value, func(c rune) bool { return c == ' ' || c == '\t' })
		for _, word := range append(words, line.value) {
			name, _, _ := strings.Cut(word, "/")
			add(name)
			end := strings.IndexFunc(name, func(c rune) bool { return !isTokenByte(c) })
			if end >= 0 && !asWritten {
				add(name[:end])
			}
		}
	}
	return names
}

// isTokenByte reports whether a product token may have c (RFC 9309 2.2, identifier).
func isTokenByte(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
}

// namesParts reports whether, in a dialect, a name in a robots.txt applies to every crawler with a
// name that contains it.
func namesParts(d dialect.Dialect) bool {
	return d == dialect.Original1994() || d == dialect.Seznam()
}

// everyCrawler returns the group of a crawler with a name that contains all names in the file. It
// returns nil if namesParts is false for the dialect.
func (l *linter) everyCrawler(r *reading) *group {
	if !namesParts(r.dialect) {
		return nil
	}
	g := l.groupOf(r, strings.Join(l.crawlers(false), "|"))
	r.partial = r.partial || g == nil
	return g
}

// Crawlers returns the names in the User-agent lines of a robots.txt, without *.
func Crawlers(body []byte) []string {
	l := &linter{lines: linesOf(body)}
	return l.crawlers(true)
}
