package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// An answer is what is to be said about one URL.
type answer struct {
	URL      string    `json:"url"`
	Robots   string    `json:"robots"`           // where the rules come from: a URL, or a file
	Status   int       `json:"status,omitempty"` // with which robots.txt was answered; 0: there was no answer, or it is a file
	Allowed  bool      `json:"allowed"`          // under the dialect that was asked for
	Readings []reading `json:"readings"`         // one for each dialect, that which was asked for first
}

// A reading is what one dialect says.
type reading struct {
	Dialect string       `json:"dialect"`
	Allowed bool         `json:"allowed"`
	Reason  string       `json:"reason"` // a collyrobots.Reason
	Because string       `json:"because"`
	Line    int          `json:"line,omitempty"`        // of the rule that decided, or for which the file is refused
	Group   string       `json:"group,omitempty"`       // as the file names it
	Delay   term.Seconds `json:"crawl_delay,omitempty"` // what the group asks for
}

func (a *answer) add(r reading) {
	if len(a.Readings) == 0 {
		a.Allowed = r.Allowed
	}
	a.Readings = append(a.Readings, r)
}

func (a *answer) print(w io.Writer, q *question) {
	term.Fprintf(w, "%s is %s to %s.\nrobots.txt: %s", a.URL, verdict(a.Allowed), q.tokens[0], a.Robots)
	if a.Status != 0 {
		term.Fprintf(w, ", status %d", a.Status)
	}
	term.Fprintf(w, "\n\n")
	t := term.NewTable(term.Column{Head: "dialect"}, term.Column{Head: "verdict"}, term.Column{Head: "group", Least: 8, Spare: true},
		term.Column{Head: "crawl delay", Spare: true}, term.Column{Head: "because"})
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

// A result is what the program has to say, as JSON.
type result struct {
	Dialect string   `json:"dialect"`
	Tokens  []string `json:"tokens"`
	Answers []answer `json:"answers,omitempty"`
	read    []string // the robots.txt files, for -lint
	Issues  []issue  `json:"issues,omitempty"` // what the dialect does not read as the author of the file may think
}

// clean reports whether nothing is denied, or odd if that is the question.
func (r *result) clean(q *question) bool {
	if q.lint {
		return len(r.Issues) == 0
	}
	return !slices.ContainsFunc(r.Answers, func(a answer) bool { return !a.Allowed })
}

// write writes the result as it was asked for. Where lines cannot be written there is no answer.
func (r *result) write(w io.Writer, q *question) error {
	out := &output{w: w}
	if q.json {
		return term.JSON(out, r)
	}
	r.print(out, q)
	return out.err
}

// An output remembers the first error.
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

// An issue is something odd in a robots.txt.
type issue struct {
	Robots string `json:"robots"`         // the file, or its URL
	Line   int    `json:"line,omitempty"` // 0: the file as a whole
	Text   string `json:"text"`
}

// print writes the result for people.
func (r *result) print(w io.Writer, q *question) {
	for _, a := range r.Answers {
		a.print(w, q)
	}
	if !q.lint && len(r.Issues) > 0 {
		term.Fprintf(w, "%s, as %s reads it:\n", r.Issues[0].Robots, r.Dialect)
	}
	for _, i := range r.Issues {
		term.Paragraph(w, i.line(q.lint), 4, q.width)
	}
	if len(r.read) > 0 && len(r.Issues) == 0 {
		term.Fprintf(w, "%s: nothing odd, as %s reads it\n", strings.Join(r.read, ", "), r.Dialect)
	}
}

// line returns an issue as one line, as compilers write them if so.
func (i issue) line(asCompilers bool) string {
	var place string
	switch {
	case asCompilers && i.Line > 0:
		place = fmt.Sprintf("%s:%d: ", term.Safe(i.Robots), i.Line)
	case asCompilers:
		place = term.Safe(i.Robots) + ": "
	case i.Line > 0:
		place = fmt.Sprintf("  line %d: ", i.Line)
	default:
		place = "  "
	}
	return place + term.Safe(i.Text)
}
