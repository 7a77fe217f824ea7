// Command release checks that programs can use the modules of this repository after a tag on this
// commit is pushed. It serves the published modules like a module proxy, and builds and runs
// programs in other modules that require them.
//
//	go run ./release              check that programs can use the modules
//	go run ./release -n           check only that the modules and their packages are found
//	go run ./release -set v0.2.0  set the version that they require
//	go run ./release -tags        print the tags of a release, in the order to push them
//	go run ./release -strip       remove the replace directives that go install does not accept
//
// A module is published if it has a package that other modules can import, or a program below the
// folder cmd. The command writes only to a temporary folder, except with -set and -strip, which
// change go.mod files.
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
	load := flag.Bool("n", false, "load the packages, but compile and run nothing")
	set := flag.String("set", "", "set the `version` that the published modules require of each other")
	tags := flag.Bool("tags", false, "print the tags of a release")
	strip := flag.Bool("strip", false, "remove the replace directives of the modules with programs")
	flag.Parse()
	if err := run(*root, *set, *load, *tags, *strip); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root, set string, load, tags, strip bool) error {
	modules, err := published(root)
	if err != nil {
		return err
	}
	if set != "" {
		return setVersion(modules, set)
	}
	if strip {
		return stripAll(modules)
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
	return prove(modules, version, load)
}

// setVersion sets the version that the modules require of each other.
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

// stripAll removes the replace directives of the modules with programs.
func stripAll(modules []*mod) error {
	for _, m := range modules {
		text, err := m.published()
		if err == nil {
			err = os.WriteFile(m.goMod(), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// versionOf returns the version that the modules require of each other. It fails if they require
// different versions or a version that a tag cannot have, or if they have replace directives for
// other modules, which have no effect in the programs of users.
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
				faults = append(faults, fmt.Sprintf("%s requires %s %s, but another module requires %s", m.path, r.Mod.Path, v, version))
			}
		}
		for _, r := range m.file.Replace {
			if !isOneOf(modules, r.Old.Path) {
				faults = append(faults, fmt.Sprintf("%s replaces %s, which has no effect for its users", m.path, r.Old.Path))
			}
		}
	}
	switch {
	case len(faults) > 0:
		return "", fmt.Errorf("%s\nRELEASING.md says how to set versions", strings.Join(faults, "\n"))
	case version == "":
		return "v0.0.1", nil // no module requires another, so any version is right
	}
	return version, nil
}
