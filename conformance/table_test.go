package conformance_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
)

// TestTableIsCurrent checks that RESULTS.md and README.md have the cases and the results of our own
// readers as they are now. The columns of other parsers are as old as the last go generate.
func TestTableIsCurrent(t *testing.T) {
	results, err := runner.Run(context.Background(), runner.Own, conformance.Cases(), runner.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	own := []runner.Column{runner.NewColumn("collyrobots", runner.ReportOf(results))}
	rows := runner.Rows(conformance.Cases())
	compareTable(t, "RESULTS.md", "results", runner.Table(rows, own))
	compareTable(t, "RESULTS.md", "sections", runner.Sections(rows, own))
	compareStart(t, "README.md", "summary", runner.Summary(rows, own, runner.ByText))

	// The tests of conformance/runner/crawl check that all fetch cases are passed.
	fetchRows := runner.FetchRows(conformance.FetchCases())
	compareTable(t, "RESULTS.md", "fetch results", runner.Table(fetchRows, nil))
	compareStart(t, "README.md", "fetch summary", runner.Summary(fetchRows, nil, runner.BySection, runner.ByText))
}

// TestHardCases checks the table in docs/tools/conformance.md of the cases that at least half of the other
// parsers fail. The paragraphs below it explain these cases.
func TestHardCases(t *testing.T) {
	failing := make(map[string]int)
	parsers := 0
	for line := range strings.Lines(tableIn(t, "RESULTS.md", "results")) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(cells[0], "`rfc9309/") || strings.Contains(cells[1], "disputed") {
			continue
		}
		others := cells[3:] // without ours
		parsers = len(others)
		for _, cell := range others {
			if cell != "ok" {
				failing[cells[0]]++
			}
		}
	}
	const page = "../docs/tools/conformance.md"
	table := tableIn(t, page, "hard cases")
	hard := 0
	for id, n := range failing {
		if 2*n < parsers {
			continue
		}
		hard++
		if row := fmt.Sprintf("| %s | %d |\n", id, n); !strings.Contains(table, row) {
			t.Errorf("%s does not have the row %srun go generate", page, row)
		}
	}
	if rows := strings.Count(table, "\n") - 2; rows != hard {
		t.Errorf("%s has %d cases, want %d; run go generate", page, rows, hard)
	}
}

// TestVersions checks that the summaries name the version of each parser, and have the parsers that
// every machine can run.
func TestVersions(t *testing.T) {
	for title, names := range map[string][]string{
		"summary":       {"temoto", "grobotstxt", "benjaminestes", "samclarke"},
		"fetch summary": {"Colly"},
	} {
		table := tableIn(t, "README.md", title)
		for _, name := range names {
			if !strings.Contains(table, "\n| "+name+" | ") {
				t.Errorf("%s has no row for %s; run go generate", title, name)
			}
		}
		for line := range strings.Lines(table) {
			cells := strings.Split(line, " | ")
			if own := cells[0] == "| collyrobots" || cells[0] == "| all scored cases"; !own && cells[1] == "" {
				t.Errorf("%s: no version in %s", title, line)
			}
		}
	}
}

// compareTable compares the first columns of a table in a page with those of another table.
func compareTable(t *testing.T, page, title, want string) {
	t.Helper()
	gotLines := strings.Split(tableIn(t, page, title), "\n")
	wantLines := strings.Split(want, "\n")
	if len(gotLines) != len(wantLines) {
		t.Errorf("%s: the table %q has %d lines, want %d; run go generate", page, title, len(gotLines), len(wantLines))
		return
	}
	for i, line := range wantLines {
		if first := strings.TrimSuffix(line, " |"); gotLines[i] != line && !strings.HasPrefix(gotLines[i], first+" | ") {
			t.Errorf("%s: %s\nwant %s; run go generate", page, gotLines[i], line)
			return
		}
	}
}

// compareStart compares the first lines of a table in a page with another table.
func compareStart(t *testing.T, page, title, want string) {
	t.Helper()
	if got := tableIn(t, page, title); !strings.HasPrefix(got, want) {
		t.Errorf("%s: the table %q is\n%swant, at its start,\n%srun go generate", page, title, got, want)
	}
}

// tableIn returns a table of a page.
func tableIn(t *testing.T, page, title string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+title+" -->\n")
	table, _, found := strings.Cut(rest, "<!-- end of "+title+" -->\n")
	if !found {
		t.Fatalf("%s has no table %q", page, title)
	}
	return table
}
