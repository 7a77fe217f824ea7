// Command maketable runs the conformance suite on the parsers of conformance/adapters and on our
// own, and writes the tables: RESULTS.md, and the summary in README.md. Run it in the folder
// conformance:
//
//	(cd adapters/npm && npm install --no-package-lock)
//	go generate
//
// A parser that this machine cannot run is left out, with a message. To include Google's program,
// set the environment variable GOOGLE_ROBOTS to the file that is built from robots_main.cc of
// google/robotstxt.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/internal/conform"
)

// The marks in README.md between which the summary is.
const (
	summaryBegin = "<!-- summary -->\n"
	summaryEnd   = "<!-- end of summary -->\n"
)

const resultsHead = `# How each parser reads each case

` + "`go generate`" + ` in this folder writes this page; see [README.md](README.md) for the parsers and the cases. A cell is "ok" if the
parser answers as expected. Otherwise it is the decision that the parser makes instead, "error" if it makes none, or "other line",
"other delay" and so on if only that part of the answer differs. A parser has one reading of robots.txt, or knows the dialect of the
case if it is collyrobots, so a case of a dialect that a parser does not claim to implement is no fault of the parser.

`

func main() {
	log.SetFlags(0)
	log.SetPrefix("maketable: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "maketable")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cases := conformance.Cases()
	var columns []conform.Column
	for _, p := range parsers(dir) {
		if reason := p.missing(); reason != "" {
			log.Printf("%s is left out: %s", p.name, reason)
			continue
		}
		results, err := conform.Run(context.Background(), p.parser(), cases, conform.Selection{})
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		columns = append(columns, conform.Column{Name: p.name, Results: results})
	}
	if err := os.WriteFile("RESULTS.md", []byte(resultsHead+conform.Table(cases, columns)), 0o644); err != nil {
		return err
	}
	return writeSummary("README.md", conform.Summary(cases, columns))
}

// A parser is a column of the tables.
type parser struct {
	name  string
	build []string // a command that is run first, in adapters
	args  []string // the program; empty for our own parser
	needs []string // files that must exist
}

func parsers(dir string) []parser {
	list := []parser{
		{name: "collyrobots"},
		goParser(dir, "temoto"),
		goParser(dir, "grobotstxt"),
		{
			name: "Python",
			args: []string{"python3", "adapters/python/adapter.py"},
		},
		{
			name:  "robots-parser",
			args:  []string{"node", "adapters/npm/adapter.js"},
			needs: []string{"adapters/npm/node_modules/robots-parser"},
		},
		{
			name:  "Google's C++",
			args:  []string{"python3", "adapters/google/adapter.py", os.Getenv("GOOGLE_ROBOTS")},
			needs: []string{os.Getenv("GOOGLE_ROBOTS")},
		},
	}
	return list
}

// goParser returns the parser of a Go program in adapters.
func goParser(dir, name string) parser {
	file := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	return parser{name: name, build: []string{"go", "build", "-o", file, "./" + name}, args: []string{file}}
}

// missing says what this machine lacks to run the parser. It builds the parser if that is
// necessary.
func (p *parser) missing() string {
	if p.build != nil {
		build := exec.Command(p.build[0], p.build[1:]...)
		build.Dir = "adapters"
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
	}
	for _, file := range p.needs {
		if _, err := os.Stat(file); err != nil {
			return fmt.Sprintf("there is no file %q", file)
		}
	}
	if len(p.args) > 0 {
		if _, err := exec.LookPath(p.args[0]); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (p *parser) parser() conform.Parser {
	if len(p.args) == 0 {
		return conform.Own
	}
	program := &conform.Program{Args: p.args, Stderr: os.Stderr, Limit: 10 * time.Minute}
	return program.Ask
}

// writeSummary replaces the summary in a file.
func writeSummary(name, summary string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(page), summaryBegin)
	_, tail, foundEnd := strings.Cut(rest, summaryEnd)
	if !found || !foundEnd {
		return fmt.Errorf("%s has no marks for the summary", name)
	}
	return os.WriteFile(name, []byte(head+summaryBegin+summary+summaryEnd+tail), 0o644)
}
