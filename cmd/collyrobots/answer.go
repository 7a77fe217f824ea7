package main

import (
	"fmt"
	"io"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/usage"
)

// An answer has the decisions about one URL.
type answer struct {
	URL      string    `json:"url"`
	Robots   string    `json:"robots"`             // the URL or the file name of the robots.txt
	Status   int       `json:"status,omitempty"`   // the status of the response; 0 if there was none, or for a file
	Walled   bool      `json:"walled,omitempty"`   // whether the answer for robots.txt is a web page or a challenge
	Error    string    `json:"error,omitempty"`    // why the host could not be asked; if set, only URL is also set
	Allowed  bool      `json:"allowed"`            // the decision of the selected dialect
	Readings []reading `json:"readings,omitempty"` // one for each dialect, the selected one first

	// What robots.txt says about the use of the page, and with -page also the TDMRep file and the page.
	Usage           usage.Preferences `json:"usage,omitzero"`
	Use             usage.Use         `json:"use,omitempty"` // the key use of Content-Signal
	TDM             usage.TDM         `json:"tdm,omitzero"`
	Licenses        []usage.License   `json:"licenses,omitempty"`
	LicenseRequired bool              `json:"license_required,omitempty"`

	// With -page, what the page itself says.
	PageStatus int             `json:"page_status,omitempty"` // 0 if it was not requested
	PageError  string          `json:"page_error,omitempty"`  // why there is no response
	Tags       robotstags.Tags `json:"tags,omitempty"`        // its robots tags

	written string // the argument that URL is made of
}

// A reading is the decision of one dialect.
type reading struct {
	Dialect string       `json:"dialect"`
	Allowed bool         `json:"allowed"`
	Reason  string       `json:"reason"`                // a report.Reason
	Because string       `json:"because"`               // the reason in words
	Line    int          `json:"line,omitempty"`        // the line of the deciding rule, or the line that makes the dialect refuse the file
	Group   string       `json:"group,omitempty"`       // as written in the file
	Delay   term.Seconds `json:"crawl_delay,omitempty"` // the crawl delay of the group
}

func (a *answer) add(r reading) {
	if len(a.Readings) == 0 {
		a.Allowed = r.Allowed
	}
	a.Readings = append(a.Readings, r)
}

// setTerms sets what the sources say about the use of the page.
func (a *answer) setTerms(t usage.Terms) {
	a.Usage = t.Preferences
	a.Use = t.Use
	a.TDM = t.TDM
	a.Licenses = t.Licenses
	a.LicenseRequired = t.LicenseRequired
}

// print prints one line if all dialects agree, and a table otherwise.
func (a *answer) print(w io.Writer, q *question) {
	first := a.Readings[0]
	line := term.Safe(a.URL) + ": " + verdict(a.Allowed) + ", " + term.Safe(first.Because)
	if first.Delay > 0 {
		line += ", crawl delay " + term.Duration(time.Duration(first.Delay))
	}
	if !a.agree() {
		line += "; the dialects do not agree:"
	}
	word := ": " + verdict(a.Allowed) + ","
	term.PaintedParagraph(w, line, 4, q.width, word, ": "+q.paintVerdict(verdict(a.Allowed))+",")
	for _, text := range append(a.pageTexts(), a.usageTexts()...) {
		term.Paragraph(w, "  "+term.Safe(text), 4, q.width)
	}
	if !a.agree() || q.all {
		a.printTable(w, q)
	}
}

// paintVerdict colors a verdict, and no other text.
func (q *question) paintVerdict(text string) string {
	switch text {
	case verdict(true):
		return q.paint.Paint(term.Green, text)
	case verdict(false):
		return q.paint.Paint(term.Red, text)
	}
	return text
}

func (a *answer) printTable(w io.Writer, q *question) {
	t := term.NewTable(term.Column{Head: "dialect"}, term.Column{Head: "verdict", Paint: q.paintVerdict}, term.Column{Head: "group", Least: 8, Spare: true},
		term.Column{Head: "crawl delay", Spare: true}, term.Column{Head: "reason"})
	for _, r := range a.Readings {
		t.Row(r.Dialect, verdict(r.Allowed), r.Group, term.Delay(time.Duration(r.Delay)), r.Because)
	}
	t.Print(w, q.width)
}

// pageTexts returns texts about the responses of robots.txt and of the page.
func (a *answer) pageTexts() (texts []string) {
	if a.Walled {
		texts = append(texts, fmt.Sprintf("robots.txt: the answer, with status %d, is a web page or a challenge of a bot wall, so the rules of the site are not known", a.Status))
	}
	if a.PageStatus != 0 {
		texts = append(texts, fmt.Sprintf("page: status %d", a.PageStatus))
	}
	if a.PageError != "" {
		texts = append(texts, "page: "+a.PageError)
	}
	for _, rule := range a.Tags {
		texts = append(texts, fmt.Sprintf("%s: %s", rule.Source, rule))
	}
	return texts
}

// usageTexts returns texts about the use of a page, such as "train-ai: disallowed, line 3".
func (a *answer) usageTexts() (texts []string) {
	for _, purpose := range []usage.Purpose{usage.Search, usage.AIUse, usage.TrainAI} {
		s := a.Usage.Of(purpose)
		if s.Preference != usage.Unknown {
			texts = append(texts, purpose.String()+": "+s.Preference.String()+sourceText(s.Source))
		}
	}
	if a.Use != usage.UseUnknown {
		texts = append(texts, "use: "+a.Use.String())
	}
	if a.TDM.Policy != "" {
		texts = append(texts, "tdm-policy: "+a.TDM.Policy+sourceText(a.TDM.Source))
	}
	for _, l := range a.Licenses {
		texts = append(texts, "license: "+l.URL+sourceText(l.Source))
	}
	if a.LicenseRequired {
		texts = append(texts, "page: asks for a license")
	}
	return texts
}

// sourceText returns where a statement is, if that is not clear: ", line 3".
func sourceText(s usage.Source) (text string) {
	if s.Name != "" && s.Name != "robots.txt" {
		text = ", " + s.Name
	}
	if s.Line > 0 {
		text += fmt.Sprintf(", line %d", s.Line)
	}
	return text
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}
