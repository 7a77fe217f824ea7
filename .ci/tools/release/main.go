// Command release checks that programs can use the modules of this repository after a tag on this
// commit is pushed. It serves the published modules like a module proxy, and builds and runs
// programs in other modules that require them.
//
//	go run ./release              check that programs can use the modules
//	go run ./release -n           check only that the modules and their packages are found
//	go run ./release -set         make them require the versions in .ci/versions
//	go run ./release -tags        print the tags of a release, in the order to push them
//	go run ./release -strip       remove the replace directives that go install does not accept
//
// The file .ci/versions has the version of each module.
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
)

func main() {
	root := flag.String("root", "../..", "the `folder` of the main module")
	load := flag.Bool("n", false, "load the packages, but compile and run nothing")
	set := flag.Bool("set", false, "make the published modules require the versions in .ci/versions of each other")
	tags := flag.Bool("tags", false, "print the tags of a release")
	strip := flag.Bool("strip", false, "remove the replace directives of the modules with programs")
	flag.Parse()
	if err := run(*root, *load, *set, *tags, *strip); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root string, load, set, tags, strip bool) error {
	modules, err := published(root)
	switch {
	case err != nil:
		return err
	case set:
		return requireVersions(modules)
	case strip:
		return stripAll(modules)
	}
	err = checkVersions(modules)
	if err != nil {
		return err
	}
	if tags {
		for _, m := range modules {
			fmt.Println(m.tag())
		}
		return nil
	}
	return prove(modules, load)
}

// requireVersions makes the modules require the versions of each other.
func requireVersions(modules []*mod) error {
	for _, m := range modules {
		for _, r := range m.requiresOf(modules) {
			if err := m.file.AddRequire(r.Mod.Path, find(modules, r.Mod.Path).version); err != nil {
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

// checkVersions fails if a module requires a version of another one that is not its next, or if it has
// replace directives for other modules, which have no effect in the programs of users.
func checkVersions(modules []*mod) error {
	var faults []string
	for _, m := range modules {
		for _, r := range m.requiresOf(modules) {
			want := find(modules, r.Mod.Path).version
			if r.Mod.Version != want {
				faults = append(faults, fmt.Sprintf("%s requires %s %s, want %s", m.path, r.Mod.Path, r.Mod.Version, want))
			}
		}
		for _, r := range m.file.Replace {
			if find(modules, r.Old.Path) == nil {
				faults = append(faults, fmt.Sprintf("%s replaces %s, which has no effect for its users", m.path, r.Old.Path))
			}
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s\nRELEASING.md says how to set versions", strings.Join(faults, "\n"))
	}
	return nil
}
