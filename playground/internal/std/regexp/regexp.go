// Package regexp takes the place of regexp in the WebAssembly of the playground. It has what
// temoto/robotstxt needs for its patterns: literal text, ".*" for a wildcard and "$" for the end.
package regexp

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
)

// special has the characters with a meaning in the regular expressions of Go.
const special = `\.+*?()|[]{}^$`

// QuoteMeta returns s with a backslash before each special character.
func QuoteMeta(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(special, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// A Regexp matches a text that contains its pieces in order. It is immutable.
type Regexp struct {
	expr   string
	pieces []piece // at least one; there is a wildcard between two pieces
}

// A piece is literal text.
type piece struct {
	text  []byte
	final bool // the text must end after the piece
	never bool // the piece goes on after the end of the text, so it matches nothing
}

// add adds a byte of literal text.
func (p *piece) add(c byte) {
	p.text = append(p.text, c)
	p.never = p.final
}

// Compile returns an error if expr is not UTF-8, or has anything except literal text, ".*" and "$".
func Compile(expr string) (*Regexp, error) {
	if !utf8.ValidString(expr) {
		return nil, errors.New("regexp: invalid UTF-8")
	}
	pieces := make([]piece, 1)
	for i := 0; i < len(expr); i++ {
		last := &pieces[len(pieces)-1]
		switch c := expr[i]; {
		case strings.HasPrefix(expr[i:], ".*"):
			i++
			pieces = append(pieces, piece{})
		case c == '$':
			last.final = true
		case c == '\\' && i+1 < len(expr) && strings.IndexByte(special, expr[i+1]) >= 0:
			i++
			last.add(expr[i])
		case strings.IndexByte(special, c) >= 0:
			return nil, errors.New("regexp: neither literal text nor a wildcard: " + expr[i:])
		default:
			last.add(c)
		}
	}
	return &Regexp{expr: expr, pieces: pieces}, nil
}

// String returns the expression.
func (r *Regexp) String() string { return r.expr }

// MatchString reports whether s contains a match. s is the path and query of a URL, which are ASCII
// without a line feed.
func (r *Regexp) MatchString(s string) bool {
	rest := []byte(s)
	for _, p := range r.pieces {
		at := bytes.Index(rest, p.text)
		if p.final {
			at = len(rest) - len(p.text)
		}
		if p.never || at < 0 || !bytes.HasPrefix(rest[at:], p.text) {
			return false
		}
		rest = rest[at+len(p.text):]
	}
	return true
}
