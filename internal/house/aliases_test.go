package house

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// aliases are the types of other packages that have a name in the root package too: those that almost
// every program uses, the errors of requests, and the argument of an option.
var aliases = []string{"Decision", "Event", "PaceError", "Permission", "PrivateNetworkError", "ShardError", "Stats", "URLError"}

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

// TestErrorsAreInOnePlace checks that the root package has a name for each error of package report, and
// that the table of docs/troubleshooting.md has each error of the root package.
func TestErrorsAreInOnePlace(t *testing.T) {
	named := errorsIn(t, ".")
	for _, name := range errorsIn(t, "report") {
		if !slices.Contains(named, name) {
			t.Errorf("the root package has no name for report.%s", name)
		}
	}
	table, err := os.ReadFile("docs/troubleshooting.md")
	must(t, err)
	for _, name := range named {
		row := "\n| `" + name + "` |"
		if !strings.HasPrefix(name, "Err") {
			row = "\n| `*" + name + "` |"
		}
		if !strings.Contains(string(table), row) {
			t.Errorf("the table of errors in docs/troubleshooting.md has no row of %s", name)
		}
	}
}

// errorsIn returns the exported variables and types of a package whose names say that they are errors.
func errorsIn(t *testing.T, folder string) []string {
	var found []string
	add := func(name string, isError bool) {
		if isError && ast.IsExported(name) {
			found = append(found, name)
		}
	}
	eachFile(t, []string{folder}, func(_ string, file *ast.File) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name, strings.HasSuffix(spec.Name.Name, "Error"))
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name, strings.HasPrefix(name.Name, "Err"))
					}
				}
			}
		}
	})
	return found
}
