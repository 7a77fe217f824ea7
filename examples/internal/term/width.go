package term

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// Width returns how many columns the terminal has that w leads to; 0: w leads elsewhere, and lines
// may have any length.
func Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns < 1 {
		return 80
	}
	return columns
}

// columnsOf returns how many columns a text takes that is [Safe].
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

func columnsOfRune(r rune) int {
	if r < 0x300 {
		return 1
	}
	switch kind := width.LookupRune(r).Kind(); {
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0 // it stands on the one before
	}
	return 1
}

// cut returns a text that takes no more than so many columns: where it is longer, with an ellipsis
// for its end.
func cut(text string, columns int) string {
	if columnsOf(text) <= columns {
		return text
	}
	head, _ := split(text, max(columns-1, 0))
	return head + "…"
}

// split cuts a text after so many columns, at least one character.
func split(text string, columns int) (head, tail string) {
	n := 0
	for i, r := range text {
		if n += columnsOfRune(r); n > columns && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// Wrap returns the lines of a text in lines of so many columns, cut at blanks where there are some.
// Without a width it is one line.
func Wrap(text string, columns int) (lines []string) {
	if columns <= 0 {
		return []string{text}
	}
	for columnsOf(text) > columns {
		head, tail := split(text, columns)
		if tail == "" {
			break
		}
		if i := strings.LastIndexByte(head, ' '); i > 0 && tail[0] != ' ' {
			head, tail = head[:i], head[i:]+tail
		}
		lines = append(lines, head)
		text = strings.TrimPrefix(tail, " ")
	}
	return append(lines, text)
}
