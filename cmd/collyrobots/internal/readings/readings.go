// Package readings decides about URLs with the text of a robots.txt in several dialects, and says
// what the pages may be used for. It also reads TDMRep files. It does no I/O.
package readings

import (
	"bytes"
	"errors"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A Question is about URLs and a file of their site.
type Question struct {
	Text     []byte            `json:"-"`        // of a robots.txt or a TDMRep file
	Name     string            `json:"name"`     // a product token, or the User-Agent header of the crawler
	URLs     []string          `json:"urls"`     // URLs, or paths that begin with a slash
	Dialects []dialect.Dialect `json:"dialects"` // if empty, all dialects
	Lint     bool              `json:"lint"`     // whether to look for faults in the file
}

// An Answer is the answer to a [Question].
type Answer struct {
	TDMRep   bool           `json:"tdmrep"`   // the file is a TDMRep file, which has no groups and no readings
	Token    string         `json:"token"`    // the product token that was looked for
	Groups   []Group        `json:"groups"`   // one for each dialect
	URLs     []URL          `json:"urls"`     // in the order of the question
	Findings []lint.Finding `json:"findings"` // in the dialects of the question; nil unless Question.Lint is set
}

// A Group is the group of a robots.txt that applies to the crawler in a dialect.
type Group struct {
	Dialect dialect.Dialect `json:"dialect"`
	Name    string          `json:"name"`              // as written in the file; empty if there is no group
	Delays  []Delay         `json:"delays,omitempty"`  // the Crawl-delay, or the rates of a schedule
	Problem string          `json:"problem,omitempty"` // why no group of this dialect can have the name of the crawler
}

// A Delay is the time between the starts of two requests.
type Delay struct {
	Seconds float64 `json:"seconds"`
	Line    int     `json:"line,omitempty"`  // 0 if the dialect does not report it
	Hours   string  `json:"hours,omitempty"` // the part of the day in UTC when it holds; empty if it always holds
}

// A URL has the readings of one URL.
type URL struct {
	URL      string       `json:"url"`             // as in the question
	Error    string       `json:"error,omitempty"` // why there are no readings
	Readings []Reading    `json:"readings,omitempty"`
	Usage    *usage.Terms `json:"usage,omitempty"` // nil if the first dialect denies the URL
}

// A Reading is the decision of a dialect about a URL.
type Reading struct {
	Dialect dialect.Dialect `json:"dialect"`
	Allowed bool            `json:"allowed"`
	Line    int             `json:"line,omitempty"`    // of Rule; 0 if there is no rule, or if the dialect does not report it
	Rule    string          `json:"rule,omitempty"`    // the rule that decided, as a line of robots.txt
	Refused bool            `json:"refused,omitempty"` // the dialect denies every URL because it does not accept Line
}

// Refusal returns the first line that makes a dialect refuse the whole file, if there is one.
func Refusal(d dialect.Dialect, text []byte) (refused dialect.Issue, ok bool) {
	for _, issue := range d.Lint(text) {
		if issue.Problem == dialect.FileRefused {
			return issue, true
		}
	}
	return dialect.Issue{}, false
}

// UsageOf returns what a robots.txt says about the use of pages to the crawler with these tokens.
func UsageOf(rules *dialect.Rules, tokens ...string) *usage.RobotsTxt {
	return usage.ParseRobotsTxt(rules.UsageLines(tokens...))
}

// SentURL returns the URL that Colly sends for a path or a URL. Colly escapes a percent sign that
// does not begin an escape.
func SentURL(s string) *url.URL {
	s, _, _ = strings.Cut(s, "#")
	u, err := url.ParseRequestURI(escapePercent(s))
	if err != nil {
		return &url.URL{Path: s}
	}
	return u
}

// escapePercent returns s with %25 for each percent sign that does not begin an escape.
func escapePercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		if s[i] == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f' }

// notURL is the error of a text that is neither a URL nor a path.
const notURL = "neither a URL with http or https nor a path that begins with a slash"

// faultOf returns the reason why no request can be sent to a URL or a path, or "".
func faultOf(s string, u *url.URL) string {
	if strings.HasPrefix(s, "/") {
		return ""
	}
	if u.Host == "" {
		return notURL
	}
	_, err := dialect.AuthorityOf(u)
	var unusable *dialect.URLError
	if errors.As(err, &unusable) {
		return unusable.Reason
	}
	return ""
}

// tokenOf returns the product token in a name, which may be a User-Agent header.
func tokenOf(name string) string {
	if strings.ContainsAny(name, "/ (") {
		return dialect.TokenOf(name)
	}
	return name
}

// A Reader answers questions. It keeps the parsed file and the groups of the last question, so that
// a question with other URLs is answered quickly. The zero value is ready to use. A Reader is not
// safe for concurrent use.
type Reader struct {
	text     []byte
	rules    map[dialect.Dialect]*dialect.Rules
	refusals map[dialect.Dialect]dialect.Issue // of the dialects that refuse the file
	tdm      *usage.TDMFile
	isTDM    bool

	name  string
	group map[dialect.Dialect]*dialect.Group   // for the name
	usage map[dialect.Dialect]*usage.RobotsTxt // for the name
}

// Answer answers a question. It does not retain the text of the question.
func (r *Reader) Answer(q Question) Answer {
	if len(q.Dialects) == 0 {
		q.Dialects = dialect.All()
	}
	r.open(q.Text)
	r.identify(strings.TrimSpace(q.Name))
	a := Answer{TDMRep: r.isTDM, Token: tokenOf(r.name), Groups: []Group{}, URLs: make([]URL, 0, len(q.URLs))}
	if !r.isTDM {
		for _, d := range q.Dialects {
			a.Groups = append(a.Groups, r.groupIn(d))
		}
	}
	for _, u := range q.URLs {
		a.URLs = append(a.URLs, r.read(u, q.Dialects))
	}
	if q.Lint {
		a.Findings = lint.Lint(r.text, lint.Options{Dialects: q.Dialects})
	}
	return a
}

// open reads a text, unless it is that of the last question.
func (r *Reader) open(text []byte) {
	if r.rules != nil && bytes.Equal(text, r.text) {
		return
	}
	*r = Reader{
		text:     bytes.Clone(text),
		isTDM:    lint.IsTDMRep(text),
		name:     r.name,
		rules:    make(map[dialect.Dialect]*dialect.Rules),
		refusals: make(map[dialect.Dialect]dialect.Issue),
	}
	if r.isTDM {
		// If the file is not a list, it declares nothing.
		r.tdm, _ = usage.ParseTDMFile(text, usage.Source{Name: usage.TDMRepPath})
	}
}

// identify sets the name of the crawler.
func (r *Reader) identify(name string) {
	if r.group != nil && name == r.name {
		return
	}
	r.name = name
	r.group = make(map[dialect.Dialect]*dialect.Group)
	r.usage = make(map[dialect.Dialect]*usage.RobotsTxt)
}

// rulesIn returns the file as a dialect parses it.
func (r *Reader) rulesIn(d dialect.Dialect) *dialect.Rules {
	rules := r.rules[d]
	if rules == nil {
		rules = d.Parse(r.text)
		r.rules[d] = rules
	}
	return rules
}

// tokensIn returns the tokens that a dialect looks for. Temoto looks for the whole header.
func (r *Reader) tokensIn(d dialect.Dialect) []string {
	name := tokenOf(r.name)
	if d == dialect.Temoto() {
		name = r.name
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// find returns the group for the crawler.
func (r *Reader) find(d dialect.Dialect) *dialect.Group {
	group := r.group[d]
	if group == nil {
		group = r.rulesIn(d).Group(r.tokensIn(d)...)
		r.group[d] = group
	}
	return group
}

// groupIn describes the group for the crawler.
func (r *Reader) groupIn(d dialect.Dialect) Group {
	found := r.find(d)
	g := Group{Dialect: d, Name: strings.ToValidUTF8(found.Name(), "\uFFFD")}
	if token := tokenOf(r.name); token != "" {
		if err := d.CheckToken(token); err != nil {
			g.Problem = err.Error()
		}
	}
	if delay, ok := found.CrawlDelay(); ok {
		g.Delays = append(g.Delays, Delay{Seconds: delay.Seconds(), Line: found.DelayLine()})
	}
	if schedule := found.Schedule(); schedule != nil {
		for _, rate := range schedule.Rates {
			g.Delays = append(g.Delays, Delay{Seconds: rate.Delay.Seconds(), Line: rate.Line, Hours: hours(rate.Window)})
		}
	}
	return g
}

// read returns the readings of one URL.
func (r *Reader) read(text string, dialects []dialect.Dialect) URL {
	result := URL{URL: text}
	sent := SentURL(text)
	result.Error = faultOf(text, sent)
	if result.Error != "" {
		return result
	}
	if r.isTDM {
		terms := usage.Sources{TDMFile: r.tdm}.Terms(sent)
		result.Usage = &terms
		return result
	}
	result.Readings = make([]Reading, 0, len(dialects))
	for _, d := range dialects {
		result.Readings = append(result.Readings, r.decide(d, sent))
	}
	if result.Readings[0].Allowed { // the preferences are about pages that may be requested
		terms := usage.Sources{Robots: r.usageIn(dialects[0])}.Terms(sent)
		result.Usage = &terms
	}
	return result
}

// decide returns the decision of a dialect.
func (r *Reader) decide(d dialect.Dialect, u *url.URL) Reading {
	decision := r.find(d).DecideURL(u)
	reading := Reading{
		Dialect: d,
		Allowed: decision.Allowed,
		Line:    decision.Rule.Line,
		Rule:    strings.ToValidUTF8(decision.Rule.String(), "\uFFFD"),
	}
	if decision.Allowed || decision.Rule.Line > 0 {
		return reading
	}
	refused := r.refusalIn(d)
	reading.Line = refused.Line
	reading.Rule = strings.ToValidUTF8(refused.Detail, "\uFFFD")
	reading.Refused = refused.Line > 0
	return reading
}

// refusalIn returns the line that makes a dialect refuse the file, or the zero Issue.
func (r *Reader) refusalIn(d dialect.Dialect) dialect.Issue {
	refused, known := r.refusals[d]
	if !known {
		refused, _ = Refusal(d, r.text)
		r.refusals[d] = refused
	}
	return refused
}

// usageIn returns what the file says about the use of pages to the crawler.
func (r *Reader) usageIn(d dialect.Dialect) *usage.RobotsTxt {
	robots, known := r.usage[d]
	if !known {
		robots = UsageOf(r.rulesIn(d), r.tokensIn(d)...)
		r.usage[d] = robots
	}
	return robots
}
