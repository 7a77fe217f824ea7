package dialect

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/temoto/robotstxt"
)

// temotoRules is a file as temoto/robotstxt reads it.
type temotoRules struct {
	data   *robotstxt.RobotsData // nil if it refused the file
	agents []string              // the User-agent values, for Group.Name
}

// temotoGroup decides for one User-Agent header.
type temotoGroup struct {
	group *robotstxt.Group // nil: everything is denied
	name  string
}

// parseTemoto is what Colly does with the body of an answer. Colly fails a visit
// if temoto cannot parse the file, so there is no data then.
func parseTemoto(body []byte) *Rules {
	t := &temotoRules{}
	if data, err := robotstxt.FromBytes(body); err == nil {
		t.data = data
		t.agents = agentsIn(string(body))
	}
	return &Rules{dialect: Temoto(), temoto: t}
}

// agentsIn returns the User-agent values of a file.
func agentsIn(text string) (agents []string) {
	text = skipMark(text, false)
	for bareCR := hasBareCR(text); text != ""; {
		var line string
		line, text = nextLine(text, bareCR)
		if k, from, to := parseLenientLine(line); k == agentLine {
			agents = append(agents, strings.Clone(line[from:to]))
		}
	}
	return agents
}

// sitemaps leaves out the line feeds that temoto takes for the value of a line
// without one.
func (t *temotoRules) sitemaps() []string {
	if t.data == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.data.Sitemaps), func(s string) bool { return s == "\n" })
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
	if found.CrawlDelay > 0 {
		g.delay = found.CrawlDelay
	}
	return g
}

// nameOf returns the User-agent value that temoto keeps a group under: its first
// word. A name without rules has no group.
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

// test is what Colly's checkRobots does: it sorts the query and encodes it anew. In
// the URLs that it is given a path begins with a slash.
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
	return Decision{Allowed: g.group.Test(path)}
}

// lintTemoto returns the lines for which temoto refuses a file, and the rules that
// Colly's re-encoding of the query keeps from matching.
func lintTemoto(body []byte) []Issue {
	l := &linter{parser: parser{v: &variants[temoto]}}
	_, err := robotstxt.FromBytes(body)
	text := skipMark(string(body), false)
	bareCR := hasBareCR(text)
	for n := uint32(1); text != ""; n++ {
		var line string
		line, text = nextLine(text, bareCR)
		k, from, to := parseLenientLine(line)
		if k == otherLine {
			continue
		}
		value := line[from:to]
		switch problem := l.add(record{line: n, kind: k}, value); {
		case err != nil && refuses(k, value, problem):
			l.report(n, FileRefused, trimRight(trimLeft(line)))
		case (k == allowLine || k == disallowLine) && !isSorted(value):
			l.report(n, UnsortedQuery, value)
		}
	}
	if err != nil && len(l.issues) == 0 {
		l.report(0, FileRefused, fmt.Sprint(err))
	}
	return l.issues
}

// refuses reports whether temoto refuses a file for a line with this key and value.
func refuses(k kind, value string, problem Problem) bool {
	switch k {
	case allowLine, disallowLine:
		return problem == OrphanRule && value != ""
	case delayLine:
		seconds, err := strconv.ParseFloat(value, 64)
		return problem == OrphanRule || err != nil || !(seconds >= 0)
	}
	return false
}

// isSorted reports whether the names in the query of a pattern are in order.
func isSorted(pattern string) bool {
	_, query, _ := strings.Cut(pattern, "?")
	if strings.ContainsAny(query, "*$") {
		return true // who knows
	}
	names := strings.Split(query, "&")
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], "=")
	}
	return slices.IsSorted(names)
}
