package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/term"
)

// An answer has the decisions about one URL.
type answer struct {
	URL      string    `json:"url"`
	Robots   string    `json:"robots"`           // the URL or the file name of the robots.txt
	Status   int       `json:"status,omitempty"` // the status of the response; 0 if there was none, or for a file
	Allowed  bool      `json:"allowed"`          // the decision of the selected dialect
	Readings []reading `json:"readings"`         // one for each dialect, the selected one first
}

// A reading is the decision of one dialect.
type reading struct {
	Dialect string       `json:"dialect"`
	Allowed bool         `json:"allowed"`
	Reason  string       `json:"reason"`                // a collyrobots.Reason
	Because string       `json:"because"`               // the reason in words
	Line    int          `json:"line,omitempty"`        // the line of the deciding rule, or the line because of which the file is refused
	Group   string       `json:"group,omitempty"`       // as written in the file
	Delay   term.Seconds `json:"crawl_delay,omitempty"` // the crawl delay of the group
}

func (a *answer) add(r reading) {
	if len(a.Readings) == 0 {
		a.Allowed = r.Allowed
	}
	a.Readings = append(a.Readings, r)
}

func (a *answer) print(w io.Writer, q *question) {
	term.Fprintf(w, "%s is %s for %s.\nrobots.txt: %s", a.URL, verdict(a.Allowed), q.tokens[0], a.Robots)
	if a.Status != 0 {
		term.Fprintf(w, ", status %d", a.Status)
	}
	term.Fprintf(w, "\n\n")
	t := term.NewTable(term.Column{Head: "dialect"}, term.Column{Head: "verdict"}, term.Column{Head: "group", Least: 8, Spare: true},
		term.Column{Head: "crawl delay", Spare: true}, term.Column{Head: "reason"})
	for _, r := range a.Readings {
		delay := ""
		if r.Delay > 0 {
			delay = term.Duration(time.Duration(r.Delay))
		}
		t.Row(r.Dialect, verdict(r.Allowed), r.Group, delay, r.Because)
	}
	t.Print(w, q.width)
	term.Fprintf(w, "\n")
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// A result is the output of the program.
type result struct {
	Dialect string   `json:"dialect"`
	Tokens  []string `json:"tokens"`
	Answers []answer `json:"answers,omitempty"`
	read    []string // the URLs or file names of the robots.txt files that -lint has checked
	Issues  []issue  `json:"issues,omitempty"`
}

// clean reports whether no URL is denied or, with -lint, whether there are no issues.
func (r *result) clean(q *question) bool {
	if q.lint {
		return len(r.Issues) == 0
	}
	return !slices.ContainsFunc(r.Answers, func(a answer) bool { return !a.Allowed })
}

// write writes the result as text or as JSON. It fails if a part of it could not be written.
func (r *result) write(w io.Writer, q *question) error {
	out := &output{w: w}
	if q.json {
		return term.JSON(out, r)
	}
	r.print(out, q)
	return out.err
}

// An output is a writer that keeps the first error.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// An issue is a part of a robots.txt that the dialect ignores, or that it reads in a way that the
// author may not expect.
type issue struct {
	Robots string `json:"robots"`         // the URL or the file name of the robots.txt
	Line   int    `json:"line,omitempty"` // 0 if the issue concerns the whole file
	Text   string `json:"text"`
}

// print writes the result as text.
func (r *result) print(w io.Writer, q *question) {
	for _, a := range r.Answers {
		a.print(w, q)
	}
	if !q.lint && len(r.Issues) > 0 {
		term.Fprintf(w, "Issues in %s (%s):\n", r.Issues[0].Robots, r.Dialect)
	}
	for _, i := range r.Issues {
		term.Paragraph(w, i.line(q.lint), 4, q.width)
	}
	if len(r.read) > 0 && len(r.Issues) == 0 {
		term.Fprintf(w, "%s: no issues (%s)\n", strings.Join(r.read, ", "), r.Dialect)
	}
}

// line returns an issue as one line. If compilerFormat is true, it starts with the name of the file
// and the line number, as the messages of compilers do.
func (i issue) line(compilerFormat bool) string {
	var place string
	switch {
	case compilerFormat && i.Line > 0:
		place = fmt.Sprintf("%s:%d: ", term.Safe(i.Robots), i.Line)
	case compilerFormat:
		place = term.Safe(i.Robots) + ": "
	case i.Line > 0:
		place = fmt.Sprintf("  line %d: ", i.Line)
	default:
		place = "  "
	}
	return place + term.Safe(i.Text)
}
