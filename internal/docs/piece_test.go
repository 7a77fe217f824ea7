package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A piece is the text of a fenced code block.
type piece struct {
	page   string // the file that contains it
	line   int    // the line where it begins
	text   string
	kind   kind
	prints string // the output that the guide shows, or empty if it shows none
}

type kind int

const (
	commands kind = iota
	program
	test
	fragment
)

func (p *piece) name() string { return fmt.Sprintf("%s:%d", p.page, p.line) }

// id returns the name as a Go identifier.
func (p *piece) id() string { return regexp.MustCompile(`\W`).ReplaceAllString(p.name(), "_") }

// folder returns the folder where the Go code of a piece is compiled. Pieces share a folder where
// possible, because each package takes long to compile.
func (p *piece) folder() string {
	switch declares := strings.Count("\n"+p.text, "\nfunc ") + strings.Count(p.text, "\ntype "); {
	case p.kind == program && declares > 1:
		return p.id()
	case p.kind == program:
		return "programs"
	case declares > 0: // a test, or declarations for the tests of the same page
		return regexp.MustCompile(`\W`).ReplaceAllString(p.page, "_")
	}
	return "fragments"
}

// piecesOf returns the pieces of a page.
func piecesOf(t *testing.T, page string) (pieces []*piece) {
	t.Helper()
	var last *piece // the piece whose output a following text block is
	lines := strings.Split(read(t, page), "\n")
	for i := 0; i < len(lines); i++ {
		info, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			if strings.TrimSpace(lines[i]) != "" {
				last = nil
			}
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the code block has no end", page, begin)
		}
		p := &piece{page: page, line: begin, text: strings.Join(lines[begin:i], "\n") + "\n"}
		switch info {
		case "go":
			p.kind = kindOf(p.text)
		case "sh":
			p.kind = commands
		case "text":
			if last == nil {
				t.Errorf("%s:%d: the output does not follow a piece", page, begin)
			} else {
				last.prints = p.text
			}
			continue
		case "robots":
			continue
		default:
			t.Errorf("%s:%d: unknown language %q", page, begin, info)
			continue
		}
		last = p
		pieces = append(pieces, p)
	}
	return pieces
}

func kindOf(text string) kind {
	switch {
	case strings.HasPrefix(text, "package main\n"):
		return program
	case strings.HasPrefix(text, "func Test"):
		return test
	}
	return fragment
}
