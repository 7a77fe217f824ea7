package house

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPromotion checks that the root package uses no field or method that is promoted through more
// than one level of embedding. Otherwise a reader of d.limiter would have to look into five structs
// to find the limiter.
func TestPromotion(t *testing.T) {
	fset := token.NewFileSet()
	files := parseRoot(t, fset)
	info := &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", exportData(t))}
	_, err := config.Check("collyrobots", fset, files, info)
	must(t, err)
	for expr, selection := range info.Selections {
		if embedded := len(selection.Index()) - 1; embedded > 1 {
			t.Errorf("%s: %s is promoted through %d embedded fields, want at most 1: name them, or give the struct a field of its own",
				fset.Position(expr.Sel.Pos()), expr.Sel.Name, embedded)
		}
	}
}

// parseRoot parses the files of the root package, without its tests.
func parseRoot(t *testing.T, fset *token.FileSet) (files []*ast.File) {
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		must(t, err)
		files = append(files, file)
	}
	return files
}

// exportData returns a function that opens what the compiler has written about the types of a
// package that the root imports.
func exportData(t *testing.T) func(path string) (io.ReadCloser, error) {
	command := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ".")
	command.Env = append(os.Environ(), "GOWORK=off")
	list, err := command.Output()
	must(t, err)
	found := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(found[path]) }
}
