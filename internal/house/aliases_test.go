package house

import (
	"go/ast"
	"slices"
	"testing"
)

// aliases are the types of package report that have a name in the root package too, because almost
// every program uses them.
var aliases = []string{"Decision", "Event", "Stats"}

// TestAliases checks that the root package has no other aliases: a type has one name, and a type that
// users see is documented where it is declared.
func TestAliases(t *testing.T) {
	var found []string
	eachFile(t, []string{"."}, func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if ok && spec.Assign.IsValid() {
				found = append(found, spec.Name.Name)
			}
			return true
		})
	})
	slices.Sort(found)
	if !slices.Equal(found, aliases) {
		t.Errorf("the root package has the aliases %v, want %v", found, aliases)
	}
}
