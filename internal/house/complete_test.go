package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// The tests of this file read the source. They check that lists which name every option, or every
// value of a type, are complete.

// parse returns the syntax of a Go file.
func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	must(t, err)
	return file
}

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
		found[name] = parse(t, name).Decls
	}
	return found
}

// constantsOf returns the constants of the root package that have the given type: their names and
// the texts that they stand for.
func constantsOf(t *testing.T, typeName string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, decls := range declarations(t, "report") {
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

// TestEachReasonIsListed checks that the lists of reasons outside of the root package are complete.
func TestEachReasonIsListed(t *testing.T) {
	reasons := constantsOf(t, "Reason")
	if len(reasons) < 11 {
		t.Fatalf("found only %v", reasons)
	}
	for name, text := range reasons {
		for file, code := range map[string]string{
			"report/decision.go":      name + ",",
			"docs/troubleshooting.md": "`" + text + "`",
		} {
			content, err := os.ReadFile(file)
			must(t, err)
			if !strings.Contains(string(content), code) {
				t.Errorf("%s does not contain %s", file, code)
			}
		}
	}
}

// TestEachDialectIsListed checks that the tables of docs/dialects.md have a column for each dialect,
// and that package policy has a case for each of them.
func TestEachDialectIsListed(t *testing.T) {
	table := textOf(t, "internal/policy/access.go")
	var names []string
	for _, d := range dialect.All() {
		names = append(names, d.String())
	}
	columns := "| " + strings.Join(names, " | ") + " |\n"
	if n := strings.Count(textOf(t, "docs/dialects.md"), columns); n != 3 {
		t.Errorf("docs/dialects.md has %d tables with the columns %s", n, columns)
	}
	if n := strings.Count(table, "\tcase dialect."); n != len(names) {
		t.Errorf("tableOf has %d cases, want one for each of %v", n, names)
	}
}

// publicPackages returns the folders of the packages that programs of users import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var folders []string
	for name := range importsBelow(t, ".", false) {
		folder := path.Dir(name)
		isInternal := slices.Contains(strings.Split(folder, "/"), "internal")
		if isInternal || slices.Contains(folders, folder) || parse(t, name).Name.Name == "main" {
			continue
		}
		folders = append(folders, folder)
	}
	return folders
}

// TestCommentsBeginWithTheirName checks that the comment of each exported function, method and type
// begins with its name, as go doc expects. A comment of another declaration does not.
func TestCommentsBeginWithTheirName(t *testing.T) {
	folders := publicPackages(t)
	if len(folders) < 20 {
		t.Fatalf("found only the packages %v", folders)
	}
	for _, folder := range folders {
		for file, decls := range declarations(t, folder) {
			for _, d := range decls {
				for name, comment := range commentsOf(d) {
					first := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(comment, "A "), "An "), "The ")
					if first != name && !strings.HasPrefix(first, name+" ") && !strings.HasPrefix(first, name+"\n") {
						t.Errorf("%s: the comment of %s begins with %.40q", file, name, comment)
					}
				}
			}
		}
	}
}

// commentsOf returns the comments of the exported functions, methods and types of a declaration.
func commentsOf(d ast.Decl) map[string]string {
	comments := make(map[string]string)
	switch d := d.(type) {
	case *ast.FuncDecl:
		ofExported := d.Recv == nil || ast.IsExported(receiverOf(d))
		if d.Name.IsExported() && ofExported {
			comments[d.Name.Name] = d.Doc.Text()
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			s, ok := s.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() {
				continue
			}
			comments[s.Name.Name] = s.Doc.Text()
			if s.Doc == nil {
				comments[s.Name.Name] = d.Doc.Text()
			}
		}
	}
	return comments
}

// receiverOf returns the name of the type of a method.
func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}
