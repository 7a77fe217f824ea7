package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// TestOneGoroutine checks that the packages which .ci/run tests only without the race detector start no
// goroutines, and that their tests start none.
func TestOneGoroutine(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^unshared='(.*)'$`).FindStringSubmatch(string(script))
	if line == nil {
		t.Fatal(".ci/run has no line that begins with unshared=")
	}
	unshared := regexp.MustCompile("^(" + line[1] + ")$")
	packages := make(map[string]bool)
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		folder := filepath.ToSlash(filepath.Dir(name))
		if filepath.Ext(name) != ".go" || !unshared.MatchString(folder) || folder == "internal/docs" || folder == "internal/house" {
			return err
		}
		packages[folder] = true
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if what := goroutines(file); what != "" {
			t.Errorf("%s has %s, so .ci/run must test the package with the race detector", name, what)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Errorf("%s matches only the packages %v", unshared, packages)
	}
}

// goroutines returns what starts goroutines in a file, or "".
func goroutines(file *ast.File) (what string) {
	starts := []string{"testing/synctest", "net/http/httptest", "github.com/collyrobots/collyrobots/robotstest"}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if slices.Contains(starts, path) {
			what = "an import of " + path
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.SelectorExpr:
			if slices.Contains([]string{"Go", "Parallel", "RunParallel"}, n.Sel.Name) {
				what = "a call of " + n.Sel.Name
			}
		}
		return true
	})
	return what
}
