package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxArchitecture is the number of words of ARCHITECTURE.md that can be read in ten minutes.
const maxArchitecture = 1500

// TestArchitecture checks that ARCHITECTURE.md is short, and that each path in it exists. A path is a
// word in code style that contains a slash or is the name of a file.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	must(t, err)
	if n := len(strings.Fields(string(text))); n > maxArchitecture {
		t.Errorf("ARCHITECTURE.md has %d words, want at most %d: move details to package comments", n, maxArchitecture)
	}
	for _, word := range codeWords(string(text)) {
		isPath := strings.Contains(word, "/") || strings.HasSuffix(word, ".go") || strings.HasSuffix(word, ".md")
		if !isPath {
			continue
		}
		_, err := os.Stat(word)
		if err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", word)
		}
	}
}

// TestLocks checks that the table of locks in ARCHITECTURE.md has each lock of the packages that
// the plugin consists of, and no other. If the test fails because of a new lock, find out which locks
// are taken while it is held, and which locks are held while it is taken, before you give it a level.
func TestLocks(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## The locks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| ") {
			named = append(named, codeWords(line)...)
		}
	}
	locks := locksOf(t, packagesOfPlugin(t))
	for _, lock := range locks {
		if !slices.Contains(named, lock) {
			t.Errorf("ARCHITECTURE.md gives the lock %s no level", lock)
		}
	}
	for _, name := range named {
		if !slices.Contains(locks, name) {
			t.Errorf("ARCHITECTURE.md gives a level to %s, which is no lock of the plugin", name)
		}
	}
}

// codeWords returns the words of a Markdown text that are in code style.
func codeWords(text string) []string {
	var words []string
	for _, match := range regexp.MustCompile("`([^` ]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return words
}

// packagesOfPlugin returns the folders of the root package and of all packages of the module that it
// imports, also indirectly.
func packagesOfPlugin(t *testing.T) []string {
	t.Helper()
	files := importsBelow(t, ".", false)
	folders := []string{"."}
	for i := 0; i < len(folders); i++ {
		for file, imports := range files {
			if path.Dir(file) != folders[i] {
				continue
			}
			for _, imported := range imports {
				folder, isOwn := strings.CutPrefix(imported, "./")
				if isOwn && !slices.Contains(folders, folder) {
					folders = append(folders, folder)
				}
			}
		}
	}
	return folders
}

// locksOf returns the names of the locks in these folders: the fields of structs, and the variables
// of packages, whose type is sync.Mutex, sync.RWMutex or sync.Once. A name has the form "Type.field"
// in the root package, and "package.Type.field" elsewhere.
func locksOf(t *testing.T, folders []string) []string {
	t.Helper()
	var locks []string
	eachFile(t, folders, func(prefix string, file *ast.File) {
		for _, lock := range locksIn(file) {
			locks = append(locks, prefix+lock)
		}
	})
	return locks
}

// eachFile calls f for each file in these folders that is not a test, with the prefix of the names in
// it: "" in the root package, and "package." elsewhere.
func eachFile(t *testing.T, folders []string, f func(prefix string, file *ast.File)) {
	t.Helper()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		must(t, err)
		prefix := path.Base(folder) + "."
		if folder == "." {
			prefix = ""
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			must(t, err)
			f(prefix, parsed)
		}
	}
}

// locksIn returns the locks that a file declares.
func locksIn(file *ast.File) []string {
	var locks []string
	for _, decl := range file.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if isLock(spec.Type) {
					locks = append(locks, spec.Names[0].Name)
				}
			case *ast.TypeSpec:
				locks = append(locks, locksInType(spec)...)
			}
		}
	}
	return locks
}

// locksInType returns the locks among the fields of a type.
func locksInType(spec *ast.TypeSpec) []string {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var locks []string
	for _, field := range structure.Fields.List {
		if !isLock(field.Type) {
			continue
		}
		if len(field.Names) == 0 {
			locks = append(locks, spec.Name.Name)
		}
		for _, name := range field.Names {
			locks = append(locks, spec.Name.Name+"."+name.Name)
		}
	}
	return locks
}

// isLock reports whether a type, which may be nil, is a lock or an array of locks.
func isLock(expr ast.Expr) bool {
	if array, ok := expr.(*ast.ArrayType); ok {
		expr = array.Elt
	}
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && from.Name == "sync" && slices.Contains([]string{"Mutex", "RWMutex", "Once"}, selector.Sel.Name)
}
