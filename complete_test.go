package collyrobots_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
)

// The tests of this file read the source. They check that lists which name every option, or every
// value of a type, are complete.

// declarations returns the declarations of the files in a folder, without tests, by file.
func declarations(t *testing.T, folder string) map[string][]ast.Decl {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must(t, err)
	found := make(map[string][]ast.Decl)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		must(t, err)
		found[name] = file.Decls
	}
	return found
}

// constantsOf returns the constants of the root package that have the given type: their names and
// the texts that they stand for.
func constantsOf(t *testing.T, typeName string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, decls := range declarations(t, ".") {
		for _, d := range decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				constant := s.(*ast.ValueSpec)
				of, ok := constant.Type.(*ast.Ident)
				if !ok || of.Name != typeName {
					continue
				}
				text, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
				must(t, err)
				found[constant.Names[0].Name] = text
			}
		}
	}
	return found
}

// TestEachReasonIsCounted checks that Stats can count each Reason, also one that was forgotten, and
// that the lists of reasons outside of this package are complete.
func TestEachReasonIsCounted(t *testing.T) {
	reasons := constantsOf(t, "Reason")
	if len(reasons) < 11 {
		t.Fatalf("found only %v", reasons)
	}
	for name, text := range reasons {
		counts := collyrobots.CountReason(collyrobots.Reason(text))
		if len(counts) != 1 || counts[collyrobots.Reason(text)] != 1 {
			t.Errorf("%s: got the counts %v", name, counts)
		}
		for file, code := range map[string]string{
			"metrics/internal/figures/figures.go": "collyrobots." + name,
			"docs/metrics.md":                     "`" + text + "`",
			"docs/troubleshooting.md":             "`" + text + "`",
			"view/assets/text.js":                 text + ":",
		} {
			content, err := os.ReadFile(file)
			must(t, err)
			if !strings.Contains(string(content), code) {
				t.Errorf("%s does not contain %s", file, code)
			}
		}
	}
	if counts := collyrobots.CountReason("forgotten"); counts["forgotten"] != 1 {
		t.Errorf("a Reason that is in no list has the counts %v", counts)
	}
}
