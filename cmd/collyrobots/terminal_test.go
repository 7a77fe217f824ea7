package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/internal/tooltest"
)

// TestTerminals runs commands in terminals of several widths and kinds. Colors are used only on a
// terminal that has them and if NO_COLOR is empty, and no line is wider than the terminal.
func TestTerminals(t *testing.T) {
	file := program(t)
	faults := fileOf(t, faulty)
	empty := fileOf(t, "User-agent: *\n")
	pages := fileOf(t, `{"time":"2026-11-22T10:00:00Z","kind":"page","url":"https://a.test/","status":200}
{"time":"2026-11-22T10:00:05Z","kind":"failed","url":"https://a.test/a/page/with/a/long/name","status":404}
{"time":"2026-11-22T10:00:11Z","kind":"end","end":{"start_failed":false}}
`)
	for _, test := range []struct {
		name    string
		env     string
		args    []string
		columns int
		color   string // an escape sequence and the word after it; "" if there must be none
		want    string // the beginning of a line
	}{
		{"lint", "TERM=xterm", []string{"lint", faults}, 80, "[31merror:", "1 file: 1 error, 0 warnings, 2 notes"},
		{"lint narrow", "TERM=xterm", []string{"lint", faults}, 40, "[31m", "1 file: 1 error, 0 warnings, 2 notes"},
		{"lint NO_COLOR", "NO_COLOR=1", []string{"lint", faults}, 80, "", "1 file: 1 error, 0 warnings, 2 notes"},
		{"check", "TERM=xterm", []string{"check", "-robots", faults, "/a"}, 80, "[32mallowed", "/a: allowed, line 3: Allow: /a, crawl delay 5s; the dialects do not agree:"},
		{"check narrow", "TERM=xterm", []string{"check", "-robots", faults, "/a"}, 40, "[31mdenied", "  google        allowed"},
		{"check dumb", "TERM=dumb", []string{"check", "-robots", faults, "/a"}, 80, "", "  google        allowed  *"},
		{"diff", "TERM=xterm", []string{"diff", faults, empty}, 80, "[31m- ", "Changes: 2 rules, 1 delay, 0 sitemaps, 0 verdicts"},
		{"report", "TERM=xterm", []string{"report", pages}, 80, "[31mFailed", "Responses: 1 × 200, 1 × 404"},
		{"report narrow", "TERM=xterm", []string{"report", pages}, 40, "[31mFailed", "    404 Not Found"},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			terminal := tooltest.NewTerminal(t)
			screen := terminal.Run(exec.Command("env", append([]string{test.env, file}, test.args...)...), test.columns, 40)
			if !strings.Contains(screen, "\n"+test.want) && !strings.HasPrefix(screen, test.want) {
				t.Errorf("no line begins with %q:\n%s", test.want, screen)
			}
			colored := terminal.Colored()
			if test.color == "" && strings.Contains(colored, "[3") || !strings.Contains(colored, test.color) {
				t.Errorf("want the color %q:\n%q", test.color, colored)
			}
		})
	}
}
