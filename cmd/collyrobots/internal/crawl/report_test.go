package crawl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/report"
)

// TestReport checks that the report of JSON lines is the report that the crawl itself prints, except
// for times.
func TestReport(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	args := []string{"-delay=0", "-depth=2", "-max-per-host=3", "http://shop.test/", "http://dead.test/"}
	status, lines, _ := web.Run(t, "", append([]string{"-json"}, args...)...)
	file := filepath.Join(t.TempDir(), "pages.jsonl")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil || status != 1 {
		t.Fatal(status, err, lines)
	}
	var fromFile, fromStdin, errs strings.Builder
	if status := RunReport(t.Context(), []string{file}, nil, &fromFile, &errs); status != 1 || errs.String() != "" {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
	if status := RunReport(t.Context(), nil, strings.NewReader(lines), &fromStdin, &errs); status != 1 || fromStdin.String() != fromFile.String() {
		t.Errorf("standard input: status %d\n%s\nwant\n%s", status, fromStdin.String(), fromFile.String())
	}
	wantMatches(t, "the report", fromFile.String(), `\n  shop\.test +3 +1 `, `\nDenied \(2\):\n`, `line 2: Disallow: /cart\n`, `\nFailed \(1\):\n`,
		`\nAt least one start URL could not be fetched\.\nResponses: 2 × 200, 1 × 404\n2 pages in \d\.\d s, 1 failed, 2 denied\n$`)
}

// TestReportOfKilledCrawl checks the report of lines without the last one, whose end is cut off.
func TestReportOfKilledCrawl(t *testing.T) {
	const lines = `{"time":"2026-11-22T10:00:00Z","kind":"page","url":"https://a.test/","status":200}
{"time":"2026-11-22T10:00:05Z","kind":"failed","url":"https://a.test/b","status":404}
{"time":"2026-11-22T10:00:`
	var out, errs strings.Builder
	if status := RunReport(t.Context(), nil, strings.NewReader(lines), &out, &errs); status != 1 || errs.String() != "" {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
	wantMatches(t, "the report", out.String(), `https://a\.test/b +404 Not Found\n`, `\nInterrupted; `, `\n1 page in 5\.0 s, 1 failed, 0 denied\n$`)
}

func TestReportFaults(t *testing.T) {
	for _, test := range []struct {
		args        []string
		stdin, want string
	}{
		{nil, "", "standard input has no lines of a crawl; collyrobots crawl -json prints them"},
		{nil, "hello\n", "standard input, line 1: not a line of collyrobots crawl -json"},
		{nil, `{"kind":"denied"}` + "\n", "line 1: not a line"},
		{nil, `{"kind":"page","status":200}` + "\n" + `{"kind":"end"}` + "\n", "line 2: not a line"},
		{nil, `{"url":"a"}` + "\n", "line 1: not a line"},
		{[]string{"a", "b"}, "", "want one file, not 2"},
		{[]string{"no-such-file"}, "", "no-such-file"},
	} {
		var out, errs strings.Builder
		status := RunReport(t.Context(), test.args, strings.NewReader(test.stdin), &out, &errs)
		if status != 2 || out.String() != "" || !strings.HasPrefix(errs.String(), "collyrobots report: ") || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%q %q: status %d, output %q, errors %q", test.args, test.stdin, status, out.String(), errs.String())
		}
	}
}

// TestCauseOfEnding checks the words for a host whose pages were not requested.
func TestCauseOfEnding(t *testing.T) {
	for want, r := range map[string]*summary{
		"limit of -max": {ending: ending{Full: true}}, "interrupted": {ending: ending{Interrupted: true}},
	} {
		if got := r.causeOf(report.EndingCanceled); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
