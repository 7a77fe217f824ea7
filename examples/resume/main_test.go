package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/examples/internal/tooltest"
)

// TestMain builds the program with http instead of https, because the sites of the tests have no
// certificates, and with a short delay.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "resume")
	if err != nil {
		panic(err)
	}
	source := strings.NewReplacer("https://example.com/\"", "http://example.com/\"", "time.Second", "5*time.Millisecond").Replace(read("main.go"))
	here, _ := filepath.Abs("main.go")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{here: filepath.Join(dir, "main.go")}})
	os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600)
	os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	os.Setenv("GOFLAGS", "-overlay="+filepath.Join(dir, "overlay.json"))
	defer os.RemoveAll(dir)
	tooltest.Main(m)
}

func read(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestExisting checks that the program is that of examples/existing with the lines that are marked
// with "new": the import, the call of Open with its error and Close, and the option.
func TestExisting(t *testing.T) {
	code := func(name string) (lines []string) {
		_, text, _ := strings.Cut(read(name), "\npackage main\n")
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, " // new")
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	added := []string{
		`"github.com/collyrobots/collyrobots/frontier"`,
		`f, err := frontier.Open("crawl-state")`, `if err != nil {`, `log.Fatal(err)`, `}`, `defer f.Close()`,
		`collyrobots.Frontier(f),`,
	}
	got := code("main.go")
	for _, line := range added {
		i := slices.Index(got, line)
		if i < 0 {
			t.Fatalf("the program has no line %s", line)
		}
		got = slices.Delete(got, i, i+1)
	}
	want := code("../existing/main.go")
	slices.Sort(got) // the deleted lines may be equal to others
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the other lines differ from examples/existing:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
