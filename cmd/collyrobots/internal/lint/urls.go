package lint

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// example returns the URL of the site with a path and query that match a pattern. insert is put in
// place of each wildcard, and after a pattern without an anchor. If there is no such URL, example
// returns nil.
func (l *linter) example(pattern, insert string) *url.URL {
	body, anchored := strings.CutSuffix(pattern, "$")
	if !anchored {
		body += insert
	}
	body = strings.ReplaceAll(body, "*", insert)
	if body == "" || body[0] != '/' {
		body = "/" + body
	}
	var escaped strings.Builder
	for _, c := range []byte(body) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&escaped, "%%%02X", c)
		} else {
			escaped.WriteByte(c)
		}
	}
	u, err := url.Parse(l.site.Scheme + "://" + l.site.Host + escaped.String())
	if err != nil {
		return nil
	}
	return u
}

// lintDifferences finds URLs with different decisions in the dialects. For each pattern, it tries
// URLs that match.
func (l *linter) lintDifferences() {
	seen := make(map[string]bool)
	for _, name := range append([]string{""}, l.crawlers(true)...) {
		c := &comparison{linter: l, crawler: name}
		signature := ""
		for _, r := range l.readings {
			if name != "" && r.dialect.CheckToken(name) != nil {
				continue // no crawler that reads the file in this dialect has the name
			}
			g := l.groupOf(r, name)
			if g == nil {
				return
			}
			c.readings = append(c.readings, r)
			c.groups = append(c.groups, g)
			signature += fmt.Sprintf("%q %v\n", g.group.Name(), linesOfRules(g.rules))
		}
		if len(c.groups) > 1 && !seen[signature] {
			seen[signature] = true
			c.run()
		}
	}
}

// A comparison compares the decisions of the dialects for one crawler.
type comparison struct {
	*linter
	crawler  string
	readings []*reading // of the dialects that can match the name of the crawler
	groups   []*group   // for each reading
	found    map[int]bool
}

func (c *comparison) run() {
	c.found = make(map[int]bool)
	sameName := !slices.ContainsFunc(c.groups, func(g *group) bool { return g.group.Name() != c.groups[0].group.Name() })
	tried := make(map[string]bool)
	for _, g := range c.groups {
		for _, rule := range g.rules {
			if tried[rule.Pattern] || len(rule.Pattern) > 2048 {
				continue
			}
			tried[rule.Pattern] = true
			for _, insert := range []string{"", "x"} {
				if c.try(c.example(rule.Pattern, insert), rule.Line) && !sameName {
					return // the dialects choose different groups, so one URL shows it
				}
			}
		}
	}
}

// try compares the decisions about a URL, and reports whether they differ. line is the line of a
// rule that matches it.
func (c *comparison) try(u *url.URL, line int) (differ bool) {
	if u == nil || c.budget < 0 {
		return false
	}
	c.budget -= len(c.groups) * (64 + len(u.Path))
	decisions := make([]dialect.Verdict, len(c.groups))
	for i, g := range c.groups {
		decisions[i] = g.group.DecideURL(u)
	}
	if !slices.ContainsFunc(decisions, func(d dialect.Verdict) bool { return d.Allowed != decisions[0].Allowed }) {
		return false
	}
	if !c.found[line] {
		c.found[line] = true
		c.report(u, line, decisions)
	}
	return true
}

func (c *comparison) report(u *url.URL, line int, decisions []dialect.Verdict) {
	crawler := c.crawler
	if crawler == "" {
		crawler = "a crawler without a group"
	}
	var verdicts []string
	names := make(map[string][]string) // of the dialects, by verdict
	for i, d := range decisions {
		v := verdictText(d)
		if names[v] == nil {
			verdicts = append(verdicts, v)
		}
		names[v] = append(names[v], c.readings[i].dialect.String())
	}
	for i, v := range verdicts {
		verdicts[i] = v + " in " + strings.Join(names[v], ", ")
	}
	text := fmt.Sprintf("%s, for %s: %s", shorten(u.String()), shorten(crawler), strings.Join(verdicts, "; "))
	for _, r := range c.readings {
		c.add(r.dialect, "dialects-differ", line, text, u.String())
	}
}

// verdictText returns the verdict of a decision and its line, if it has one.
func verdictText(d dialect.Verdict) string {
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	if d.Rule.Line == 0 {
		return verdict
	}
	return fmt.Sprintf("%s by line %d", verdict, d.Rule.Line)
}

// searchers returns the group of crawlers that the file does not name, and the group of Googlebot.
// It omits a group that may not request the start page.
func (l *linter) searchers(r *reading) (groups []*group) {
	start := &url.URL{Scheme: l.site.Scheme, Host: l.site.Host, Path: "/"}
	for _, name := range []string{"", "Googlebot"} {
		g := l.groupOf(r, name)
		if g != nil && g.group.DecideURL(start).Allowed {
			groups = append(groups, g)
		}
	}
	return groups
}

// lintSitemaps finds sitemaps that the file disallows to crawlers that may request the start page.
// If the URL of the file is not known, the finding names the site that it is true for.
func (l *linter) lintSitemaps(r *reading) {
	base, _ := dialect.AuthorityOf(l.site)
	groups := l.searchers(r)
	for _, line := range l.lines {
		if line.key != "sitemap" || l.budget < 0 {
			continue
		}
		u, err := l.site.Parse(line.value)
		if err != nil {
			continue
		}
		own, err := dialect.AuthorityOf(u)
		if err != nil || l.URL != "" && own != base {
			continue
		}
		for _, g := range groups {
			l.budget -= 64 + len(line.value)
			d := g.group.DecideURL(u)
			if !d.Allowed {
				text := fmt.Sprintf("line %d (%s) disallows this sitemap: %s", d.Rule.Line, shorten(d.Rule.String()), shorten(u.Redacted()))
				if l.URL == "" && own != base {
					text += " (if the file is the robots.txt of " + own.String() + ")"
				}
				l.add(r.dialect, "sitemap-disallowed", line.number, text, u.Redacted())
				break
			}
		}
	}
}

// resourceFolders has the names of folders for style sheets and scripts, with the extension of the
// files in them.
var resourceFolders = map[string]string{
	"css": ".css", "style": ".css", "styles": ".css", "stylesheets": ".css",
	"js": ".js", "javascript": ".js", "javascripts": ".js", "scripts": ".js",
}

// matchesResources reports whether a pattern is one of style sheets or scripts, such as /*.css?v=,
// or one of a folder for them, such as /js/*. extension is that of the files in the folder.
func matchesResources(pattern string) (extension string, ok bool) {
	pattern = strings.ToLower(pattern)
	for i, c := range pattern + "?" {
		path := strings.TrimRight(pattern[:i], "$*")
		if c == '?' && (strings.HasSuffix(path, ".css") || strings.HasSuffix(path, ".js")) {
			return "", true
		}
	}
	folder := strings.TrimSuffix(strings.TrimRight(pattern, "*"), "/")
	slash := strings.LastIndexByte(folder, '/')
	if slash < 0 {
		return "", false
	}
	extension, ok = resourceFolders[folder[slash+1:]]
	return extension, ok
}

// lintResources finds rules that deny CSS or JavaScript to crawlers that may request the start
// page.
func (l *linter) lintResources(r *reading) {
	for _, g := range l.searchers(r) {
		for _, rule := range g.rules {
			extension, ok := matchesResources(rule.Pattern)
			if !ok || rule.Allow || l.budget < 0 {
				continue
			}
			u := l.example(strings.TrimRight(rule.Pattern, "*"), "")
			if extension != "" && u != nil {
				u = u.JoinPath("a" + extension)
			}
			l.budget -= 64
			if u == nil || g.group.DecideURL(u).Rule != rule {
				continue
			}
			l.add(r.dialect, "blocked-resource", rule.Line, fmt.Sprintf("%s denies %s", shorten(rule.String()), shorten(u.String())), u.String())
		}
	}
}
