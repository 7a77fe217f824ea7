package term

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// Width returns the number of columns of the terminal w. It returns 0 if w is not a terminal, so
// that lines may have any length.
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

// columnsOf returns the width of a text, which must be [Safe].
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
		return 0 // it is drawn over the character before it
	}
	return 1
}

// cut returns the text if it is not wider than columns, otherwise its beginning and an ellipsis.
func cut(text string, columns int) string {
	if columnsOf(text) <= columns {
		return text
	}
	head, _ := split(text, max(columns-1, 0))
	return head + "…"
}

// split splits a text after the given number of columns, or after the first character if that is
// wider.
func split(text string, columns int) (head, tail string) {
	n := 0
	for i, r := range text {
		n += columnsOfRune(r)
		if n > columns && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// Wrap splits a text into lines of at most the given width, at spaces if possible. If columns is 0,
// it returns one line.
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
