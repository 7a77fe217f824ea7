// Package lint finds the parts of a robots.txt that probably do not do what their author wants. It
// also reads TDMRep files. It works on bytes, and does no I/O.
//
// Package dialect provides all facts: which lines a dialect ignores, which rules a group has, and
// which rule decides about a URL. A rule is reported as useless only if removing it changes the
// decision about no URL. Two dialects are reported as different only with a URL that they decide
// differently. docs/reference/findings.md lists the kinds of findings.
package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Finding is a part of a robots.txt that probably does not do what its author wants, or a fact
// about it.
type Finding struct {
	ID       string            `json:"id"` // the ID of a [Kind]
	Severity Severity          `json:"severity"`
	Line     int               `json:"line,omitempty"` // from 1; 0 if the finding is about the whole file
	Text     string            `json:"text"`
	URL      string            `json:"url,omitempty"` // a URL that shows the effect
	Dialects []dialect.Dialect `json:"dialects"`      // the dialects with this finding
}

// Options are the options of [Lint]. The zero value is ready to use.
type Options struct {
	Dialects []dialect.Dialect // the default is RFC9309 and Google
	URL      string            // the URL of the file, if it is known
	Ignore   []string          // the IDs of kinds that are not reported
}

// DefaultDialects returns the dialects that Lint uses if Options.Dialects is empty: RFC 9309 and
// Google.
func DefaultDialects() []dialect.Dialect {
	return []dialect.Dialect{dialect.RFC9309(), dialect.Google()}
}

// A key identifies a finding in all dialects.
type key struct {
	id   string
	line int
	text string
}

// maxOfKind is the maximum number of findings of one kind. If there are more, one further finding
// says so.
const maxOfKind = 100

// A linter collects the findings in one file.
type linter struct {
	Options
	body     []byte
	site     *url.URL // the site of the file, or of an example if it is not known
	lines    []line
	readings []*reading
	findings []*Finding
	byText   map[key]*Finding // the same findings
	more     map[string]bool  // the kinds with more than maxOfKind findings
	counts   map[string]int
	budget   int // the remaining work of comparing rules, in bytes that are compared
}

// Lint returns the findings in a robots.txt or a TDMRep file, in the order of the lines. Its time
// and its result are bounded for any file.
func Lint(body []byte, o Options) []Finding {
	if len(o.Dialects) == 0 {
		o.Dialects = DefaultDialects()
	}
	l := &linter{
		Options: o,
		body:    body,
		byText:  make(map[key]*Finding),
		more:    make(map[string]bool),
		counts:  make(map[string]int),
		budget:  1 << 28,
	}
	l.site, _ = url.Parse(o.URL)
	if l.site == nil || l.site.Host == "" {
		l.site = &url.URL{Scheme: "https", Host: "example.com"}
	}
	l.run()
	return l.result()
}

func (l *linter) run() {
	if isHTML(l.body) {
		l.addToAll("html-page", 0, "the file is an HTML page, not a robots.txt")
		return
	}
	if IsTDMRep(l.body) {
		l.lintTDMRep()
		return
	}
	for _, d := range l.Dialects {
		l.addIssues(d)
	}
	if l.counts["utf16"] > 0 {
		return
	}
	l.lines = linesOf(l.body)
	l.lintLines()
	for _, d := range l.Dialects {
		l.readings = append(l.readings, l.read(d))
	}
	for _, r := range l.readings {
		l.lintRules(r)
		l.lintSitemaps(r)
		l.lintResources(r)
	}
	l.lintDifferences()
	if l.budget < 0 {
		l.addToAll("not-compared", 0, "the file is too complex to compare all of its rules")
	}
}

// isHTML reports whether a file is an HTML page.
func isHTML(body []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")), " \t\r\n")
	text = bytes.ToLower(text[:min(len(text), 1024)])
	if len(text) == 0 || text[0] != '<' {
		return false
	}
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if bytes.Contains(text, []byte(tag)) {
			return true
		}
	}
	return false
}

// unknown has the problems with a key that a dialect does not know.
var unknown = []dialect.Problem{dialect.UnknownKey, dialect.Unsupported, dialect.ValueIgnored}

// addIssues adds the findings that a dialect makes by itself.
func (l *linter) addIssues(d dialect.Dialect) {
	for _, i := range d.Lint(l.body) {
		if about, ok := foreignKeys[strings.ToLower(i.Detail)]; ok && slices.Contains(unknown, i.Problem) {
			l.add(d, "foreign-key", i.Line, i.Detail+" is not a rule: "+about, "")
			continue
		}
		id := string(i.Problem)
		text := i.Problem.Text()
		if i.Problem == dialect.NoToken && d == dialect.RFC9309() && d.CheckToken(i.Detail) == nil {
			id = "user-agent-not-token"
			text = "has digits or dots, so some crawlers do not find it"
		}
		if detail := strings.TrimSpace(i.Detail); detail != "" {
			text += ": " + shorten(detail)
		}
		l.add(d, id, i.Line, text, "")
	}
}

// shorten returns a text of a bounded length.
func shorten(text string) string {
	const longest = 200
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// addToAll adds a finding that does not depend on the dialect.
func (l *linter) addToAll(id string, line int, text string) {
	for _, d := range l.Dialects {
		l.add(d, id, line, text, "")
	}
}

// add adds a finding in a dialect. If the finding is already known, add only adds the dialect. The
// URL evidence may be empty.
func (l *linter) add(d dialect.Dialect, id string, line int, text, evidence string) {
	kind := kindByID[id]
	at := key{id: id, line: line, text: text}
	f := l.byText[at]
	switch {
	case slices.Contains(l.Ignore, id):
		return
	case f == nil && l.counts[id] >= maxOfKind:
		l.more[id] = true
		return
	case f == nil:
		l.counts[id]++
		f = &Finding{ID: id, Severity: kind.Severity, Line: line, Text: text, URL: evidence}
		l.byText[at] = f
		l.findings = append(l.findings, f)
	}
	if !slices.Contains(f.Dialects, d) {
		f.Dialects = append(f.Dialects, d)
	}
}

// result returns the findings, first those about the whole file, and then the others in the order
// of their lines.
func (l *linter) result() []Finding {
	result := make([]Finding, 0, len(l.findings))
	for _, f := range l.findings {
		result = append(result, *f)
	}
	slices.SortStableFunc(result, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.ID, b.ID))
	})
	for _, k := range kinds {
		if l.more[k.ID] {
			text := fmt.Sprintf("there are more findings of this kind; only the first %d are listed", maxOfKind)
			result = append(result, Finding{ID: k.ID, Severity: k.Severity, Text: text, Dialects: l.Dialects})
		}
	}
	return result
}
