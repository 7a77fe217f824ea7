package term

import (
	"fmt"
	"io"
	"os"
)

// A Color is a color of a word in a terminal, as its number in an escape sequence.
type Color int

// The colors.
const (
	Red    Color = 31
	Green  Color = 32
	Yellow Color = 33
	Blue   Color = 34
)

// A Painter colors words for a writer. The zero Painter leaves them as they are.
type Painter struct{ colored bool }

// NewPainter returns a Painter for w. It colors words if w is a terminal that has colors and the
// variable NO_COLOR is empty (no-color.org).
func NewPainter(w io.Writer) Painter {
	kind := os.Getenv("TERM")
	return Painter{colored: Width(w) > 0 && kind != "" && kind != "dumb" && os.Getenv("NO_COLOR") == ""}
}

// Paint returns a text in a color. The text must be [Safe], and its width must be computed before.
func (p Painter) Paint(c Color, text string) string {
	if !p.colored || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", c, text)
}
