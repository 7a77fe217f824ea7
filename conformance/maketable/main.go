// Command maketable runs the conformance suite on the parsers and crawlers of
// internal/interop/adapters and on our own, and writes the tables: RESULTS.md, and the summaries in
// README.md. Run it in the folder conformance:
//
//	(cd ../internal/interop/adapters/npm && npm install --no-package-lock)
//	go generate
//
// A parser that this machine cannot run is left out, with a message. To include Google's program,
// set the environment variable GOOGLE_ROBOTS to the file that is built from robots_main.cc of
// google/robotstxt.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
	"github.com/collyrobots/collyrobots/conformance/runner/crawl"
)

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
	parsers, err := columns(parsersIn(dir), runner.Suite)
	if err != nil {
		return err
	}
	crawlers, err := columns(crawlersIn(dir), crawl.Suite)
	if err != nil {
		return err
	}
	rows := runner.Rows(conformance.Cases())
	fetchRows := runner.FetchRows(conformance.FetchCases())
	return writeTables(map[string]string{
		"results":       runner.Table(rows, parsers),
		"fetch results": runner.Table(fetchRows, crawlers),
		"summary":       runner.Summary(rows, parsers),
		"fetch summary": runner.Summary(fetchRows, crawlers),
	})
}

// adapters is the folder of the programs, relative to the folder conformance.
const adapters = "../internal/interop/adapters/"

// An adapter is a column of a table.
type adapter struct {
	name  string
	build []string // a command that is run first, in the folder adapters
	args  []string // the program; empty for our own code
	needs []string // files that must exist
}

func parsersIn(dir string) []adapter {
	google := os.Getenv("GOOGLE_ROBOTS")
	return []adapter{
		{name: "collyrobots"},
		goAdapter(dir, "temoto"),
		goAdapter(dir, "grobotstxt"),
		pythonAdapter(adapters + "python/adapter.py"),
		{name: "robots-parser", args: []string{"node", adapters + "npm/adapter.js"}, needs: []string{adapters + "npm/node_modules/robots-parser"}},
		{name: "Google's C++", args: []string{"python3", adapters + "google/adapter.py", google}, needs: []string{google}},
	}
}

func crawlersIn(dir string) []adapter {
	colly := goAdapter(dir, "colly")
	colly.name = "Colly"
	return []adapter{
		{name: "collyrobots"},
		colly,
		pythonAdapter(adapters + "python/crawler.py"),
	}
}

// pythons are the names of programs that may be Python, the newest version first. urllib.robotparser
// reads RFC 9309 in 3.13 and 3.14 since May 2026, and not in earlier versions.
var pythons = []string{"python3.15", "python3.14", "python3.13", "python3"}

// pythonAdapter returns the adapter that is a Python program. It uses the newest Python that the
// machine has, and names its version and the year of the version.
func pythonAdapter(file string) adapter {
	const print = "import platform, sys; print('Python', platform.python_version(), '(' + sys.copyright.split('-')[1][:4] + ')')"
	for _, python := range pythons {
		name, err := exec.Command(python, "-c", print).Output()
		if err == nil {
			return adapter{name: strings.TrimSpace(string(name)), args: []string{python, file}}
		}
	}
	return adapter{name: "Python", args: []string{"python3", file}}
}

// goAdapter returns the adapter that is a Go program in adapters.
func goAdapter(dir, name string) adapter {
	file := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	return adapter{name: name, build: []string{"go", "build", "-o", file, "./" + name}, args: []string{file}}
}

// A suite runs the selected cases on a program, or on our own code if it is nil.
type suite func(context.Context, *runner.Program, runner.Selection) (*runner.Report, error)

// columns runs the cases on each adapter that this machine can run.
func columns(list []adapter, run suite) ([]runner.Column, error) {
	var columns []runner.Column
	for _, a := range list {
		if reason := a.missing(); reason != "" {
			log.Printf("%s is left out: %s", a.name, reason)
			continue
		}
		report, err := run(context.Background(), a.program(), runner.Selection{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		columns = append(columns, runner.NewColumn(a.name, report))
	}
	return columns, nil
}

// missing says what this machine lacks to run the adapter. It builds the adapter if that is
// necessary.
func (a *adapter) missing() string {
	for _, file := range a.needs {
		if file == "" {
			return "the variable with its file is not set"
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Sprintf("there is no file %q", file)
		}
	}
	if a.build != nil {
		build := exec.Command(a.build[0], a.build[1:]...)
		build.Dir = adapters
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
	}
	if len(a.args) > 0 {
		if _, err := exec.LookPath(a.args[0]); err != nil {
			return err.Error()
		}
	}
	return ""
}

// program returns the program of the adapter, or nil for our own code.
func (a *adapter) program() *runner.Program {
	if len(a.args) == 0 {
		return nil
	}
	return &runner.Program{Args: a.args, Stderr: io.Discard, Limit: 10 * time.Minute, AnswerLimit: 5 * time.Second}
}

// writeTables replaces the tables in the pages of the current folder. The text of a table is
// between two comments with its name.
func writeTables(tables map[string]string) error {
	for _, name := range []string{"README.md", "RESULTS.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text := string(page)
		for title, table := range tables {
			begin := fmt.Sprintf("<!-- %s -->\n", title)
			end := fmt.Sprintf("<!-- end of %s -->\n", title)
			head, rest, found := strings.Cut(text, begin)
			if !found {
				continue
			}
			_, tail, found := strings.Cut(rest, end)
			if !found {
				return fmt.Errorf("%s has no %q", name, end)
			}
			text = head + begin + table + end + tail
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
