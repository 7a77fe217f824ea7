// Command maketable runs the conformance suite on the parsers and crawlers of
// internal/interop/adapters and on our own, and writes the tables: RESULTS.md, the summaries in
// README.md, and the cases that most parsers fail in docs/tools/conformance.md. Run it in the folder
// conformance:
//
//	../internal/interop/adapters/install
//	go generate
//
// The first command installs the parsers and crawlers, on Debian. One that the machine does not have
// is left out, and a table says so. To include Google's program, set the environment variable
// GOOGLE_ROBOTS to the file that is built from robots_main.cc of google/robotstxt.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
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
	parsers, missing, err := columns(parsersIn(dir), runner.Suite)
	if err != nil {
		return err
	}
	crawlers, missingCrawlers, err := columns(crawlersIn(dir), crawl.Suite)
	if err != nil {
		return err
	}
	rows := runner.Rows(conformance.Cases())
	fetchRows := runner.FetchRows(conformance.FetchCases())
	return writeTables(map[string]string{
		"summary":       runner.Summary(rows, parsers, runner.ByText),
		"fetch summary": runner.Summary(fetchRows, crawlers, runner.BySection, runner.ByText),
		"sections":      runner.Sections(rows, parsers),
		"results":       runner.Table(rows, parsers),
		"hard cases":    runner.Hard(rows, parsers[1:], "rfc9309"), // without our own
		"fetch results": runner.Table(fetchRows, crawlers),
		"not run":       notRunTable(append(missing, missingCrawlers...)),
	})
}

// A suite runs the selected cases on a program, or on our own code if it is nil.
type suite func(context.Context, *runner.Program, runner.Selection) (*runner.Report, error)

// columns runs the cases on each adapter. It also returns the adapters that this machine cannot run,
// and the reasons.
func columns(list []adapter, run suite) (columns []runner.Column, missing [][2]string, err error) {
	for _, a := range list {
		version, err := a.prepare()
		if err != nil {
			log.Printf("%s is left out: %v", a.name, err)
			missing = append(missing, [2]string{a.name, "The machine that made this table does not have it."})
			continue
		}
		start := time.Now()
		report, err := run(context.Background(), a.program(), runner.Selection{})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", a.name, err)
		}
		log.Printf("%s %s: %v", a.name, version, time.Since(start).Round(time.Second))
		c := runner.NewColumn(a.name, report)
		c.Version = version
		c.Released = released[a.name+" "+version]
		columns = append(columns, c)
	}
	return columns, missing, nil
}

// program returns the program of the adapter, or nil for our own code.
func (a *adapter) program() *runner.Program {
	if len(a.args) == 0 {
		return nil
	}
	return &runner.Program{Args: a.args, Stderr: io.Discard, Limit: 10 * time.Minute, AnswerLimit: 5 * time.Second}
}

// pages are the pages with tables, relative to the folder conformance.
var pages = []string{"README.md", "RESULTS.md", "../docs/tools/conformance.md"}

// writeTables replaces the tables in pages. The text of a table is between two comments with its
// name.
func writeTables(tables map[string]string) error {
	for _, name := range pages {
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
