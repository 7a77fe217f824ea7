package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A workshop has the folders where pieces are compiled and run.
type workshop struct {
	root   string // the root of the repository
	module string // a module with the Go code of the pieces
	bin    string // the compiled pieces, examples and commands, and a go command that runs them
}

// newWorkshop compiles the Go code of pieces, and the examples that they run.
func newWorkshop(t *testing.T, pieces []*piece) *workshop {
	t.Helper()
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	w := &workshop{root: root, module: t.TempDir(), bin: t.TempDir()}
	w.write(t, "go.mod", "module example.com/pieces\n\ngo 1.25.0\n")
	w.write(t, "go.work", w.workspace(t))
	w.write(t, "go.work.sum", read(t, "go.work.sum"))
	tests := make(map[string]bool)    // the folders of the tests
	examples := make(map[string]bool) // the packages of the examples and commands
	imports := ""
	cases := "" // of the program that contains all programs
	for _, p := range pieces {
		if p.kind == commands {
			for _, m := range regexp.MustCompile(`go run (\./(?:examples|cmd)/\w+)`).FindAllStringSubmatch(p.text, -1) {
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
	w.goCommand(t, w.module, "build", "./...") // with -o, only main packages and their dependencies would be compiled
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

// workspace returns a go.work with the pieces and all modules of the go.work of the repository.
func (w *workshop) workspace(t *testing.T) string {
	t.Helper()
	folders := regexp.MustCompile(`(?m)^\t\..*$`)
	return "use .\n" + folders.ReplaceAllStringFunc(read(t, "go.work"), func(folder string) string {
		return fmt.Sprintf("\t%q", filepath.Join(w.root, strings.TrimSpace(folder)))
	})
}

// write creates a file of the module.
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

// shim replaces the go command for the commands in the guides. It runs the compiled examples and
// commands. For "go get", "go install" and "go test ./...", it only checks that the package or
// module exists.
const shim = `#!/bin/sh
verb=$1; shift
for last; do :; done
case "$verb $last" in
"run "*)
	example=${1##*/}; shift
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
	cmd.Env = append(os.Environ(), "GOWORK=") // the guides are for a clone, which has a go.work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, out)
	}
}
