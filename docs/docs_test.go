// Package docs is the guides. Its tests compile every piece of Go in them and in the READMEs, run every program, test and
// command, and compare what these print with what the guide says they print.
//
// What is between the fences says what becomes of it:
//
//	```go    with a package clause: a program, which is run; with a func Test: a test, which is run with the declarations of
//	         its page; declarations, statements or a list of options: compiled, where c is a *colly.Collector, robots a
//	         *collyrobots.Plugin, s a store.Store and ctx a context
//	```sh    commands, which are run one after the other
//	```text  right behind one of these: what it prints, on standard output and standard error; ... stands for anything
//
// All of it meets the sites of web_test.go: https://example.com/ and the hosts below it, on the loopback interface.
package docs

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// elsewhere are the guides that need another module or another program, by what tests them.
var elsewhere = map[string]string{
	"docs/many-processes.md": "store/redisstore",
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

// A piece is what stands between two fences.
type piece struct {
	page   string // the file it is in
	line   int    // where it begins
	text   string
	kind   kind
	prints string // what it prints, as the guide says; empty: the guide does not say
}

type kind int

const (
	commands kind = iota
	program
	test
	fragment
)

func (p *piece) name() string { return fmt.Sprintf("%s:%d", p.page, p.line) }

// id is the name as Go has it.
func (p *piece) id() string { return regexp.MustCompile(`\W`).ReplaceAllString(p.name(), "_") }

// folder is where the Go of a piece is compiled. As many as can share one: a package takes long.
func (p *piece) folder() string {
	switch declares := strings.Count("\n"+p.text, "\nfunc ") + strings.Count(p.text, "\ntype "); {
	case p.kind == program && declares > 1:
		return p.id()
	case p.kind == program:
		return "programs"
	case declares > 0: // for the tests of its page, or one of these
		return regexp.MustCompile(`\W`).ReplaceAllString(p.page, "_")
	}
	return "fragments"
}

// piecesOf returns the pieces of a page.
func piecesOf(t *testing.T, page string) (pieces []*piece) {
	t.Helper()
	var last *piece // what a text may belong to
	lines := strings.Split(read(t, page), "\n")
	for i := 0; i < len(lines); i++ {
		info, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			if strings.TrimSpace(lines[i]) != "" {
				last = nil
			}
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the fence has no end", page, begin)
		}
		p := &piece{page: page, line: begin, text: strings.Join(lines[begin:i], "\n") + "\n"}
		switch info {
		case "go":
			p.kind = kindOf(p.text)
		case "sh":
			p.kind = commands
		case "text":
			if last == nil {
				t.Errorf("%s:%d: this is printed by nothing", page, begin)
			} else {
				last.prints = p.text
			}
			continue
		case "robots":
			continue // a robots.txt
		default:
			t.Errorf("%s:%d: what is ```%s?", page, begin, info)
			continue
		}
		last = p
		pieces = append(pieces, p)
	}
	return pieces
}

func kindOf(text string) kind {
	switch {
	case strings.HasPrefix(text, "package main\n"):
		return program
	case strings.HasPrefix(text, "func Test"):
		return test
	}
	return fragment
}

// source returns the Go of a piece as a file of a package, and the name of that file.
func (p *piece) source(t *testing.T) (name, text string) {
	t.Helper()
	if formatted, err := format.Source([]byte(p.text)); err == nil && string(formatted) != p.text {
		t.Errorf("%s is not as gofmt has it:\n%s", p.name(), formatted)
	}
	name = p.id() + ".go"
	switch p.kind {
	case program:
		return name, p.asPackage()
	case test:
		name = p.id() + "_test.go"
	}
	for _, body := range []string{
		p.text,
		"func _(ctx context.Context, c *colly.Collector, robots *collyrobots.Plugin) {\n" + p.text + "}\n",
		"func _(s store.Store) []collyrobots.Option { return []collyrobots.Option{\n" + p.text + "}}\n",
	} {
		text = "package piece\n" + imports(body) + body
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err == nil {
			return name, text
		}
	}
	t.Errorf("%s is neither declarations, nor statements, nor options:\n%s", p.name(), p.text)
	return name, "package piece\n"
}

// asPackage returns a program as a part of the one that has all of them: linking takes long, too.
func (p *piece) asPackage() string {
	folder, function := "main", p.id()
	if p.folder() != "programs" {
		folder, function = p.id(), "Main"
	}
	text := strings.Replace(p.text, "package main\n", "package "+folder+"\n", 1)
	return strings.Replace(text, "\nfunc main() {", "\nfunc "+function+"() {", 1)
}

// packages are those that a piece without a package clause may use.
var packages = []string{
	"context", "encoding/json", "errors", "fmt", "log", "log/slog", "net/http", "net/url", "os", "sync/atomic", "testing", "testing/synctest", "time",
	"github.com/gocolly/colly/v2", "github.com/gocolly/colly/v2/queue", "github.com/collyrobots/collyrobots",
	"github.com/collyrobots/collyrobots/dialect", "github.com/collyrobots/collyrobots/robotstest",
	"github.com/collyrobots/collyrobots/sitemap", "github.com/collyrobots/collyrobots/store",
}

// imports returns the import declarations for what text uses.
func imports(text string) string {
	var b strings.Builder
	for _, path := range packages {
		name := path[strings.LastIndex(strings.TrimSuffix(path, "/v2"), "/")+1:]
		name = strings.TrimSuffix(name, "/v2")
		if regexp.MustCompile(`(^|[^.\w])` + name + `\.[A-Z]`).MatchString(text) {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	return b.String()
}

// A workshop is where pieces are compiled and run.
type workshop struct {
	root   string // of the repository
	module string // the folder of a module of its own, which has a package for each piece
	bin    string // the programs and tests of pieces, the examples, and a go command that knows them
}

// newWorkshop compiles the Go of pieces and the examples.
func newWorkshop(t *testing.T, pieces []*piece) *workshop {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{root: root, module: t.TempDir(), bin: t.TempDir()}
	w.write(t, "go.mod", strings.Replace(read(t, "go.mod"), "module "+modulePath, "module example.com/pieces", 1)+
		fmt.Sprintf("\nrequire %s v0.0.0\nreplace %[1]s => %q\n", modulePath, root))
	w.write(t, "go.sum", read(t, "go.sum"))
	tests, examples := make(map[string]bool), make(map[string]bool)
	imports, cases := "", ""
	for _, p := range pieces {
		if p.kind == commands {
			for _, m := range regexp.MustCompile(`go run (\./examples/\w+)`).FindAllStringSubmatch(p.text, -1) {
				examples[m[1]] = true
			}
			continue
		}
		name, text := p.source(t)
		w.write(t, p.folder()+"/"+name, text)
		switch p.kind {
		case program:
			function := p.id()
			if p.folder() != "programs" {
				imports += fmt.Sprintf("import %q\n", "example.com/pieces/"+p.id())
				function += ".Main"
			}
			cases += fmt.Sprintf("case %q:\n%s()\n", p.id(), function)
		case test:
			tests[p.folder()] = true
		}
	}
	w.write(t, "programs/main.go", "package main\nimport \"os\"\n"+imports+"func main() {\nswitch os.Args[1] {\n"+cases+"}\n}\n")
	w.goCommand(t, w.module, "build", "-ldflags=-s -w", "-o", w.bin+"/", "./...")
	for folder := range tests {
		w.goCommand(t, w.module, "test", "-ldflags=-s -w", "-c", "-o", filepath.Join(w.bin, folder), "./"+folder)
	}
	w.goCommand(t, root, append([]string{"build", "-ldflags=-s -w", "-o", w.bin + "/"}, slices.Collect(maps.Keys(examples))...)...)
	if err := os.WriteFile(filepath.Join(w.bin, "go"), []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

const modulePath = "github.com/collyrobots/collyrobots"

// write writes a file of the module.
func (w *workshop) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(w.module, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shim is the go command of the guides' shells. It runs the examples as they were built. What is to be fetched, and what
// would test everything again, is only looked for.
const shim = `#!/bin/sh
verb=$1; shift
for last; do :; done
case "$verb $last" in
"run "*)
	example=${1#./examples/}; shift
	"$BIN/$example" "$@"
	status=$?
	[ $status = 0 ] || echo "exit status $status" >&2
	[ $status = 0 ] || exit 1;;
"get "* | "install "*)
	path=${last%@*}
	case $path in
	github.com/collyrobots/collyrobots*) test -d "$ROOT/${path#github.com/collyrobots/collyrobots}";;
	*) echo "go $verb $last: of another project" >&2; exit 1;;
	esac;;
"test ./...") test -f "$ROOT/go.mod";;
*) cd "$ROOT" && exec "$GO" "$verb" "$@";;
esac
`

// goCommand runs the go command in a folder.
func (w *workshop) goCommand(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, out)
	}
}

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
	cmd.Env = append(cmd.Env, "PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "BIN="+w.bin, "ROOT="+w.root, "GO="+goCommand)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
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

// matches reports whether text is as a guide says: alike but for blanks at the ends of lines and what ... stands for.
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
			t.Errorf("%q of %q: %v", test.said, test.text, got)
		}
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
