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

// needRun skips the test if a command fails, because this machine does not have a library.
func needRun(t *testing.T, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%v: %v\n%s", command, err, out)
	}
}

// ask runs the cases of the first section of RFC 9309 on a parser.
func ask(t *testing.T, args ...string) map[string]*runner.Result {
	t.Helper()
	program := &runner.Program{Args: args, Stderr: t.Output(), Limit: 5 * time.Minute}
	results, err := runner.Run(t.Context(), program.Ask, conformance.Cases(), runner.Selection{Dialect: "rfc9309", Pattern: "rfc9309/2.1/"})
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
	for _, id := range []string{"rfc9309/2.1/rule-denies", "rfc9309/2.1/rule-leaves-rest", "rfc9309/2.1/rules-of-other-crawler"} {
		if r := results[id]; r == nil || !r.Passed() {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestGo runs the adapters for parsers in Go.
func TestGo(t *testing.T) {
	for _, name := range []string{"temoto", "grobotstxt", "benjaminestes", "samclarke"} {
		t.Run(name, func(t *testing.T) { checkParser(t, build(t, name)) })
	}
}

func TestPython(t *testing.T) {
	need(t, "python3")
	checkParser(t, "python3", "python/adapter.py")
}

// debianPython is the Python that Debian installs packages for.
const debianPython = "/usr/bin/python3"

func TestProtego(t *testing.T) {
	needRun(t, debianPython, "-c", "import protego")
	checkParser(t, debianPython, "python/protego_adapter.py")
}

func TestPerl(t *testing.T) {
	needRun(t, "perl", "-MJSON::PP", "-MLWP::RobotUA", "-e", "1")
	checkParser(t, "perl", "perl/adapter.pl")
	checkCrawler(t, "perl", "perl/crawler.pl")
}

func TestRuby(t *testing.T) {
	needRun(t, "ruby", "-e", "require 'webrobots'")
	checkParser(t, "ruby", "ruby/adapter.rb")
}

// TestNPM runs the adapters for parsers of npm, if they are installed.
func TestNPM(t *testing.T) {
	for pkg, file := range map[string]string{
		"exclusion":         "exclusion.mjs",
		"pyodide":           "pyodide.mjs",
		"robots":            "robots.js",
		"robots-parser":     "robots-parser.js",
		"robots-txt-guard":  "robots-txt-guard.js",
		"robots-txt-parser": "robots-txt-parser.js",
	} {
		t.Run(pkg, func(t *testing.T) {
			need(t, "node", "npm/node_modules/"+pkg)
			checkParser(t, "node", "npm/"+file)
		})
	}
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

func TestScrapy(t *testing.T) {
	needRun(t, debianPython, "-c", "import scrapy")
	checkCrawler(t, debianPython, "python/scrapy_crawler.py")
}

func TestCrawlee(t *testing.T) {
	need(t, "node", "npm/node_modules/@crawlee/cheerio")
	checkCrawler(t, "node", "npm/crawlee.js")
}

// TestLinks runs the adapter for crawlers that follow the links of a page.
func TestLinks(t *testing.T) {
	need(t, "python3")
	need(t, "wget")
	checkCrawler(t, "python3", "python/links.py", "wget", "--recursive", "--level=1", "--quiet", "--user-agent={agent}", "{page}")
}
