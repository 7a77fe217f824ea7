package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/collyrobots/collyrobots/conformance"
)

// WriteText writes the cases that were not passed, and a table of the scores. It leaves out
// disputed cases.
func WriteText(w io.Writer, results []Result) error {
	var b bytes.Buffer
	for i := range results {
		r := &results[i]
		if r.Passed() || r.Case.Disputed {
			continue
		}
		fmt.Fprintf(&b, "FAIL %s (%s): %s\n", r.Case.ID, r.Dialect, strings.Join(r.Faults, "; "))
		fmt.Fprintf(&b, "     %s\n", r.Case.About)
		fmt.Fprintf(&b, "     agent %s, %s\n", r.Case.Agent, r.Case.URL)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "dialect\tcases\tpassed\tdisputed")
	for _, s := range Scores(results) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", s.Dialect, s.Cases, s.Passed, s.Disputed)
	}
	table.Flush()
	_, err := w.Write(b.Bytes())
	return err
}

// resultJSON is a result in the output of WriteJSON.
type resultJSON struct {
	ID       string             `json:"id"`
	Dialect  string             `json:"dialect"`
	Passed   bool               `json:"passed"`
	Disputed bool               `json:"disputed,omitempty"`
	Faults   []string           `json:"faults,omitempty"`
	Answer   conformance.Answer `json:"answer"`
}

// WriteJSON writes each result as one line of JSON.
func WriteJSON(w io.Writer, results []Result) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for i := range results {
		r := &results[i]
		line := resultJSON{
			ID:       r.Case.ID,
			Dialect:  r.Dialect,
			Passed:   r.Passed(),
			Disputed: r.Case.Disputed,
			Faults:   r.Faults,
			Answer:   r.Answer,
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
