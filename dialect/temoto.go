package dialect

import (
	"errors"
	"math"
	"net/url"
	"strings"

	"github.com/temoto/robotstxt"
)

// temotoRules is a file as temoto/robotstxt reads it.
type temotoRules struct {
	data   *robotstxt.RobotsData // nil if it refused the file
	agents []string              // the User-agent values, for Group.Name
	wild   int                   // bytes of the patterns with wildcards
}

// temotoGroup decides for one User-Agent header.
type temotoGroup struct {
	group *robotstxt.Group // if nil, everything is denied
	name  string
	wild  int // temotoRules.wild
}

// maxTemotoWork bounds the bytes of patterns times the bytes of a target that
// are matched. Temoto matches a wildcard as a regular expression, which takes up
// to 25 ns for each. So a decision takes less than a second. The file of the 194
// real ones with the most wildcards has 4 KB of them.
const maxTemotoWork = 1 << 25

// parseTemoto is what Colly does with the body of an answer. Colly fails a
// visit if temoto cannot parse the file, so there is no data then.
func parseTemoto(body []byte) *Rules {
	t := &temotoRules{}
	if data, err := robotstxt.FromBytes(body); err == nil {
		t.data = data
		t.agents, t.wild = scanTemoto(string(body))
	}
	return &Rules{dialect: Temoto(), temoto: t}
}

// scanTemoto returns the User-agent values of a file and the bytes of its
// patterns with wildcards.
func scanTemoto(text string) (agents []string, wild int) {
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
		}
	}
	return agents, wild
}

// sitemaps returns the values of Sitemap lines without white space around them.
// For a line without a value temoto returns a line feed, which is left out.
func (t *temotoRules) sitemaps() (list []string) {
	if t.data == nil {
		return nil
	}
	for _, value := range t.data.Sitemaps {
		if value = strings.TrimSpace(value); value != "" {
			list = append(list, value)
		}
	}
	return list
}

// group finds the group for the header that is the first token.
func (t *temotoRules) group(tokens []string) *Group {
	g := &Group{dialect: Temoto(), delay: -1, temoto: &temotoGroup{}}
	if t.data == nil {
		return g
	}
	found := t.data.FindGroup(strings.Join(tokens[:min(len(tokens), 1)], ""))
	g.temoto.group = found
	g.temoto.name = t.nameOf(found)
	g.temoto.wild = t.wild
	switch {
	case found.CrawlDelay > 0:
		g.delay = found.CrawlDelay
	case found.CrawlDelay < 0: // temoto refuses negative values, so this is an overflow
		g.delay = math.MaxInt64
	}
	return g
}

// nameOf returns the User-agent value that temoto keeps a group under: its
// first word. A name without rules has no group.
func (t *temotoRules) nameOf(found *robotstxt.Group) string {
	none := t.data.FindGroup("\n") // of *, or of nobody
	for _, agent := range t.agents {
		word, _, _ := strings.Cut(agent, " ")
		if own := t.data.FindGroup(word); own == found && (own != none || word == "*") {
			return agent
		}
	}
	return ""
}

// decide decides about a target.
func (g *temotoGroup) decide(target string) Decision {
	target, _, _ = strings.Cut(target, "#")
	path, query, _ := strings.Cut(target, "?")
	return g.test(path, query)
}

// decideURL decides about a URL.
func (g *temotoGroup) decideURL(u *url.URL) Decision {
	return g.test(u.EscapedPath(), u.RawQuery)
}

// test is what Colly's checkRobots does: it sorts the query and encodes it
// anew. In the URLs that it is given a path begins with a slash. A target that
// would take too long is denied.
func (g *temotoGroup) test(path, query string) Decision {
	if g.group == nil {
		return Decision{}
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	if query != "" {
		values, _ := url.ParseQuery(query) // Colly ignores the error, too
		path += "?" + values.Encode()
	}
	if g.wild > maxTemotoWork/len(path) {
		return Decision{}
	}
	return Decision{Allowed: g.group.Test(path)}
}

// lintTemoto returns the lines for which temoto refuses a file, and the rules
// that Colly's re-encoding of the query keeps from matching.
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

// refusals finds the lines for which temoto refuses a file. Its errors do not
// say where they are. It goes through the tokens of a line in pairs, of which
// none goes on in the next line, so each line can be asked about alone; of
// those before it only counts whether one named an agent.
type refusals struct{ named bool }

// next reports whether temoto refuses the next line, given that line, the text
// that begins with it and the rest of that.
func (r *refusals) next(line, text, rest string) bool {
	alone := line + "\n;"
	if strings.Trim(rest, "\r\n") == "" {
		alone = text // an end of line is no token at the end of the file
	}
	if r.named {
		return faultsIn("User-agent: a\n"+alone) > 0
	}
	faults := faultsIn(alone)
	r.named = faultsIn(line+"\nDisallow: /\n") == faultsIn(line+"\n;")
	return faults > 0
}

// faultsIn returns how many errors temoto has about a text.
func faultsIn(text string) int {
	_, err := robotstxt.FromString(text)
	if faults := (*robotstxt.ParseError)(nil); errors.As(err, &faults) {
		return len(faults.Errs)
	}
	return 0
}

// isSorted reports whether the names in the query of a pattern are in an order
// that Colly's encoding of a query has. It also reports true where it cannot
// know: for patterns with wildcards and for names with invalid escapes.
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
			before = before[:min(len(before), len(name))] // the name may go on in the URL
		}
		if name < before {
			return false
		}
		before = name
	}
	return true
}
