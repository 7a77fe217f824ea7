package collyrobots_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// circles are the files of the root package that need each other, and why. All other files need
// each other one way. It is a statement of policy: do not add to it to fix a build.
var circles = map[string]string{}

// TestFilesNeedEachOtherOneWay finds, by the uses of each name, which files of the root package
// need which, and the circles in that.
func TestFilesNeedEachOtherOneWay(t *testing.T) {
	needs := fileNeeds(t, ".")
	if !needs["plugin.go"]["judge.go"] || !needs["hooks.go"]["limiter.go"] || needs["limiter.go"]["hooks.go"] {
		t.Fatalf("the uses were not found: %v", needs)
	}
	found := make(map[string]bool)
	for _, circle := range circlesIn(needs) {
		name := strings.Join(circle, " ")
		found[name] = true
		if circles[name] == "" {
			t.Errorf("these files need each other: %s", name)
		}
		if len(circle) > 5 {
			t.Errorf("a circle of %d files", len(circle))
		}
	}
	for name := range circles {
		if !found[name] {
			t.Errorf("these files do not need each other any more: %s", name)
		}
	}
}

// TestCirclesAreFound shows that the test above can fail.
func TestCirclesAreFound(t *testing.T) {
	got := circlesIn(map[string]map[string]bool{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, "d": {}, "e": {"f": true}, "f": {"e": true, "a": true},
	})
	if want := [][]string{{"a", "b", "c"}, {"e", "f"}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// fileNeeds returns which of a package's files uses what others declare: types, functions, methods,
// fields.
func fileNeeds(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: strangers{}, Error: func(error) {}} // what other packages have is not needed
	pkg, _ := config.Check(folder, fset, files, info)
	needs := make(map[string]map[string]bool)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			needs[filepath.Base(name)] = make(map[string]bool)
		}
	}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := fileOf(fset, ident.Pos()), fileOf(fset, object.Pos())
		if from != to {
			needs[from][to] = true
		}
	}
	return needs
}

func fileOf(fset *token.FileSet, at token.Pos) string {
	return filepath.Base(fset.Position(at).Filename)
}

// strangers imports empty packages.
type strangers struct{}

func (strangers) Import(path string) (*types.Package, error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == "v2" {
		name = "colly"
	}
	p := types.NewPackage(path, name)
	p.MarkComplete()
	return p, nil
}

// circlesIn returns the largest sets of names of which each leads to each, sorted.
func circlesIn(needs map[string]map[string]bool) [][]string {
	reach := make(map[string]map[string]bool)
	var follow func(from, at string)
	follow = func(from, at string) {
		for to := range needs[at] {
			if !reach[from][to] {
				reach[from][to] = true
				follow(from, to)
			}
		}
	}
	for name := range needs {
		reach[name] = make(map[string]bool)
		follow(name, name)
	}
	var circles [][]string
	done := make(map[string]bool)
	for name := range needs {
		if done[name] || !reach[name][name] {
			continue
		}
		var circle []string
		for other := range reach[name] {
			if reach[other][name] {
				circle = append(circle, other)
				done[other] = true
			}
		}
		slices.Sort(circle)
		circles = append(circles, circle)
	}
	slices.SortFunc(circles, slices.Compare)
	return circles
}
