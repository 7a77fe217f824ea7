package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
)

const faulty = "User-agent: *\nDisallow: /a\nAllow: /a\nCrawl-delay: 5\nHost: a.test\n"

const faultyLines = `FILE:2: error: "Disallow: /a" contradicts line 3 (Allow: /a), which decides [contradiction]
FILE:4: note: key not supported by this dialect, line ignored: Crawl-delay [unsupported-key] (google)
FILE:5: note: Host is not a rule: Yandex read it until 2018 [foreign-key]
`

func TestLint(t *testing.T) {
	file := fileOf(t, faulty)
	clean := fileOf(t, "User-agent: *\nDisallow: /a\n")
	url, requests := site(t, 200, faulty)
	gone, _ := site(t, 404, "")
	lines := strings.ReplaceAll(faultyLines, "FILE", file)
	fromWeb := strings.ReplaceAll(faultyLines, "FILE", url+"/robots.txt")
	missing := "collyrobots lint: cannot read " + gone + "/robots.txt: status 404\n"
	for _, test := range []struct {
		name   string
		args   []string
		stdin  string
		status int
		out    string
		errs   string
	}{
		{"a file", []string{file}, "", 1, lines + "1 file: 1 error, 0 warnings, 2 notes\n", ""},
		{"a clean file", []string{clean}, "", 0, "1 file: 0 errors, 0 warnings, 0 notes\n", ""},
		{"two files", []string{clean, file}, "", 1, lines + "2 files: 1 error, 0 warnings, 2 notes\n", ""},
		{"without notes", []string{"-quiet", file}, "", 1, strings.SplitAfter(lines, "\n")[0] + "1 file: 1 error, 0 warnings, 0 notes\n", ""},
		{"notes only", []string{"-ignore", "contradiction", file}, "", 0, strings.Join(strings.SplitAfter(lines, "\n")[1:], "") + "1 file: 0 errors, 0 warnings, 2 notes\n", ""},
		{"a dialect", []string{"-dialect", "original1994", "-quiet", file}, "", 0, "1 file: 0 errors, 0 warnings, 0 notes\n", ""},
		{"standard input", []string{"-"}, faulty, 1, strings.ReplaceAll(faultyLines, "FILE", "standard input") + "1 file: 1 error, 0 warnings, 2 notes\n", ""},
		{"a list", []string{"-from", "-"}, "# files\n" + file + "\n", 1, lines + "1 file: 1 error, 0 warnings, 2 notes\n", ""},
		{"a site, twice", []string{url, url + "/x"}, "", 1, fromWeb + "1 file: 1 error, 0 warnings, 2 notes\n", ""},
		{"no robots.txt", []string{gone}, "", 2, "", missing},
		{"one of two", []string{gone, clean}, "", 2, "1 file: 0 errors, 0 warnings, 0 notes\n", missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, errs := call(t, test.stdin, append([]string{"lint"}, test.args...)...)
			if status != test.status || out != test.out || errs != test.errs {
				t.Errorf("status %d, want %d\n%swant\n%s%s", status, test.status, out, test.out, errs)
			}
		})
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the site got %d requests, want 1", n)
	}
}

// TestLintSite checks that the site of a file decides whether a sitemap is its own.
func TestLintSite(t *testing.T) {
	file := fileOf(t, "User-agent: *\nDisallow: /s\nSitemap: https://a.test/s.xml\n")
	for site, want := range map[string]int{"a.test": 1, "b.test": 0, "http://a.test": 0} {
		if status, out, _ := call(t, "", "lint", "-site", site, file); status != want {
			t.Errorf("%s: status %d, want %d\n%s", site, status, want, out)
		}
	}
}

func TestLintJSON(t *testing.T) {
	file := fileOf(t, faulty)
	status, out, _ := call(t, "", "lint", "-json", file)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var got struct {
		File, ID, Severity string
		Line               int
		Dialects           []string
	}
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil || status != 1 || len(lines) != 3 {
		t.Fatalf("%v, status %d\n%s", err, status, out)
	}
	if got.File != file || got.ID != "contradiction" || got.Line != 2 || got.Severity != "error" || len(got.Dialects) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestLintGitHub(t *testing.T) {
	_, out, _ := call(t, "User-agent: *\nDisallow: /100%\nDisallow: /100%\n", "lint", "-github", "-")
	if want := `::warning file=standard input,line=3,title=duplicate-rule::"Disallow: /100%25" matches`; !strings.HasPrefix(out, want) {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

// TestLintSARIF checks the properties that SARIF 2.1.0 requires (sections 3.13, 3.14, 3.27): the
// version, a tool with a name, and for each result a message, a rule that exists, a level and a
// place.
func TestLintSARIF(t *testing.T) {
	status, out, _ := call(t, faulty, "lint", "-sarif", "-quiet", "-")
	var log bytes.Buffer
	if err := json.Compact(&log, []byte(out)); err != nil || status != 1 {
		t.Fatalf("%v, status %d", err, status)
	}
	rule := slices.IndexFunc(lint.Kinds(), func(k lint.Kind) bool { return k.ID == "contradiction" })
	for _, want := range []string{
		`{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","runs":[{"results":[{"level":"error","locations":[{"physicalLocation":` +
			`{"artifactLocation":{"uri":"standard%20input"},"region":{"startLine":2}}}],"message":{"text":"\"Disallow: /a\" contradicts line 3 (Allow: /a), which decides"},` +
			`"ruleId":"contradiction","ruleIndex":` + fmt.Sprint(rule) + `}],"tool":{"driver":{"informationUri":"https://`,
		`"name":"collyrobots lint","rules":[{"defaultConfiguration":{"level":"error"},"helpUri":"https://`, `]}}}],"version":"2.1.0"}`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), `"shortDescription":{"text":"`); n != len(lint.Kinds()) {
		t.Errorf("%d rules", n)
	}
	if _, out, _ := call(t, "User-agent: *\nDisallow: /\n", "lint", "-sarif", "-"); !strings.Contains(out, `"results": []`) {
		t.Errorf("a file without findings: %s", out)
	}
}
