// Package docs tests the guides. Its tests compile all Go code in the guides and in the READMEs, run
// every program, test and command, and compare the output with the output that the guide shows.
//
// A fenced code block is tested according to its language and content:
//
//   - go with a package clause is a program. It is run.
//   - go that begins with a func Test is a test. It is run together with the declarations of its
//     page.
//   - Other go blocks are declarations, statements or a list of options. They are compiled. In
//     them, c is a *colly.Collector, robots a *collyrobots.Plugin, s a store.Store and ctx a
//     context.
//   - sh blocks are commands. They are run one after the other.
//   - text directly after one of these blocks is its output on standard output and standard error.
//     In it, ... stands for any text.
//   - robots is a robots.txt. It is not tested.
//
// Code that is part of an example in a separate module is only compiled there. Indented code blocks
// are not tested. They are for code that needs other modules.
//
// The programs and commands access the sites of web_test.go, which are https://example.com/ and its
// subdomains, on the loopback interface.
package docs

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const repository = "../.." // the root of the repository

// elsewhere has the guides that need another module or another program. The value is the package
// that tests the guide.
var elsewhere = map[string]string{
	"docs/tools/any-language.md": "cmd/collyrobots/internal/serve",
	"docs/many-processes.md":     "store/redisstore",
	"docs/reference/metrics.md":  "metrics/robotsprom",
	"docs/tools/playground.md":   "internal/interop/browsertest",
}

// TestPieces compiles or runs every piece; see the package comment.
func TestPieces(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("a program here does not trust the certificate in SSL_CERT_FILE, and the commands are for sh")
	}
	var pieces []*piece
	nested := nestedExamples(t)
	for _, page := range pages(t) {
		if elsewhere[page] == "" {
			pieces = append(pieces, piecesOf(t, page)...)
		}
	}
	pieces = slices.DeleteFunc(pieces, func(p *piece) bool { return strings.Contains(nested, p.text) })
	w := newWorkshop(t, pieces)
	web := newWeb(t)
	counts := make(map[kind]int)
	results := start(t, pieces, w, web)
	for i, p := range pieces {
		counts[p.kind]++
		if p.kind != fragment { // newWorkshop has compiled the fragments
			t.Run(p.name(), func(t *testing.T) { p.check(t, <-results[i]) })
		}
	}
	t.Logf("%d programs, %d tests, %d blocks of commands, %d fragments", counts[program], counts[test], counts[commands], counts[fragment])
	if counts[program] < 3 || counts[test] < 1 || counts[commands] < 5 || counts[fragment] < 10 {
		t.Error("fewer pieces than expected")
	}
}

// pages returns the names of the READMEs, of llms.txt and of the guides, whose pieces are tested,
// relative to the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "examples/README.md", "llms.txt"}
	for _, name := range markdown(t) {
		if strings.HasPrefix(name, "docs/") {
			pages = append(pages, name)
		}
	}
	return pages
}

// nestedExamples returns the text of the examples that are in a separate module.
func nestedExamples(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(repository + "/examples/more/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(read(t, strings.TrimPrefix(filepath.ToSlash(file), repository+"/")))
	}
	return text.String()
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
