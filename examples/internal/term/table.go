package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Table is rows under a head. Its cells may be any text: they are made [Safe].
type Table struct {
	columns []Column
	rows    [][]string
}

// A Column is one of a [Table]. In a terminal that is too narrow, columns are first cut, then left
// out. The cells of the last column go on in lines below, so that nothing of them is lost; without
// any it is not shown.
type Column struct {
	Head  string
	Right bool // numbers stand to the right
	Least int  // to how many columns of the terminal it may be cut, or half of that at worst; 0: it is not
	Spare bool // it may be left out
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row, with a cell for each column. An empty cell is shown as a dash, but for the last.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	copy(row, cells)
	for i := range row {
		if row[i] = Safe(row[i]); row[i] == "" && i < len(row)-1 {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

const (
	tableIndent = 2  // before each row
	tableGap    = 2  // between two columns
	leastTail   = 20 // for the last column beside the others
)

// Print writes the table, to fit a terminal of so many columns; 0: any. Lines do not end in blanks.
// Where no column has a head there is no line for them.
func (t *Table) Print(w io.Writer, width int) {
	shown, widths := t.fit(width)
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = c.Head
	}
	if strings.Join(heads, "") != "" {
		t.print(w, heads, shown, widths, width)
	}
	for _, row := range t.rows {
		t.print(w, row, shown, widths, width)
	}
}

// fit returns which columns are shown, and how wide all are: with room for the last column beside
// the others, where columns may be left out for that, or else below them, and then with columns
// that are cut to half of their Least.
func (t *Table) fit(width int) (shown []int, widths []int) {
	natural := t.naturalWidths()
	for i := range t.columns {
		if i < len(t.columns)-1 || t.hasTail() {
			shown = append(shown, i)
		}
	}
	for {
		if widths = slices.Clone(natural); width == 0 || t.shrink(shown, widths, width, leastTail, 1) {
			return shown, widths
		}
		spare := len(shown) - 1
		for spare >= 0 && !t.columns[shown[spare]].Spare {
			spare--
		}
		if spare < 0 {
			break
		}
		shown = slices.Delete(shown, spare, spare+1)
	}
	if widths = slices.Clone(natural); !t.shrink(shown, widths, width, -tableGap, 1) {
		t.shrink(shown, widths, width, -tableGap, 2)
	}
	return shown, widths
}

// hasTail reports whether there is something in the last column.
func (t *Table) hasTail() bool {
	last := len(t.columns) - 1
	return slices.ContainsFunc(t.rows, func(row []string) bool { return row[last] != "" })
}

func (t *Table) naturalWidths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = columnsOf(c.Head)
		for _, row := range t.rows {
			widths[i] = max(widths[i], columnsOf(row[i]))
		}
	}
	return widths
}

// shrink cuts columns, the widest first, until the table fits with so much of its tail, but none to
// less than its Least divided by a number. It reports whether it does.
func (t *Table) shrink(shown, widths []int, width, tail, by int) bool {
	for {
		total, widest := tableIndent-tableGap, -1
		for _, i := range shown {
			total += tableGap + widths[i]
			if i == len(t.columns)-1 && !t.columns[i].Right {
				total += min(tail, widths[i]) - widths[i]
			}
			if least := t.columns[i].Least / by; least > 0 && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if total <= width {
			return true
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
}

func (t *Table) print(w io.Writer, row []string, shown, widths []int, width int) {
	line := strings.Repeat(" ", tableIndent)
	for n, i := range shown {
		if n > 0 {
			line += strings.Repeat(" ", tableGap)
		}
		if i == len(t.columns)-1 && !t.columns[i].Right {
			t.printTail(w, line, row[i], width)
			return
		}
		cell := cut(row[i], widths[i])
		padding := strings.Repeat(" ", widths[i]-columnsOf(cell))
		if t.columns[i].Right {
			line += padding + cell
		} else {
			line += cell + padding
		}
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// printTail writes the last cell behind a line, and goes on below.
func (t *Table) printTail(w io.Writer, line, cell string, width int) {
	begin := columnsOf(line)
	room := width - begin
	if width > 0 && cell != "" && room < min(leastTail, columnsOf(cell)) {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		begin = 2 * tableIndent
		line, room = strings.Repeat(" ", begin), max(width-begin, 1)
	}
	for _, part := range Wrap(cell, max(room, 0)) {
		fmt.Fprintln(w, strings.TrimRight(line+part, " "))
		line = strings.Repeat(" ", begin)
	}
}

// Paragraph writes a text that is already safe, in lines that fit, with an indent but for the first
// line.
func Paragraph(w io.Writer, text string, indent, width int) {
	if width > 0 {
		width = max(width-indent, 10)
	}
	for i, line := range Wrap(text, width) {
		if i > 0 {
			line = strings.Repeat(" ", indent) + line
		}
		fmt.Fprintln(w, line)
	}
}
