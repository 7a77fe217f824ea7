package house

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTerms checks that a word of the table in section "Words of the code" of CONTRIBUTING is the name of
// the listed functions only. A new function with such a name must have the meaning in the table, and is
// added to its row.
func TestTerms(t *testing.T) {
	text, err := os.ReadFile(".github/CONTRIBUTING.md")
	must(t, err)
	_, section, found := strings.Cut(string(text), "\n## Words of the code\n")
	if !found {
		t.Fatal("CONTRIBUTING has no section about the words of the code")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string][]string)
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || len(codeWords(cells[1])) == 0 {
			continue
		}
		listed[codeWords(cells[1])[0]] = codeWords(cells[3])
	}
	if len(listed) < 5 {
		t.Fatalf("the table has %d words", len(listed))
	}
	named := functionsOf(t, packagesOfPlugin(t))
	for word, functions := range listed {
		for _, name := range named[word] {
			if !slices.Contains(functions, name) {
				t.Errorf("CONTRIBUTING does not list %s under %q: rename it if it has another meaning", name, word)
			}
		}
		for _, name := range functions {
			if !slices.Contains(named[word], name) {
				t.Errorf("CONTRIBUTING lists %s under %q, which is no function of that name", name, word)
			}
		}
	}
}

// functionsOf returns the functions in these folders by their name in lower case. They are given as
// "function" or "Type" in the root package, and as "package.function" or "package.Type" elsewhere.
func functionsOf(t *testing.T, folders []string) map[string][]string {
	t.Helper()
	named := make(map[string][]string)
	eachFile(t, folders, func(prefix string, file *ast.File) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				word := strings.ToLower(f.Name.Name)
				named[word] = append(named[word], prefix+ownerOf(f))
			}
		}
	})
	return named
}

// ownerOf returns the type of a method, or the name of a function.
func ownerOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	owner := f.Recv.List[0].Type
	if pointer, ok := owner.(*ast.StarExpr); ok {
		owner = pointer.X
	}
	if generic, ok := owner.(*ast.IndexExpr); ok {
		owner = generic.X
	}
	return owner.(*ast.Ident).Name
}
