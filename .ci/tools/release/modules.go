package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// mod is a published module of this repository.
type mod struct {
	path     string // the module path
	dir      string
	folder   string // dir relative to the root of the repository; "" for the main module
	version  string // of the next release
	file     *modfile.File
	packages []string // the import paths of the packages that other modules can import
	programs []string // the import paths of the programs below the folder cmd
}

func (m *mod) goMod() string { return filepath.Join(m.dir, "go.mod") }

// published returns the go.mod that a release of m has. If m has programs, it has no replace
// directives: go install package@version does not accept them.
func (m *mod) published() ([]byte, error) {
	text, err := os.ReadFile(m.goMod())
	if err != nil || len(m.programs) == 0 {
		return text, err
	}
	file, err := modfile.Parse(m.goMod(), text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(file.Replace) {
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	file.Cleanup()
	return modfile.Format(file.Syntax), nil
}

// tag returns the name of the tag that publishes m.
func (m *mod) tag() string { return path.Join(m.folder, m.version) }

// find returns the module with a path, or nil if there is none.
func find(modules []*mod, path string) *mod {
	i := slices.IndexFunc(modules, func(m *mod) bool { return m.path == path })
	if i < 0 {
		return nil
	}
	return modules[i]
}

// requiresOf returns the requirements of m that are in modules.
func (m *mod) requiresOf(modules []*mod) []*modfile.Require {
	return slices.DeleteFunc(slices.Clone(m.file.Require), func(r *modfile.Require) bool { return find(modules, r.Mod.Path) == nil })
}

// published returns the published modules below root. A module comes after the modules that it
// requires.
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
		if err == nil && len(m.packages)+len(m.programs) > 0 {
			modules = append(modules, m)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, ".ci", "versions"))
	if err != nil {
		return nil, err
	}
	return sorted(modules), setVersions(modules, string(text))
}

// setVersions sets the version of each module. Each line of text that is not empty or a comment has the
// folder of a module and its version.
func setVersions(modules []*mod, text string) error {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		i := slices.IndexFunc(modules, func(m *mod) bool { return path.Join(".", m.folder) == fields[0] })
		if len(fields) != 2 || i < 0 || !semver.IsValid(fields[1]) || semver.Canonical(fields[1]) != fields[1] {
			return fmt.Errorf("%q is not the folder of a published module and a version such as v1.2.3", strings.TrimSpace(line))
		}
		modules[i].version = fields[1]
	}
	for _, m := range modules {
		if m.version == "" {
			return fmt.Errorf(".ci/versions has no version of %s", m.path)
		}
	}
	return nil
}

// read returns the module in dir.
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
	m.file, err = modfile.Parse(m.goMod(), text, nil)
	if err != nil {
		return nil, err
	}
	m.path = m.file.Module.Mod.Path
	m.packages, err = packagesOf(dir, "ne")
	if err != nil {
		return nil, err
	}
	m.programs, err = packagesOf(dir, "eq")
	m.programs = slices.DeleteFunc(m.programs, func(name string) bool { return !slices.Contains(strings.Split(name, "/"), "cmd") })
	return m, err
}

// packagesOf returns the import paths of the packages of the module in dir that are not internal.
// With "eq" they are its programs, and with "ne" the packages that other modules can import.
func packagesOf(dir, comparison string) ([]string, error) {
	list := exec.Command("go", "list", "-f", "{{if and .GoFiles ("+comparison+" .Name `main`)}}{{.ImportPath}}{{end}}", "./...")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off")
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

// sorted returns the modules in an order that their tags can be pushed in.
func sorted(modules []*mod) []*mod {
	var order []*mod
	for len(order) < len(modules) {
		n := len(order)
		for _, m := range modules {
			ready := !slices.ContainsFunc(m.requiresOf(modules), func(r *modfile.Require) bool { return find(order, r.Mod.Path) == nil })
			if ready && !slices.Contains(order, m) {
				order = append(order, m)
			}
		}
		if len(order) == n {
			return modules // they require each other in a circle, which the build will report
		}
	}
	return order
}
