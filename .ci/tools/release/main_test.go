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

func TestVersionOf(t *testing.T) {
	const root = "example.com/house\nrequire example.com/far v1.9.0\n"
	for _, test := range []struct {
		name    string
		modules []string
		want    string
		fault   string // a part of the error; "" if there is none
	}{
		{"one version", []string{root, "example.com/house/a\nrequire example.com/house v0.2.0\n", "example.com/house/b\nrequire example.com/house v0.2.0\n"}, "v0.2.0", ""},
		{"a candidate", []string{root, "example.com/house/a\nrequire example.com/house v1.0.0-rc.1\n"}, "v1.0.0-rc.1", ""},
		{"no requirement", []string{root}, "v0.0.1", ""},
		{"a replacement of a module of the house", []string{root, "example.com/house/a\nrequire example.com/house v0.2.0\nreplace example.com/house => ../\n"}, "v0.2.0", ""},
		{"no version yet", []string{root, "example.com/house/a\nrequire example.com/house v0.0.0\n"}, "", "no tag can name"},
		{"a commit", []string{root, "example.com/house/a\nrequire example.com/house v0.0.0-20260102030405-0123456789ab\n"}, "", "no tag can name"},
		{"two versions", []string{root, "example.com/house/a\nrequire example.com/house v0.2.0\n", "example.com/house/b\nrequire example.com/house v0.1.0\n"}, "", "another module requires v0.2.0"},
		{"another version of a nested module", []string{root, "example.com/house/a\nrequire example.com/house v0.2.0\n",
			"example.com/house/b\nrequire (\n\texample.com/house v0.2.0\n\texample.com/house/a v0.1.0\n)\n"}, "", "requires example.com/house/a v0.1.0"},
		{"a replacement of another module", []string{root + "replace example.com/far => ../far\n"}, "", "replaces example.com/far"},
	} {
		got, err := versionOf(house(t, test.modules...))
		if got != test.want || (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %q, %v; want %q and an error about %q", test.name, got, err, test.want, test.fault)
		}
	}
}

func TestTagsInOrder(t *testing.T) {
	modules := sorted(house(t, "example.com/house/a\nrequire example.com/house/b v0.2.0\n", "example.com/house/b\nrequire example.com/house v0.2.0\n", "example.com/house\n"))
	var tags []string
	for _, m := range modules {
		tags = append(tags, m.tag("v0.2.0"))
	}
	if got, want := strings.Join(tags, " "), "v0.2.0 b/v0.2.0 a/v0.2.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
