package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aliases are the types of package report that have a name in the root package too, because almost
// every program uses them.
var aliases = []string{"Decision", "Event", "Stats"}

// TestAliases checks that the root package has no other aliases: a type has one name, and a type that
// users see is documented where it is declared.
func TestAliases(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		must(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if ok && spec.Assign.IsValid() {
				found = append(found, spec.Name.Name)
			}
			return true
		})
	}
	slices.Sort(found)
	if !slices.Equal(found, aliases) {
		t.Errorf("the root package has the aliases %v, want %v", found, aliases)
	}
}
