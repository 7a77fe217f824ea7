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

// A result is what a piece has printed.
type result struct {
	out string
	err error
}

// start runs the programs, tests and commands among the pieces, 32 at a time, because most of them
// wait for a site. It returns a channel for each piece, which gets its result.
func start(t *testing.T, pieces []*piece, w *workshop, web *web) []chan result {
	results := make([]chan result, len(pieces))
	running := make(chan bool, 32)
	for i, p := range pieces {
		results[i] = make(chan result, 1)
		if p.kind == fragment {
			continue
		}
		dir := t.TempDir()
		go func() {
			running <- true
			defer func() { <-running }()
			results[i] <- p.run(t.Context(), dir, w, web)
		}()
	}
	return results
}

// run runs a program, a test or commands in an empty folder.
func (p *piece) run(ctx context.Context, dir string, w *workshop, web *web) result {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return result{err: err}
	}
	err = os.WriteFile(filepath.Join(dir, "robots.txt"), []byte(robotsFile), 0o600)
	if err != nil {
		return result{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
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
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), web.environment()...)
	cmd.Env = append(cmd.Env, "PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "BIN="+w.bin, "ROOT="+w.root, "GO="+goCommand, "GOWORK=")
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return result{out: out.String(), err: err}
}

// check compares the result of a piece with what the guide says.
func (p *piece) check(t *testing.T, r result) {
	if r.err != nil && !strings.HasSuffix(p.prints, "exit status 1\n") {
		t.Errorf("%s: %v\n%s\nprints\n%s", p.name(), r.err, p.text, r.out)
		return
	}
	if p.kind == test && !strings.Contains(r.out, "--- PASS: Test") {
		t.Errorf("%s: the test was not run:\n%s", p.name(), r.out)
	}
	if p.prints != "" && !matches(p.prints, r.out) {
		t.Errorf("%s\n%s\nprints\n%s\nThe guide says\n%s", p.name(), p.text, r.out, p.prints)
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
