package robotsprom

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/metrics/figures"
)

// TestDocumentation checks that docs/reference/metrics.md has one row for each metric, and that the lines of
// its fragments of Go are in the examples. The program, which is complete, must be valid.
func TestDocumentation(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	guide := read("../../docs/reference/metrics.md")
	for _, f := range figures.All() {
		if row := rowOf(f); !strings.Contains(guide, row) {
			t.Errorf("docs/reference/metrics.md does not contain %s", row)
		}
	}
	if rows := strings.Count(guide, "\n| `collyrobots_"); rows != len(figures.All()) {
		t.Errorf("docs/reference/metrics.md has %d rows for %d metrics", rows, len(figures.All()))
	}
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(guide, -1)
	if len(pieces) != 3 {
		t.Fatalf("docs/reference/metrics.md has %d pieces of Go", len(pieces))
	}
	for i, example := range []string{"example_test.go", "../robotsotel/example_test.go"} {
		for line := range strings.Lines(pieces[i][1]) {
			if !strings.Contains(read(example), "\t"+line) {
				t.Errorf("%s does not contain %s", example, line)
			}
		}
	}
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(pieces[2][1]), 0o600); err != nil {
		t.Fatal(err)
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", program)
	vet.Dir = "../robotsotel"
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("the program of docs/reference/metrics.md: %v\n%s", err, out)
	}
}

// rowOf returns the row of a metric in docs/reference/metrics.md.
func rowOf(f *figures.Figure) string {
	labels := make([]string, 0, len(f.Labels))
	for _, label := range f.Labels {
		labels = append(labels, "`"+label.Name+"`")
	}
	kind := [...]string{"counter", "gauge", "gauge", "histogram"}[f.Kind]
	return fmt.Sprintf("\n| `%s` | `%s` | %s | %s | %s |\n", nameOf(f), f.Name, kind, strings.Join(labels, ", "), f.Help)
}
