package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
)

// init lets the test binary act as a parser; see parser.
func init() {
	answer := parsers[os.Getenv("CONFORM_TEST_PARSER")]
	if answer == nil {
		return
	}
	answer(os.Stdin, os.Stdout)
	os.Exit(0)
}

// parsers are the programs that parser starts, by name.
var parsers = map[string]func(stdin io.Reader, stdout io.Writer){
	"own": func(stdin io.Reader, stdout io.Writer) {
		conformance.Serve(stdin, stdout, runner.AnswerOf)
	},
	"deny-all": func(stdin io.Reader, stdout io.Writer) {
		conformance.Serve(stdin, stdout, func(conformance.Question) conformance.Answer {
			return conformance.Answer{Allowed: new(bool)}
		})
	},
	"reckless": func(stdin io.Reader, stdout io.Writer) {
		eachLine(stdin, func(line []byte) {
			var q conformance.FetchQuestion
			json.Unmarshal(line, &q)
			for _, u := range q.Fetch {
				if resp, err := http.Get(u); err == nil {
					resp.Body.Close()
				}
			}
			io.WriteString(stdout, "{}\n")
		})
	},
	"one-answer": func(_ io.Reader, stdout io.Writer) { io.WriteString(stdout, "{\"allowed\":true}\n") },
	"too-many": func(stdin io.Reader, stdout io.Writer) {
		for range 10_000 {
			io.WriteString(stdout, "{\"allowed\":true}\n")
		}
	},
	"no-json": func(stdin io.Reader, stdout io.Writer) {
		eachLine(stdin, func([]byte) { io.WriteString(stdout, "allowed\n") })
	},
	"no-verdict": func(stdin io.Reader, stdout io.Writer) {
		eachLine(stdin, func([]byte) { io.WriteString(stdout, "{}\n") })
	},
	"endless-line": func(stdin io.Reader, stdout io.Writer) {
		for {
			if _, err := io.WriteString(stdout, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	},
	"hangs-once": func(stdin io.Reader, stdout io.Writer) {
		conformance.Serve(stdin, stdout, func(q conformance.Question) conformance.Answer {
			if q.ID == "rfc9309/2.1/rule-leaves-rest" {
				select {}
			}
			return runner.AnswerOf(q)
		})
	},
	"hangs": func(stdin io.Reader, stdout io.Writer) { select {} },
	"fails": func(stdin io.Reader, stdout io.Writer) { os.Exit(7) },
}

func eachLine(r io.Reader, f func(line []byte)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<25)
	for lines.Scan() {
		f(lines.Bytes())
	}
}

// parser returns arguments of conform that run a parser of the map above.
func parser(t *testing.T, name string) []string {
	t.Helper()
	t.Setenv("CONFORM_TEST_PARSER", name)
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--", file}
}

// conformWith runs the command conform with flags on a parser.
func conformWith(t *testing.T, name string, flags ...string) (status int, stdout, stderr string) {
	t.Helper()
	args := append([]string{"conform"}, flags...)
	return call(t, "", append(args, parser(t, name)...)...)
}

func TestConformOwn(t *testing.T) {
	status, out, errs := call(t, "", "conform")
	if status != cli.OK || strings.Contains(out, "FAIL") || errs != "" || !strings.Contains(out, "rfc9309") {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
}

// TestConformProgram checks that a program gets the same questions as our own parser.
func TestConformProgram(t *testing.T) {
	_, want, _ := call(t, "", "conform", "-json")
	status, out, errs := conformWith(t, "own", "-json")
	if status != cli.OK || errs != "" || out != want {
		t.Errorf("status %d, errors %q, %d bytes, want %d", status, errs, len(out), len(want))
	}
}

func TestConformFailures(t *testing.T) {
	status, out, errs := conformWith(t, "deny-all", "-run", "rfc9309/2.1/")
	if status != cli.Negative || errs != "" || !strings.Contains(out, "FAIL rfc9309/2.1/rule-leaves-rest (rfc9309): denied, want allowed\n") {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	if strings.Contains(out, "FAIL rfc9309/2.1/rule-denies") {
		t.Errorf("a case that was passed is listed:\n%s", out)
	}
	status, out, _ = conformWith(t, "deny-all", "-json", "-run", "rfc9309/2.1/rule-leaves-rest")
	var line struct {
		Passed bool
		Faults []string
	}
	if err := json.Unmarshal([]byte(out), &line); err != nil || status != cli.Negative || line.Passed || len(line.Faults) != 1 {
		t.Errorf("status %d, error %v: %s", status, err, out)
	}
}

// TestConformBadPrograms checks programs that do not follow the protocol.
func TestConformBadPrograms(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		out    string // a part of the output
		errs   string // a part of the errors
	}{
		{name: "no-json", status: cli.Negative, out: `error: "allowed" is not an answer`},
		{name: "no-verdict", status: cli.Negative, out: "has neither allowed nor error"},
		{name: "one-answer", status: cli.Failed, out: "no answer", errs: "wrote 1 answers to "},
		{name: "too-many", status: cli.Failed, out: "FAIL", errs: "wrote more than "},
		{name: "endless-line", status: cli.Failed, errs: "an answer has more than 1048576 bytes"},
		{name: "fails", status: cli.Failed, errs: "exit status 7"},
	} {
		status, out, errs := conformWith(t, test.name, "-run", "rfc9309/2.1/")
		if status != test.status || !strings.Contains(out, test.out) || test.out == "" && strings.Contains(out, "FAIL") || !strings.Contains(errs, test.errs) {
			t.Errorf("%s: status %d, errors %q\n%s", test.name, status, errs, out)
		}
	}
	status, _, errs := conformWith(t, "hangs", "-timeout", "50ms")
	if status != cli.Failed || !strings.Contains(errs, "did not end within 50ms") {
		t.Errorf("hangs: status %d, errors %q", status, errs)
	}
	status, out, errs := conformWith(t, "hangs", "-wait", "20ms")
	if status != cli.Failed || out != "" || !strings.HasSuffix(errs, " has not answered the first question within 120ms\n") {
		t.Errorf("hangs: status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = call(t, "", "conform", "--", filepath.Join(t.TempDir(), "missing"))
	if status != cli.Failed || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "missing") {
		t.Errorf("missing: status %d, errors %q\n%s", status, errs, out)
	}
}

// TestConformHangs checks a program that hangs at one case: the case is named and failed, and the
// others are run.
func TestConformHangs(t *testing.T) {
	const hangs = "rfc9309/2.1/rule-leaves-rest"
	status, out, errs := conformWith(t, "hangs-once", "-run", "rfc9309/2.1/", "-wait", "2s")
	if status != cli.Negative || errs != "" || strings.Count(out, "FAIL") != 1 || !strings.Contains(out, "FAIL "+hangs+" (rfc9309): error: no answer within 2s\n") {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = conformWith(t, "hangs-once", "-run", "rfc9309/2.1/", "-skip", "google/,"+hangs)
	if status != cli.OK || errs != "" || strings.Contains(out, "FAIL") || !strings.Contains(out, "rfc9309") {
		t.Errorf("skipped: status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = call(t, "", "conform", "-run", "rfc9309/2.1/rule-denies", "-skip", "rfc9309/*/rule-*")
	if status != cli.Failed || out != "" || !strings.Contains(errs, "no case matches") {
		t.Errorf("all skipped: status %d, output %q, errors %q", status, out, errs)
	}
}

// TestConformFetch checks the fetch cases on our own crawler and on a program that obeys nothing.
func TestConformFetch(t *testing.T) {
	status, out, errs := call(t, "", "conform", "-fetch", "-json", "-run", "fetch/success/200", "-dialect", "rfc9309") // the case has six dialects
	if status != cli.OK || errs != "" || strings.Count(out, "\n") != 1 {
		t.Errorf("own: status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = conformWith(t, "reckless", "-fetch", "-run", "fetch/success/200", "-dialect", "rfc9309")
	if status != cli.Negative || errs != "" || !strings.Contains(out, "{site}/open was requested before robots.txt; ") ||
		!strings.Contains(out, "{site}/closed was requested\n") {
		t.Errorf("reckless: status %d, errors %q\n%s", status, errs, out)
	}
	status, out, _ = conformWith(t, "no-json", "-fetch", "-run", "fetch/success/200", "-dialect", "rfc9309")
	if status != cli.Negative || !strings.Contains(out, `error: "allowed" is not an answer`) {
		t.Errorf("no-json: status %d\n%s", status, out)
	}
}
