package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/collyrobots/collyrobots/conformance"
)

// A Report has the outcomes of a run in a form that can be written.
type Report struct {
	outcomes []Outcome
}

// An Outcome says how one case was answered in one dialect. It is one line of a Report.
type Outcome struct {
	ID       string              `json:"id"`
	Dialect  string              `json:"dialect"`
	Passed   bool                `json:"passed"`
	Disputed bool                `json:"disputed,omitempty"`
	Faults   []string            `json:"faults,omitempty"`
	Answer   *conformance.Answer `json:"answer,omitempty"`   // of a parser
	Requests []string            `json:"requests,omitempty"` // of a crawler

	// Details are lines for people that describe the case.
	Details []string `json:"-"`
}

// NewReport returns a Report with the given outcomes.
func NewReport(outcomes []Outcome) *Report { return &Report{outcomes: outcomes} }

// ReportOf returns the Report of results.
func ReportOf(results []Result) *Report {
	outcomes := make([]Outcome, len(results))
	for i := range results {
		r := &results[i]
		outcomes[i] = Outcome{
			ID:       r.Case.ID,
			Dialect:  r.Dialect,
			Passed:   r.Passed(),
			Disputed: r.Case.Disputed,
			Faults:   r.Faults,
			Answer:   &r.Answer,
			Details:  []string{r.Case.About, "agent " + r.Case.Agent + ", " + r.Case.URL},
		}
	}
	return NewReport(outcomes)
}

// A Score counts the outcomes of one dialect. Disputed cases do not count.
type Score struct {
	Dialect  string
	Cases    int
	Passed   int
	Disputed int // disputed cases, which are in neither of the other numbers
}

// Scores returns the scores of all dialects, in the order of their first outcome.
func (r *Report) Scores() []Score {
	var scores []Score
	for i := range r.outcomes {
		o := &r.outcomes[i]
		at := slices.IndexFunc(scores, func(s Score) bool { return s.Dialect == o.Dialect })
		if at < 0 {
			at = len(scores)
			scores = append(scores, Score{Dialect: o.Dialect})
		}
		scores[at].count(o)
	}
	return scores
}

func (s *Score) count(o *Outcome) {
	switch {
	case o.Disputed:
		s.Disputed++
	case o.Passed:
		s.Cases++
		s.Passed++
	default:
		s.Cases++
	}
}

// Passed reports whether all cases were passed, except disputed ones.
func (r *Report) Passed() bool {
	return !slices.ContainsFunc(r.outcomes, func(o Outcome) bool { return !o.Passed && !o.Disputed })
}

// WriteText writes the cases that were not passed, and a table of the scores. It leaves out
// disputed cases.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for i := range r.outcomes {
		o := &r.outcomes[i]
		if o.Passed || o.Disputed {
			continue
		}
		fmt.Fprintf(&b, "FAIL %s (%s): %s\n", o.ID, o.Dialect, strings.Join(o.Faults, "; "))
		for _, detail := range o.Details {
			fmt.Fprintf(&b, "     %s\n", detail)
		}
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "dialect\tcases\tpassed\tdisputed")
	for _, s := range r.Scores() {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", s.Dialect, s.Cases, s.Passed, s.Disputed)
	}
	table.Flush()
	_, err := w.Write(b.Bytes())
	return err
}

// WriteJSON writes each outcome as one line of JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for i := range r.outcomes {
		if err := encoder.Encode(&r.outcomes[i]); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
