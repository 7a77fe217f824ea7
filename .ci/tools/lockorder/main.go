// Lockorder runs go test with locks that check the order in section "The locks" of ARCHITECTURE.md. A
// test fails when a goroutine takes a lock while it holds one that must be taken later.
//
//	go run ./lockorder [-C folder] [-- arguments of go test]
//
// The source is not changed: an overlay of go test gives each lock of the table a type of its own,
// which knows its level. At the end, lockorder prints the pairs of locks that were held together.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	folder := flag.String("C", "../..", "the `folder` of the module")
	flag.Parse()
	err := run(*folder, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockorder:", err)
		os.Exit(1)
	}
}

// run tests the module in a folder with go test and these arguments. It writes the output to w.
func run(folder string, args []string, w io.Writer) error {
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		return err
	}
	locks, err := parseTable(string(text))
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "lockorder")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	o, err := newOverlay(root, temp, locks)
	if err != nil {
		return err
	}
	overlay, err := o.write()
	if err != nil {
		return err
	}
	pairs := filepath.Join(temp, "pairs")
	test := exec.Command("go", append([]string{"test", "-overlay", overlay, "-vet=off", "-count=1"}, args...)...)
	test.Dir = root
	test.Env = append(os.Environ(), "LOCKORDER_PAIRS="+pairs, "GOWORK=off")
	test.Stdout = w
	test.Stderr = w
	err = test.Run()
	return errors.Join(err, printPairs(w, pairs))
}

// printPairs prints the pairs of locks that the test programs have written to a file. There is no file
// if no two locks were held together.
func printPairs(w io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		seen[strings.TrimSpace(line)] = true
	}
	fmt.Fprintf(w, "%d pairs of locks were held together:\n", len(seen))
	for _, pair := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintln(w, " ", pair)
	}
	return nil
}

// An overlay is the source of a module in which each lock has a type of its own.
type overlay struct {
	root   string
	temp   string
	locks  []lock
	module string            // its path
	files  map[string]string // the file that replaces another one, by the name of that file
}

// newOverlay returns the overlay of the module in the folder root. The folder temp is for its files.
func newOverlay(root, temp string, locks []lock) (*overlay, error) {
	o := &overlay{root: root, temp: temp, locks: locks, files: make(map[string]string)}
	out, err := command(root, "go", "list", "-m").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	o.module = strings.TrimSpace(string(out))
	out, err = command(root, "go", "list", "-f", "{{range .GoFiles}}{{$.Dir}}/{{.}}\n{{end}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for file := range strings.FieldsSeq(string(out)) {
		err := o.replace(file)
		if err != nil {
			return nil, err
		}
	}
	for _, l := range locks {
		if l.kind == "" {
			return nil, fmt.Errorf("ARCHITECTURE.md names %s, which is not a lock of the source", l.name)
		}
	}
	return o, nil
}

// command returns a command that runs in a folder without go.work.
func command(folder, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = folder
	c.Env = append(os.Environ(), "GOWORK=off")
	return c
}

// replace adds the replacement of a file, if the file declares locks of the table.
func (o *overlay) replace(file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return err
	}
	prefix := ""
	if dir := filepath.Dir(file); dir != o.root {
		prefix = filepath.Base(dir) + "."
	}
	changed := bytes.NewBuffer(nil)
	done := 0
	for _, d := range declaredIn(parsed) {
		i := slices.IndexFunc(o.locks, func(l lock) bool { return l.name == prefix+d.name })
		if i < 0 {
			continue
		}
		o.locks[i].kind = d.kind.Sel.Name
		start := set.Position(d.kind.Pos()).Offset
		changed.Write(source[done:start])
		fmt.Fprintf(changed, "lockorder.T%d", i)
		done = set.Position(d.kind.End()).Offset
	}
	if done == 0 {
		return nil
	}
	changed.Write(source[done:])
	end := set.Position(parsed.Name.End()).Offset
	text := slices.Insert(changed.Bytes(), end, fmt.Appendf(nil, "; import %q", o.module+"/internal/lockorder")...)
	text = append(text, "\nvar _ sync.Locker\n"...)
	return o.add(file, text)
}

// add adds a file with this text in place of another one, which may not exist.
func (o *overlay) add(file string, text []byte) error {
	replacement := filepath.Join(o.temp, fmt.Sprintf("%d.go", len(o.files)))
	o.files[file] = replacement
	return os.WriteFile(replacement, text, 0o600)
}

// write writes the overlay with the package that checks the order. It returns the name of the file for
// the flag -overlay.
func (o *overlay) write() (file string, err error) {
	err = o.add(filepath.Join(o.root, "internal", "lockorder", "lockorder.go"), packageOf(o.locks))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": o.files})
	if err != nil {
		return "", err
	}
	file = filepath.Join(o.temp, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// A declared is a lock that a file declares.
type declared struct {
	name string // "Type.field", "Type" if the lock is embedded, or the name of a variable
	kind *ast.SelectorExpr
}

// declaredIn returns the locks that a file declares, in their order in the file.
func declaredIn(file *ast.File) []declared {
	var all []declared
	for _, decl := range file.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if kind := lockType(spec.Type); kind != nil {
					all = append(all, declared{spec.Names[0].Name, kind})
				}
			case *ast.TypeSpec:
				all = append(all, declaredBy(spec)...)
			}
		}
	}
	return all
}

// declaredBy returns the locks among the fields of a type.
func declaredBy(spec *ast.TypeSpec) []declared {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var all []declared
	for _, field := range structure.Fields.List {
		kind := lockType(field.Type)
		if kind == nil || len(field.Names) == 0 {
			continue
		}
		all = append(all, declared{spec.Name.Name + "." + field.Names[0].Name, kind})
	}
	return all
}

// lockType returns the type of package sync in a type that is a lock or an array of locks, or nil.
func lockType(expr ast.Expr) *ast.SelectorExpr {
	if array, ok := expr.(*ast.ArrayType); ok {
		expr = array.Elt
	}
	kind, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	from, ok := kind.X.(*ast.Ident)
	if !ok || from.Name != "sync" || !slices.Contains([]string{"Mutex", "RWMutex", "Once"}, kind.Sel.Name) {
		return nil
	}
	return kind
}
