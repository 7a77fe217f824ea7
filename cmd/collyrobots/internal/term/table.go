package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Table has a head and rows. It makes its cells [Safe], so they may be any text.
type Table struct {
	columns []Column
	rows    [][]string
}

// A Column is a column of a [Table]. In a terminal that is too narrow, cells are cut first, then
// columns are left out. Cells of the last column are never cut: they continue on the following
// lines. The last column is left out if all of its cells are empty.
type Column struct {
	Head  string
	Right bool // the cells are aligned to the right
	Least int  // cells may be cut to this width; if 0, they are not cut
	Spare bool // the column may be left out

	Paint func(cell string) string // colors a cell or the head; if nil, they are not colored
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row with a cell for each column. An empty cell is shown as a dash, except in the last
// column.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.columns))
	copy(row, cells)
	for i, cell := range row {
		row[i] = Safe(cell)
		if row[i] == "" && i < len(row)-1 {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

const (
	tableIndent = 2  // the spaces before each row
	tableGap    = 2  // the spaces between two columns
	leastTail   = 20 // the smallest width of a last column that is beside the others
)

// Print writes the table for a terminal of the given width. If width is 0, lines may have any
// length. Lines do not end in spaces. If no column has a head, there is no line for the heads.
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

// paint colors a cell of the i-th column.
func (t *Table) paint(i int, cell string) string {
	if paint := t.columns[i].Paint; paint != nil && cell != "" {
		return paint(cell)
	}
	return cell
}

// fit returns the indexes of the columns to show, and the widths of all columns. First the last column is
// beside the others, and spare columns are left out one by one. If that is not enough, the last column
// is below the others.
func (t *Table) fit(width int) (shown []int, widths []int) {
	natural := t.naturalWidths()
	for i := range t.columns {
		if i < len(t.columns)-1 || t.hasTail() {
			shown = append(shown, i)
		}
	}
	if width == 0 {
		return shown, natural
	}
	for {
		widths = slices.Clone(natural)
		if t.shrink(shown, widths, width, leastTail) {
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
	widths = slices.Clone(natural)
	t.shrink(shown, widths, width, -tableGap)
	return shown, widths
}

// hasTail reports whether a cell of the last column is not empty.
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

// shrink reduces the widths of columns, the widest first, until the table fits into width, with a last
// column of the given width. It reports whether the table fits.
func (t *Table) shrink(shown, widths []int, width, tail int) bool {
	for {
		total := tableIndent - tableGap
		widest := -1
		for _, i := range shown {
			total += tableGap
			if i == len(t.columns)-1 && !t.columns[i].Right {
				total += min(tail, widths[i])
			} else {
				total += widths[i]
			}
			least := t.columns[i].Least
			if least > 0 && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
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
	begin := tableIndent // the columns of line
	for n, i := range shown {
		if n > 0 {
			line += strings.Repeat(" ", tableGap)
			begin += tableGap
		}
		if i == len(t.columns)-1 && !t.columns[i].Right {
			t.printTail(w, line, begin, row[i], width)
			return
		}
		cell := cut(row[i], widths[i])
		padding := strings.Repeat(" ", widths[i]-columnsOf(cell))
		cell = t.paint(i, cell)
		begin += widths[i]
		if t.columns[i].Right {
			line += padding + cell
		} else {
			line += cell + padding
		}
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// printTail writes a line, which has begin columns, and the last cell of a row. The cell continues
// on the following lines. It starts below the line if there is too little room beside it.
func (t *Table) printTail(w io.Writer, line string, begin int, cell string, width int) {
	room := width - begin
	if width > 0 && cell != "" && room < min(leastTail, columnsOf(cell)) {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		begin = 2 * tableIndent
		line = strings.Repeat(" ", begin)
		room = max(width-begin, 1)
	}
	for _, part := range Wrap(cell, max(room, 0)) {
		part = strings.TrimRight(part, " ")
		fmt.Fprintln(w, strings.TrimRight(line+t.paint(len(t.columns)-1, part), " "))
		line = strings.Repeat(" ", begin)
	}
}

// Paragraph writes a text, which must be [Safe], in lines that fit into width. All lines except the
// first are indented.
func Paragraph(w io.Writer, text string, indent, width int) {
	PaintedParagraph(w, text, indent, width, "", "")
}

// PaintedParagraph is like Paragraph, but writes painted in place of the first occurrence of a word.
func PaintedParagraph(w io.Writer, text string, indent, width int, word, painted string) {
	if width > 0 {
		width = max(width-indent, 10)
	}
	lines := strings.Join(Wrap(text, width), "\n"+strings.Repeat(" ", indent))
	fmt.Fprintln(w, strings.Replace(lines, word, painted, 1))
}
