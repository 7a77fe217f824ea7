// Command release proves that what a tag on this commit would publish can be used: it serves the published modules of this
// repository as a module proxy would, to a program of a module of its own that requires them, builds that and runs it.
//
//	go run ./release              prove it; prints the version that the nested modules ask for
//	go run ./release -set v0.2.0  make that the version they ask for
//	go run ./release -tags        print the tags of a release in the order in which to push them
//
// A published module is one with a package that others can import. Everything is written to a temporary folder; neither the
// working tree nor the module cache is changed, but for -set.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func main() {
	root := flag.String("root", "../..", "the `folder` of the main module")
	set := flag.String("set", "", "the `version` that published modules are to require of each other")
	tags := flag.Bool("tags", false, "print the tags of a release")
	flag.Parse()
	if err := run(*root, *set, *tags); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root, set string, tags bool) error {
	modules, err := published(root)
	if err != nil {
		return err
	}
	if set != "" {
		return setVersion(modules, set)
	}
	version, err := versionOf(modules)
	if err != nil {
		return err
	}
	if tags {
		for _, m := range modules {
			fmt.Println(m.tag(version))
		}
		return nil
	}
	return prove(modules, version)
}

// setVersion makes version the one that the modules require of each other.
func setVersion(modules []*mod, version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	for _, m := range modules {
		for _, r := range m.requiresOf(modules) {
			if err := m.file.AddRequire(r.Mod.Path, version); err != nil {
				return err
			}
		}
		m.file.Cleanup()
		if err := os.WriteFile(m.goMod(), modfile.Format(m.file.Syntax), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// versionOf returns the version that the modules require of each other. It must be one and the same, and one that a tag can
// have; and they must build without the replace directives that users' builds ignore.
func versionOf(modules []*mod) (string, error) {
	version := ""
	var faults []string
	for _, m := range modules {
		for _, r := range m.requiresOf(modules) {
			if version == "" {
				version = r.Mod.Version
			}
			switch v := r.Mod.Version; {
			case v == "v0.0.0" || semver.Prerelease(v) != "" && strings.Count(v, "-") > 1:
				faults = append(faults, fmt.Sprintf("%s requires %s %s, which no tag can name", m.path, r.Mod.Path, v))
			case v != version:
				faults = append(faults, fmt.Sprintf("%s requires %s %s, another module asks for %s", m.path, r.Mod.Path, v, version))
			}
		}
		for _, r := range m.file.Replace {
			if !isOneOf(modules, r.Old.Path) {
				faults = append(faults, fmt.Sprintf("%s replaces %s, which is without effect for its users", m.path, r.Old.Path))
			}
		}
	}
	switch {
	case len(faults) > 0:
		return "", fmt.Errorf("%s\nRELEASING.md says how to set versions", strings.Join(faults, "\n"))
	case version == "":
		return "v0.0.1", nil // nobody asks: any will do
	}
	return version, nil
}
