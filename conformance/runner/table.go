package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/collyrobots/collyrobots/conformance"
)

// A Row is a case in the tables of conformance.
type Row struct {
	ID       string
	Section  string // of its source
	Expected string // the text in the column of that name
	Disputed bool
}

// A Column has the outcomes of one parser or crawler.
type Column struct {
	Name     string
	Version  string          // "" if the table names none
	Released string          // the month of the version, such as "2026-05"
	cells    map[string]cell // by ID
}

// A cell says how a parser reads a case.
type cell struct {
	text   string
	passed bool
}

// NewColumn returns a Column with the outcomes of a Report. If a case was failed in several
// dialects, its cell is about the first of them.
func NewColumn(name string, r *Report) Column {
	c := Column{Name: name, cells: make(map[string]cell)}
	for i := range r.outcomes {
		o := &r.outcomes[i]
		if before, ok := c.cells[o.ID]; !ok || before.passed {
			c.cells[o.ID] = cell{text: o.text(), passed: o.Passed}
		}
	}
	return c
}

// Cell returns the text for a case: "ok", the decision if it is wrong, "error", or the part of the
// answer that is wrong, as in "other line". It returns "not run" if there is no outcome.
func (c *Column) Cell(id string) string {
	if x, ok := c.cells[id]; ok {
		return x.text
	}
	return "not run"
}

func (o *Outcome) text() string {
	switch {
	case o.Passed:
		return "ok"
	case o.Answer == nil:
		return "other requests"
	case o.Answer.Error != "" || o.Answer.Allowed == nil:
		return "error"
	}
	first, _, wrong := strings.Cut(o.Faults[0], ", want ")
	if wrong && (first == string(conformance.Allowed) || first == string(conformance.Denied)) {
		return first
	}
	what, _, _ := strings.Cut(first, " ")
	return "other " + what
}

// Rows returns the rows of cases.
func Rows(cases []conformance.Case) []Row {
	rows := make([]Row, len(cases))
	for i := range cases {
		c := &cases[i]
		rows[i] = Row{ID: c.ID, Section: c.Source.Section, Expected: string(c.Expect), Disputed: c.Disputed}
	}
	return rows
}

// FetchRows returns the rows of fetch cases.
func FetchRows(cases []conformance.FetchCase) []Row {
	rows := make([]Row, len(cases))
	for i := range cases {
		c := &cases[i]
		rows[i] = Row{ID: c.ID, Section: groupOf(c.ID), Expected: strings.Join(c.Requested, " "), Disputed: c.Disputed}
	}
	return rows
}

// groupOf returns the second part of an ID.
func groupOf(id string) string {
	_, rest, _ := strings.Cut(id, "/")
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// Table returns a table in Markdown with a row for each case and a column for each parser.
func Table(rows []Row, columns []Column) string {
	var b strings.Builder
	writeHead(&b, []string{"case", "expected"}, columns)
	for _, r := range rows {
		expected := r.Expected
		if r.Disputed {
			expected += " (disputed)"
		}
		line := []string{"`" + r.ID + "`", expected}
		for _, c := range columns {
			line = append(line, c.Cell(r.ID))
		}
		writeRow(&b, line)
	}
	return b.String()
}

func writeHead(b *strings.Builder, names []string, columns []Column) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	writeRow(b, names)
	writeRow(b, slices.Repeat([]string{"---"}, len(names)))
}

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// ByText returns the name of the text of a row, which is the first part of its ID.
func ByText(r Row) string {
	text, _, _ := strings.Cut(r.ID, "/")
	return text
}

// BySection returns the section of a row.
func BySection(r Row) string { return r.Section }

// Summary returns a table in Markdown with a row for each parser. Its columns are the values of the
// keys, such as ByText. A cell is the number of scored cases with this value that the parser passes.
// The first row has the number of scored cases.
func Summary(rows []Row, columns []Column, keys ...func(Row) string) string {
	var parts [][]Row
	head := []string{"parser", "version", "released"}
	scored := scoredOf(rows)
	for _, key := range keys {
		for _, part := range splitBy(scored, key) {
			head = append(head, key(part[0]))
			parts = append(parts, part)
		}
	}
	var b strings.Builder
	writeHead(&b, head, nil)
	total := []string{"all scored cases", "", ""}
	for _, part := range parts {
		total = append(total, strconv.Itoa(len(part)))
	}
	writeRow(&b, total)
	for _, c := range columns {
		line := []string{c.Name, c.Version, c.Released}
		for _, part := range parts {
			line = append(line, strconv.Itoa(c.passed(part)))
		}
		writeRow(&b, line)
	}
	return b.String()
}

func scoredOf(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Disputed })
}

// Sections returns a table in Markdown with a row for each section of a text and a column for each
// parser. A cell is the number of scored cases that the parser passes. Sections without scored
// cases are left out. The sections of each text are followed by a row with their sums.
func Sections(rows []Row, columns []Column) string {
	var b strings.Builder
	writeHead(&b, []string{"section", "cases"}, columns)
	for _, text := range splitBy(scoredOf(rows), ByText) {
		for _, section := range splitBy(text, func(r Row) string { return groupOf(r.ID) }) {
			name := fmt.Sprintf("%s: %s", ByText(section[0]), section[0].Section)
			writeRow(&b, countsOf(name, section, columns))
		}
		sums := countsOf(ByText(text[0]), text, columns)
		for i := range sums {
			sums[i] = "**" + sums[i] + "**"
		}
		writeRow(&b, sums)
	}
	return b.String()
}

// splitBy divides rows by a key, in the order of the first row with each key.
func splitBy(rows []Row, key func(Row) string) [][]Row {
	var parts [][]Row
	at := make(map[string]int)
	for _, r := range rows {
		n, ok := at[key(r)]
		if !ok {
			n = len(parts)
			at[key(r)] = n
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], r)
	}
	return parts
}

// Hard returns a table in Markdown of the scored cases of a text that at least half of the parsers
// fail, and of the number of these parsers. The cases that most parsers fail come first.
func Hard(rows []Row, parsers []Column, text string) string {
	failing := func(r Row) int {
		n := 0
		for _, p := range parsers {
			n += 1 - p.passed([]Row{r})
		}
		return n
	}
	hard := slices.DeleteFunc(scoredOf(rows), func(r Row) bool { return ByText(r) != text || 2*failing(r) < len(parsers) })
	slices.SortStableFunc(hard, func(a, b Row) int { return failing(b) - failing(a) })
	var b strings.Builder
	writeHead(&b, []string{"case", fmt.Sprintf("of %d parsers fail", len(parsers))}, nil)
	for _, r := range hard {
		writeRow(&b, []string{"`" + r.ID + "`", strconv.Itoa(failing(r))})
	}
	return b.String()
}

// countsOf returns a line of Sections: a name, the number of rows, and how many of them each parser
// passes.
func countsOf(name string, rows []Row, columns []Column) []string {
	line := []string{name, strconv.Itoa(len(rows))}
	for _, c := range columns {
		line = append(line, strconv.Itoa(c.passed(rows)))
	}
	return line
}

// passed returns how many of the rows the parser passes.
func (c *Column) passed(rows []Row) int {
	n := 0
	for _, r := range rows {
		if c.cells[r.ID].passed {
			n++
		}
	}
	return n
}
