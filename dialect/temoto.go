package dialect

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

// temotoRules is a file as temoto/robotstxt parses it.
type temotoRules struct {
	data   *robotstxt.RobotsData // nil if temoto refused the file
	agents []string              // the User-agent values, for Group.Name
	usage  *Rules                // the file as RFC9309 parses it; nil if it has no lines about the use of content
	wild   int                   // total size of the patterns with wildcards in bytes
}

// temotoGroup makes the decisions for one User-Agent header.
type temotoGroup struct {
	group *robotstxt.Group // if nil, everything is denied
	name  string
	wild  int           // temotoRules.wild
	delay time.Duration // as written; negative if there is none
}

// maxTemotoWork limits the size of the wildcard patterns multiplied by the size of the target, in
// bytes. Temoto matches a wildcard as a regular expression, which takes up to 25 ns for each pair
// of bytes, so a decision takes less than a second. Real files are far below the limit: of 194
// files, the one with the most wildcards has 4 KB of such patterns.
const maxTemotoWork = 1 << 25

// parseTemoto parses the body of a response like Colly. If temoto refuses the file, Colly fails
// every visit. temotoRules.data is then nil.
func parseTemoto(body []byte) *Rules {
	t := &temotoRules{}
	if data, err := robotstxt.FromBytes(body); err == nil {
		t.data = data
		usage := false
		t.agents, t.wild, usage = scanTemoto(string(body))
		if usage {
			t.usage = RFC9309().Parse(body)
		}
	}
	return &Rules{dialect: Temoto(), temoto: t}
}

// scanTemoto returns the User-agent values of a file and the total size of its patterns with
// wildcards. It reports whether the file may have lines about the use of content.
func scanTemoto(text string) (agents []string, wild int, usage bool) {
	text = skipMark(text, false)
	for bareCR := hasBareCR(text); text != ""; {
		var line string
		line, text = nextLine(text, bareCR)
		k, from, to := parseLenientLine(line)
		value := line[from:to]
		switch k {
		case agentLine:
			agents = append(agents, strings.Clone(value))
		case allowLine, disallowLine:
			if strings.ContainsAny(strings.TrimRight(value, "*"), "*$") {
				wild += len(value)
			}
		case usageLine, signalLine, licenseLine:
			usage = true
		}
	}
	return agents, wild, usage
}

// sitemaps returns the values of the Sitemap lines without white space around them. For a line
// without a value, temoto returns a line feed, which sitemaps omits.
func (t *temotoRules) sitemaps() (list []string) {
	if t.data == nil {
		return nil
	}
	for _, value := range t.data.Sitemaps {
		value = strings.TrimSpace(value)
		if value != "" {
			list = append(list, value)
		}
	}
	return list
}

// group returns the group for the User-Agent header, which is the first token.
func (t *temotoRules) group(tokens []string) *Group {
	g := &Group{dialect: Temoto(), temoto: &temotoGroup{delay: -1}}
	if t.data == nil {
		return g
	}
	found := t.data.FindGroup(strings.Join(tokens[:min(len(tokens), 1)], ""))
	g.temoto.group = found
	g.temoto.name = t.nameOf(found)
	g.temoto.wild = t.wild
	switch {
	case found.CrawlDelay > 0:
		g.temoto.delay = found.CrawlDelay
	case found.CrawlDelay < 0: // temoto refuses negative values, so this is an overflow
		g.temoto.delay = math.MaxInt64
	}
	return g
}

// nameOf returns the User-agent value of a group. temoto stores a group under the first word of its
// value. A value without rules has no group.
func (t *temotoRules) nameOf(found *robotstxt.Group) string {
	names := t.namesOf(found)
	for _, agent := range t.agents {
		if names(agent) {
			return agent
		}
	}
	return ""
}

// namesOf returns a function that reports whether a User-agent value names a group.
func (t *temotoRules) namesOf(found *robotstxt.Group) func(agent string) bool {
	none := t.data.FindGroup("\n") // the group of *, or an empty group; no value contains a line feed
	return func(agent string) bool {
		word, _, _ := strings.Cut(agent, " ")
		own := t.data.FindGroup(word)
		return own == found && (own != none || word == "*")
	}
}

// usageLines is like Rules.UsageLines. The group is the one that temoto finds for the User-Agent
// header, which is the first token.
func (t *temotoRules) usageLines(tokens []string) []UsageLine {
	if t.usage == nil {
		return nil
	}
	found := t.data.FindGroup(strings.Join(tokens[:min(len(tokens), 1)], ""))
	return t.usage.usageLines(t.namesOf(found))
}

// decide decides whether the URL with the given target may be requested.
func (g *temotoGroup) decide(target string) Verdict {
	target, _, _ = strings.Cut(target, "#")
	path, query, _ := strings.Cut(target, "?")
	return g.test(path, query)
}

// decideURL decides whether u may be requested.
func (g *temotoGroup) decideURL(u *url.URL) Verdict {
	return g.test(u.EscapedPath(), u.RawQuery)
}

// test makes the same decision as Colly's checkRobots, which sorts the query and encodes it again.
// In Colly, every path begins with a slash, so test adds a missing one. A target whose decision
// would take too long is denied.
func (g *temotoGroup) test(path, query string) Verdict {
	if g.group == nil {
		return Verdict{}
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	if query != "" {
		values, _ := url.ParseQuery(query) // Colly also ignores the error
		path += "?" + values.Encode()
	}
	if g.wild > maxTemotoWork/len(path) {
		return Verdict{}
	}
	return Verdict{Allowed: g.group.Test(path)}
}

// lintTemoto reports the lines that make temoto refuse a file, and the rules that never match
// because Colly encodes the query again.
func lintTemoto(body []byte) []Issue {
	l := &linter{}
	_, err := robotstxt.FromBytes(body)
	var refused refusals
	text := skipMark(string(body), false)
	bareCR := hasBareCR(text)
	for n := uint32(1); text != ""; n++ {
		line, rest := nextLine(text, bareCR)
		if err != nil && refused.next(line, text, rest) {
			l.report(n, FileRefused, trimRight(trimLeft(line)))
		} else if k, from, to := parseLenientLine(line); (k == allowLine || k == disallowLine) && !isSorted(line[from:to]) {
			l.report(n, UnsortedQuery, line[from:to])
		}
		text = rest
	}
	return l.issues
}

// refusals finds the lines that make temoto refuse a file. The errors of temoto do not contain line
// numbers. But temoto reads tokens in pairs, and no pair extends over two lines, so each line can
// be tested alone. The only fact about earlier lines that matters is whether one of them named an
// agent.
type refusals struct{ named bool }

// next reports whether temoto refuses a line. text begins with that line, and rest is the part of
// text after the line. next must be called for all lines in order.
func (r *refusals) next(line, text, rest string) bool {
	alone := line + "\n;"
	if strings.Trim(rest, "\r\n") == "" {
		alone = text // at the end of the file, a line break is not a token
	}
	if r.named {
		return faultsIn("User-agent: a\n"+alone) > 0
	}
	faults := faultsIn(alone)
	r.named = faultsIn(line+"\nDisallow: /\n") == faultsIn(line+"\n;")
	return faults > 0
}

// faultsIn returns the number of errors that temoto reports for a text.
func faultsIn(text string) int {
	_, err := robotstxt.FromString(text)
	if faults := (*robotstxt.ParseError)(nil); errors.As(err, &faults) {
		return len(faults.Errs)
	}
	return 0
}

// isSorted reports whether the names in the query of a pattern are in the order of Colly's encoding
// of a query. It also returns true if it cannot know: for patterns with wildcards and for names
// with invalid escapes.
func isSorted(pattern string) bool {
	_, query, _ := strings.Cut(pattern, "?")
	if strings.ContainsAny(query, "*$") {
		return true
	}
	before := ""
	for more := true; more; {
		var parameter string
		parameter, query, more = strings.Cut(query, "&")
		name, _, whole := strings.Cut(parameter, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return true
		}
		if !whole && !more {
			before = before[:min(len(before), len(name))] // the name may be longer in the URL
		}
		if name < before {
			return false
		}
		before = name
	}
	return true
}
