package conformance_test

import (
	"context"
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
	compareTable(t, "README.md", "summary", runner.Summary(rows, own))

	// The tests of conformance/runner/crawl check that all fetch cases are passed.
	fetchRows := runner.FetchRows(conformance.FetchCases())
	compareTable(t, "RESULTS.md", "fetch results", runner.Table(fetchRows, nil))
}

// compareTable compares the first columns of a table in a page with those of another table.
func compareTable(t *testing.T, page, title, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+title+" -->\n")
	got, _, found := strings.Cut(rest, "<!-- end of "+title+" -->\n")
	if !found {
		t.Fatalf("%s has no table %q", page, title)
	}
	gotLines := strings.Split(got, "\n")
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
