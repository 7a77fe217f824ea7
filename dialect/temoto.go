package dialect

import (
	"net/url"
	"strings"

	"github.com/temoto/robotstxt"
)

// temotoRules is a file as temoto/robotstxt reads it.
type temotoRules struct {
	data *robotstxt.RobotsData // nil if it refused the file
}

// temotoGroup decides for one User-Agent header.
type temotoGroup struct {
	group *robotstxt.Group // nil: everything is denied
	name  string
}

// parseTemoto is what Colly does with the body of an answer.
func parseTemoto(body []byte) *Rules {
	data, err := robotstxt.FromBytes(body)
	if err != nil {
		data = nil
	}
	return &Rules{dialect: Temoto(), temoto: &temotoRules{data}}
}

func (t *temotoRules) sitemaps() []string {
	if t.data == nil {
		return nil
	}
	return t.data.Sitemaps
}

func (t *temotoRules) group(tokens []string) *Group {
	g := &temotoGroup{}
	if t.data != nil {
		g.group = t.data.FindGroup(strings.Join(tokens[:min(len(tokens), 1)], ""))
	}
	return &Group{dialect: Temoto(), delay: -1, temoto: g}
}

// decide tests a target as Colly's checkRobots does, query sorted and encoded
// anew.
func (g *temotoGroup) decide(target string) Decision {
	if g.group == nil {
		return Decision{}
	}
	target, _, _ = strings.Cut(target, "#")
	path, query, _ := strings.Cut(target, "?")
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	if query != "" {
		values, _ := url.ParseQuery(query) // Colly ignores the error, too
		path += "?" + values.Encode()
	}
	return Decision{Allowed: g.group.Test(path)}
}
