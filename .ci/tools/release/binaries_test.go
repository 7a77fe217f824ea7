package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// list returns the elements of a list such as "goos: [linux, darwin]" of the build in
// goreleaser.yaml.
func list(t *testing.T, config, key string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^    ` + key + `: \[(.*)\]$`).FindStringSubmatch(config)
	if m == nil {
		t.Fatalf("goreleaser.yaml has no list %s", key)
	}
	return strings.Split(m[1], ", ")
}

var binaries = flag.Bool("binaries", false, "build the command for each operating system")

// TestBinaries builds the command as goreleaser.yaml says, once for each operating system, because
// the architectures share almost all files. Without -binaries, it only reads goreleaser.yaml, because
// the builds take minutes.
func TestBinaries(t *testing.T) {
	text, err := os.ReadFile("../../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	if !strings.Contains(config, "- main: ./cmd/collyrobots\n") {
		t.Error("goreleaser.yaml does not build ./cmd/collyrobots")
	}
	archs := list(t, config, "goarch")
	systems := list(t, config, "goos")
	if want := []string{"linux", "darwin", "windows"}; !slices.Equal(systems, want) {
		t.Errorf("programs for %v, want %v", systems, want)
	}
	for i, system := range systems {
		if !*binaries {
			continue
		}
		arch := archs[i%len(archs)]
		args := append([]string{"build"}, list(t, config, "flags")...)
		build := exec.CommandContext(t.Context(), "go", append(args, "-o", filepath.Join(t.TempDir(), "collyrobots"), "./cmd/collyrobots")...)
		build.Dir = "../../.."
		build.Env = append(os.Environ(), "GOWORK=", "GOOS="+system, "GOARCH="+arch)
		build.Env = append(build.Env, list(t, config, "env")...)
		out, err := build.CombinedOutput()
		if err != nil {
			t.Errorf("%s, %s: %v\n%s", system, arch, err, out)
		}
	}
}

// TestGoreleaser checks goreleaser.yaml with goreleaser itself.
func TestGoreleaser(t *testing.T) {
	if _, err := exec.LookPath("goreleaser"); err != nil {
		t.Skip("goreleaser is not installed: go install github.com/goreleaser/goreleaser/v2@v2.12.5")
	}
	check := exec.CommandContext(t.Context(), "goreleaser", "check", ".ci/goreleaser.yaml")
	check.Dir = "../../.."
	out, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
