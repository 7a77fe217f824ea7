package main

import (
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// house returns modules with the given go.mod files, without the word module at the beginning.
func house(t *testing.T, goMods ...string) []*mod {
	t.Helper()
	var modules []*mod
	for _, text := range goMods {
		file, err := modfile.Parse("go.mod", []byte("module "+text), nil)
		if err != nil {
			t.Fatal(err)
		}
		path := file.Module.Mod.Path
		_, folder, _ := strings.Cut(path, "example.com/house/")
		modules = append(modules, &mod{path: path, folder: folder, file: file})
	}
	return modules
}

// TestCheckVersions checks that each module must require the versions of the file, which may differ.
func TestCheckVersions(t *testing.T) {
	const root, versions = "example.com/house\nrequire example.com/far v1.9.0\n", "# comment\n\n. v1.2.0\na v0.2.0\nb v0.1.0\n"
	a, b := "example.com/house/a\nrequire example.com/house v1.2.0\n", "example.com/house/b\n"
	for _, test := range []struct {
		name     string
		modules  []string
		versions string
		fault    string // a part of the error; "" if there is none
	}{
		{"a version for each module", []string{root, a, b + "require (\n\texample.com/house v1.2.0\n\texample.com/house/a v0.2.0\n)\n"}, versions, ""},
		{"a replacement of a module of the house", []string{root, a + "replace example.com/house => ../\n", b}, versions, ""},
		{"an older version", []string{root, a, b + "require example.com/house/a v0.1.9\n"}, versions, "requires example.com/house/a v0.1.9, want v0.2.0"},
		{"a replacement of another module", []string{root + "replace example.com/far => ../far\n", a, b}, versions, "replaces example.com/far"},
		{"a module without a version", []string{root, a, b}, ". v1.2.0\nb v0.1.0\n", "no version of example.com/house/a"},
		{"a version without a module", []string{root, a, b}, versions + "c v0.1.0\n", `"c v0.1.0" is not the folder`},
		{"no version", []string{root, a, b}, versions + "b v0.1\n", `"b v0.1" is not the folder`},
	} {
		modules := house(t, test.modules...)
		err := setVersions(modules, test.versions)
		if err == nil {
			err = checkVersions(modules)
		}
		if (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %v; want an error about %q", test.name, err, test.fault)
		}
	}
}

func TestTagsInOrder(t *testing.T) {
	modules := sorted(house(t, "example.com/house/a\nrequire example.com/house/b v0.2.0\n", "example.com/house/b\nrequire example.com/house v0.2.0\n", "example.com/house\n"))
	var tags []string
	for _, m := range modules {
		m.version = "v0.2.0"
		tags = append(tags, m.tag())
	}
	if got, want := strings.Join(tags, " "), "v0.2.0 b/v0.2.0 a/v0.2.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
