// Package docs is the guides. Its tests compile every piece of Go in them and in the READMEs, run
// every program, test and command, and compare what these print with what the guide says they
// print.
//
// What is between the fences says what becomes of it:
//
//	```go    with a package clause: a program, which is run; with a func Test: a test, which is run with the declarations of
//	         its page; declarations, statements or a list of options: compiled, where c is a *colly.Collector, robots a
//	         *collyrobots.Plugin, s a store.Store and ctx a context
//	```sh    commands, which are run one after the other
//	```text  right behind one of these: what it prints, on standard output and standard error; ... stands for anything
//
// All of it meets the sites of web_test.go: https://example.com/ and the hosts below it, on the
// loopback interface.
package docs

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// elsewhere are the guides that need another module or another program, by what tests them.
var elsewhere = map[string]string{
	"docs/many-processes.md": "store/redisstore",
	"docs/metrics.md":        "metrics/prom",
	"docs/scale.md":          "benchmarks",
	"docs/view.md":           "view",
}

// TestPieces does with every piece what its fence asks for.
func TestPieces(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("a program here does not trust the certificate that SSL_CERT_FILE names, and the commands are for sh")
	}
	var pieces []*piece
	for _, page := range pages(t) {
		if elsewhere[page] == "" {
			pieces = append(pieces, piecesOf(t, page)...)
		}
	}
	w := newWorkshop(t, pieces)
	web := newWeb(t)
	running := make(chan bool, 6)
	counts := make(map[kind]int)
	for _, p := range pieces {
		counts[p.kind]++
		if p.kind == fragment {
			continue // it compiles
		}
		t.Run(p.name(), func(t *testing.T) {
			t.Parallel()
			running <- true
			defer func() { <-running }()
			p.run(t, w, web)
		})
	}
	t.Logf("%d programs, %d tests, %d blocks of commands, %d fragments", counts[program], counts[test], counts[commands], counts[fragment])
	if counts[program] < 3 || counts[test] < 1 || counts[commands] < 5 || counts[fragment] < 10 {
		t.Error("most pieces were not found")
	}
}

// pages returns the READMEs and guides whose pieces are tested, from the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob("*.md")
	if err != nil || len(guides) < 3 {
		t.Fatal(guides, err)
	}
	pages := []string{"README.md", "examples/README.md"}
	for _, name := range guides {
		pages = append(pages, "docs/"+name)
	}
	return pages
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
