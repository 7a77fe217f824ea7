package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// mod is a module of this repository that others can use.
type mod struct {
	path     string // as in its go.mod
	dir      string
	folder   string // of the repository, "" for the main module
	file     *modfile.File
	packages []string // import paths of what can be imported
}

func (m *mod) goMod() string { return filepath.Join(m.dir, "go.mod") }

// tag returns the name of the tag that makes version of m known.
func (m *mod) tag(version string) string {
	if m.folder == "" {
		return version
	}
	return m.folder + "/" + version
}

// requiresOf returns what m requires of modules.
func (m *mod) requiresOf(modules []*mod) []*modfile.Require {
	return slices.DeleteFunc(slices.Clone(m.file.Require), func(r *modfile.Require) bool { return !isOneOf(modules, r.Mod.Path) })
}

func isOneOf(modules []*mod, path string) bool {
	return slices.ContainsFunc(modules, func(m *mod) bool { return m.path == path })
}

// published returns the modules below root that have something to import, what is required before what requires it.
func published(root string) ([]*mod, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	var modules []*mod
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		m, err := read(root, filepath.Dir(name))
		if err == nil && len(m.packages) > 0 {
			modules = append(modules, m)
		}
		return err
	})
	return sorted(modules), err
}

func read(root, dir string) (*mod, error) {
	m := &mod{dir: dir}
	folder, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	if folder != "." {
		m.folder = filepath.ToSlash(folder)
	}
	text, err := os.ReadFile(m.goMod())
	if err != nil {
		return nil, err
	}
	if m.file, err = modfile.Parse(m.goMod(), text, nil); err != nil {
		return nil, err
	}
	m.path = m.file.Module.Mod.Path
	m.packages, err = importable(dir)
	return m, err
}

// importable returns the packages of the module in dir that other modules can import.
func importable(dir string) ([]string, error) {
	list := exec.Command("go", "list", "-f", "{{if and .GoFiles (ne .Name `main`)}}{{.ImportPath}}{{end}}", "./...")
	list.Dir = dir
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: go list: %w\n%s", dir, err, &stderr)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return slices.Contains(strings.Split(name, "/"), "internal")
	}), nil
}

// sorted returns modules in the order in which their tags can be pushed.
func sorted(modules []*mod) []*mod {
	var order []*mod
	for len(order) < len(modules) {
		n := len(order)
		for _, m := range modules {
			ready := !slices.ContainsFunc(m.requiresOf(modules), func(r *modfile.Require) bool { return !isOneOf(order, r.Mod.Path) })
			if ready && !slices.Contains(order, m) {
				order = append(order, m)
			}
		}
		if len(order) == n {
			return modules // they require each other in a circle; whoever builds them will hear of it
		}
	}
	return order
}
