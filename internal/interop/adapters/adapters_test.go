// Package adapters tests the adapters of the conformance suite. The table in RESULTS.md says how
// each parser reads each case; the tests only check that the adapters speak the protocol.
package adapters

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
	"github.com/collyrobots/collyrobots/conformance/runner/crawl"
)

// build builds a program of this module and returns the path of its file.
func build(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".exe")
	if out, err := exec.Command("go", "build", "-o", file, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// need skips the test if this machine does not have a program or file.
func need(t *testing.T, program string, files ...string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Skip(err)
		}
	}
}

// ask runs the cases of RFC 9309 on a parser.
func ask(t *testing.T, args ...string) map[string]*runner.Result {
	t.Helper()
	program := &runner.Program{Args: args, Stderr: t.Output(), Limit: 5 * time.Minute}
	results, err := runner.Run(t.Context(), program.Ask, conformance.Cases(), runner.Selection{Dialect: "rfc9309"})
	if err != nil {
		t.Fatal(err)
	}
	byID := make(map[string]*runner.Result)
	for i := range results {
		r := &results[i]
		byID[r.Case.ID] = r
		if strings.Contains(r.Answer.Error, "is not an answer") {
			t.Errorf("%s: %s", r.Case.ID, r.Answer.Error)
		}
	}
	return byID
}

// checkParser runs the cases on a parser, and checks some that every parser passes.
func checkParser(t *testing.T, args ...string) {
	t.Helper()
	results := ask(t, args...)
	for _, id := range []string{"rfc9309/2.1/rule-denies", "rfc9309/2.1/rule-leaves-rest", "rfc9309/2.2.2/prefix", "rfc9309/2.2.4/sitemap-several"} {
		if r := results[id]; r == nil || !r.Passed() {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

func TestTemoto(t *testing.T)     { checkParser(t, build(t, "temoto")) }
func TestGrobotstxt(t *testing.T) { checkParser(t, build(t, "grobotstxt")) }

func TestPython(t *testing.T) {
	need(t, "python3")
	checkParser(t, "python3", "python/adapter.py")
}

func TestNPM(t *testing.T) {
	need(t, "node", "npm/node_modules/robots-parser")
	checkParser(t, "node", "npm/adapter.js")
}

// TestGoogle runs the adapter of Google's program on a script that denies every URL, unless the
// environment variable GOOGLE_ROBOTS has the file of the real program.
func TestGoogle(t *testing.T) {
	need(t, "python3", "/bin/sh")
	if program := os.Getenv("GOOGLE_ROBOTS"); program != "" {
		checkParser(t, "python3", "google/adapter.py", program)
		return
	}
	script := filepath.Join(t.TempDir(), "robots")
	text := "#!/bin/sh\ntest -f \"$1\" && echo \"user-agent '$2' with URI '$3': DISALLOWED\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, r := range ask(t, "python3", "google/adapter.py", script) {
		if r.Answer.Allowed == nil || *r.Answer.Allowed {
			t.Errorf("%s: %+v", id, r.Answer)
		}
	}
}

// checkCrawler runs two fetch cases on a crawler.
func checkCrawler(t *testing.T, args ...string) {
	t.Helper()
	program := &runner.Program{Args: args, Stderr: t.Output(), Limit: 5 * time.Minute}
	for _, id := range []string{"fetch/success/200", "fetch/success/empty"} {
		results, err := crawl.Run(t.Context(), crawl.Program(program), conformance.FetchCases(), runner.Selection{Dialect: "rfc9309", Pattern: id})
		if err != nil || len(results) != 1 || !results[0].Passed() {
			t.Errorf("%s: error %v, %+v", id, err, results)
		}
	}
}

func TestColly(t *testing.T) { checkCrawler(t, build(t, "colly")) }

func TestPythonCrawler(t *testing.T) {
	need(t, "python3")
	checkCrawler(t, "python3", "python/crawler.py")
}
