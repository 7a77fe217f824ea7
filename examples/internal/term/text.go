// Package term is what the programs of examples/ share to write for people: text from strangers
// that a terminal can be trusted with, tables that fit it, and a display that is rewritten in place
// where that can be done. It writes no colours, and what goes to a file or a pipe is plain lines.
package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// Safe returns text as one line that moves no cursor: what is not printable is shown as an escape,
// such as \x1b, \n or \u202e, and the passwords of URLs are replaced. Whatever comes from the
// network or the command line goes through it before it is printed.
func Safe(text string) string {
	text = redact.Text(text)
	if strings.IndexFunc(text, isUnsafe) < 0 {
		return text
	}
	var b strings.Builder
	for _, piece := range pieces(text) {
		if r, size := utf8.DecodeRuneInString(piece); !isUnsafe(r) || size > 1 && r == utf8.RuneError {
			b.WriteString(piece)
		} else {
			b.WriteString(escape(r, piece))
		}
	}
	return b.String()
}

// isUnsafe reports whether a character is not to be sent to a terminal as it is. Octets that are
// not UTF-8 come as utf8.RuneError.
func isUnsafe(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// pieces cuts text into characters, and octets that are none.
func pieces(text string) (pieces []string) {
	for text != "" {
		_, size := utf8.DecodeRuneInString(text)
		pieces = append(pieces, text[:size])
		text = text[size:]
	}
	return pieces
}

// escape shows a character, or an octet that is none.
func escape(r rune, piece string) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r == utf8.RuneError, r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, piece[0])
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Fprintf is fmt.Fprintf with arguments that are [Safe]: texts, errors and what has a String
// method. The format is written as it is.
func Fprintf(w io.Writer, format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			safe[i] = Safe(arg)
		case error:
			safe[i] = Safe(arg.Error())
		case fmt.Stringer:
			safe[i] = Safe(arg.String())
		default:
			safe[i] = arg
		}
	}
	fmt.Fprintf(w, format, safe...)
}

// JSON writes v as indented JSON. Passwords are replaced, and nothing is sent that a terminal would
// obey.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range redact.Text(b.String()) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// Errors writes what went wrong in a program: a line for each of err's text.
func Errors(w io.Writer, program string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		Fprintf(w, "%s: %s\n", program, strings.TrimPrefix(line, "collyrobots: "))
	}
}

// List returns the names of all in one line.
func List[T fmt.Stringer](all []T) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	return strings.Join(names, ", ")
}
