package docs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// run runs a program, a test or commands.
func (p *piece) run(t *testing.T, w *workshop, web *web) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var cmd *exec.Cmd
	switch p.kind {
	case commands:
		cmd = exec.CommandContext(ctx, "sh", "-e", "-c", p.text)
	case program:
		cmd = exec.CommandContext(ctx, filepath.Join(w.bin, "programs"), p.id())
	case test:
		name, _, _ := strings.Cut(strings.TrimPrefix(p.text, "func "), "(")
		cmd = exec.CommandContext(ctx, filepath.Join(w.bin, p.folder()), "-test.v", "-test.run", "^"+name+"$")
	}
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "robots.txt"), []byte(robotsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), web.environment()...)
	cmd.Env = append(cmd.Env, "PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "BIN="+w.bin, "ROOT="+w.root, "GO="+goCommand, "GOWORK=")
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if failed := err != nil && !strings.HasSuffix(p.prints, "exit status 1\n"); failed {
		t.Errorf("%s: %v\n%s\nprints\n%s", p.name(), err, p.text, &out)
		return
	}
	if p.kind == test && !strings.Contains(out.String(), "--- PASS: Test") {
		t.Errorf("%s: the test was not run:\n%s", p.name(), &out)
	}
	if p.prints != "" && !matches(p.prints, out.String()) {
		t.Errorf("%s\n%s\nprints\n%s\nThe guide says\n%s", p.name(), p.text, &out, p.prints)
	}
}

// robotsFile is the robots.txt in the folder where commands are run.
const robotsFile = "User-agent: *\nDisallow: /cart\nCrawl-delay: 5s\n"

// matches reports whether text equals what a guide says, except for blanks at the ends of lines.
// In a guide, ... stands for any text.
func matches(said, text string) bool {
	said = regexp.QuoteMeta(trimmed(said))
	said = strings.ReplaceAll(said, `\.\.\.`, `.*`)
	return regexp.MustCompile(`(?s)^` + said + `$`).MatchString(trimmed(text))
}

func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return strings.Join(lines, "\n")
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		said, text string
		want       bool
	}{
		{"a\nb\n", "a \nb\n\n", true},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"at ...: 1\n", "at 12:30: 1\n", true},
		{"a\n", "a\nb\n", false},
		{"a+\n", "aa\n", false},
	} {
		if got := matches(test.said, test.text); got != test.want {
			t.Errorf("%q, %q: %v, want %v", test.said, test.text, got, test.want)
		}
	}
}
