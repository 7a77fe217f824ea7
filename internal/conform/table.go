package conform

import (
	"fmt"
	"strings"

	"github.com/collyrobots/collyrobots/conformance"
)

// A Column has the results of one parser for the tables of conformance/README.md.
type Column struct {
	Name    string
	Results []Result
}

// passedMark is the cell of a case that was passed.
const passedMark = "ok"

// Table returns a table in Markdown with a row for each case and a column for each parser.
func Table(cases []conformance.Case, columns []Column) string {
	var b strings.Builder
	names := []string{"case", "expected"}
	for _, c := range columns {
		names = append(names, c.Name)
	}
	writeRow(&b, names)
	writeRow(&b, repeat("---", len(names)))
	for i := range cases {
		c := &cases[i]
		row := []string{fmt.Sprintf("`%s`", c.ID), Expected(c)}
		for _, column := range columns {
			row = append(row, column.cell(c))
		}
		writeRow(&b, row)
	}
	return b.String()
}

// Expected returns the cell with the expected answer of a case.
func Expected(c *conformance.Case) string {
	if c.Disputed {
		return string(c.Expect) + ", disputed"
	}
	return string(c.Expect)
}

func repeat(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// cell returns how a parser reads a case. If the parser fails the case in several dialects, it is
// how it reads the first of them.
func (c *Column) cell(of *conformance.Case) string {
	text := "not run"
	for i := range c.Results {
		r := &c.Results[i]
		if r.Case.ID != of.ID {
			continue
		}
		if text = r.Cell(); text != passedMark {
			break
		}
	}
	return text
}

// Cell returns the answer in a few words: ok, the wrong decision, error, or what is wrong if the
// decision is right.
func (r *Result) Cell() string {
	switch {
	case r.Passed():
		return passedMark
	case r.Answer.Error != "" || r.Answer.Allowed == nil:
		return "error"
	case *r.Answer.Allowed != (r.Case.Expect == conformance.Allowed):
		return decision(*r.Answer.Allowed)
	}
	what, _, _ := strings.Cut(r.Faults[0], " ")
	return "other " + what
}

func decision(allowed bool) string {
	if allowed {
		return string(conformance.Allowed)
	}
	return string(conformance.Denied)
}

// Summary returns a table in Markdown with a row for each section of a text and a column for each
// parser. A cell is the number of scored cases that the parser passes. A row at the end of each text
// has the sums.
func Summary(cases []conformance.Case, columns []Column) string {
	var b strings.Builder
	names := []string{"section", "cases"}
	for _, c := range columns {
		names = append(names, c.Name)
	}
	writeRow(&b, names)
	writeRow(&b, repeat("---", len(names)))
	sections := sectionsOf(cases)
	for i, s := range sections {
		writeRow(&b, s.row(columns, fmt.Sprintf("%s: %s", s.text, s.title)))
		if i+1 == len(sections) || sections[i+1].text != s.text {
			all := section{text: s.text, prefix: s.text + "/", cases: textCases(sections, s.text)}
			writeRow(&b, bold(all.row(columns, s.text)))
		}
	}
	return b.String()
}

// A section has the cases of one section of a text.
type section struct {
	text   string
	title  string
	prefix string // of the IDs
	cases  []*conformance.Case
}

func sectionsOf(cases []conformance.Case) []section {
	var sections []section
	at := make(map[string]int)
	for i := range cases {
		c := &cases[i]
		text, rest, _ := strings.Cut(c.ID, "/")
		name, _, _ := strings.Cut(rest, "/")
		prefix := text + "/" + name + "/"
		n, ok := at[prefix]
		if !ok {
			n = len(sections)
			at[prefix] = n
			sections = append(sections, section{text: text, title: c.Source.Section, prefix: prefix})
		}
		sections[n].cases = append(sections[n].cases, c)
	}
	return sections
}

// textCases returns the cases of all sections of a text.
func textCases(sections []section, text string) []*conformance.Case {
	var all []*conformance.Case
	for _, s := range sections {
		if s.text == text {
			all = append(all, s.cases...)
		}
	}
	return all
}

func (s *section) row(columns []Column, name string) []string {
	scored := 0
	for _, c := range s.cases {
		if !c.Disputed {
			scored++
		}
	}
	row := []string{name, fmt.Sprint(scored)}
	for _, column := range columns {
		row = append(row, fmt.Sprint(column.passed(s)))
	}
	return row
}

// passed returns how many scored cases of a section the parser passes.
func (c *Column) passed(s *section) int {
	failed := make(map[string]bool)
	run := make(map[string]bool)
	for i := range c.Results {
		r := &c.Results[i]
		if r.Case.Disputed || !strings.HasPrefix(r.Case.ID, s.prefix) {
			continue
		}
		run[r.Case.ID] = true
		if !r.Passed() {
			failed[r.Case.ID] = true
		}
	}
	return len(run) - len(failed)
}

func bold(cells []string) []string {
	for i := range cells {
		cells[i] = "**" + cells[i] + "**"
	}
	return cells
}
