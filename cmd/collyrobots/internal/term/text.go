// Package term writes the output of programs for people: of the command collyrobots and of the
// programs in examples/. It makes text from the network safe for a terminal, fits tables into the
// terminal, colors words, and rewrites a display of the progress in place if the terminal allows
// it. It writes plain lines to files and pipes.
package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Safe returns text as one line that cannot control a terminal. It replaces characters that are not
// printable by escapes such as \x1b, \n or \u202e, and it replaces passwords in URLs. The programs
// call it for everything from the network or the command line that they print.
func Safe(text string) string {
	text = withoutPasswords(text)
	quoted := strconv.Quote(text)
	return withoutQuotes.Replace(quoted[1 : len(quoted)-1])
}

// withoutQuotes undoes the escapes of strconv.Quote for printable characters.
var withoutQuotes = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// Fprintf is like fmt.Fprintf but makes arguments [Safe] that are strings, errors or have a String
// method. It does not change the format.
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

// JSON writes v as indented JSON. It replaces passwords, and escapes characters that could control
// a terminal.
func JSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// JSONLine is like JSON but writes one line.
func JSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, r := range withoutPasswords(b.String()) {
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

// Errors writes an error of a program, with the program's name before each line of its text.
func Errors(w io.Writer, program string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		Fprintf(w, "%s: %s\n", program, strings.TrimPrefix(line, "collyrobots: "))
	}
}

// List returns the names of all values, separated by commas.
func List[T fmt.Stringer](all []T) string {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.String()
	}
	return strings.Join(names, ", ")
}
