package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestVersionIn(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"Python 3.11.7\n", "3.11.7"},
		{"GNU Wget 1.21.3 built on linux-gnu.\n", "1.21.3"},
		{"3.15.0a8\n", "3.15.0a8"},
		{"v2.0.4+incompatible\n", "2.0.4"},
		{"v0.0.0-20171127213916-2817654b7988\n", "20171127"},
		{"", ""},
	} {
		if got := versionIn(test.text); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// TestMissing checks that a program that this machine does not have is left out and named.
func TestMissing(t *testing.T) {
	list := []adapter{
		{name: "absent", version: []string{"no-such-program-here"}, args: []string{"no-such-program-here"}},
		{name: "failing", version: []string{"go", "no-such-command"}, args: []string{"go"}},
	}
	columns, missing, err := columns(list, nil)
	if len(columns) != 0 || len(missing) != 2 || err != nil {
		t.Fatalf("columns %v, missing %v, error %v", columns, missing, err)
	}
	if table := notRunTable(missing); !strings.Contains(table, "| absent | ") || !strings.Contains(table, "| failing | ") {
		t.Errorf("table\n%s", table)
	}
}

// TestPythonWith checks that a Python is found that has a module.
func TestPythonWith(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs programs that are shell scripts")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$2\" = 'import present' ]\n"
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got := pythonWith("present"); got != "python3" {
		t.Errorf("got %q", got)
	}
}

// TestWriteTables checks that a table is replaced and the text around it is kept.
func TestWriteTables(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"conformance", "docs/tools"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "conformance"))
	page := "before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n"
	for _, name := range pages {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeTables(map[string]string{"x": "new\n", "y": "unused\n"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("RESULTS.md")
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("error %v, page\n%s", err, got)
	}
	if err := os.WriteFile("README.md", []byte("<!-- x -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeTables(map[string]string{"x": ""}); err == nil {
		t.Error("no error for a table without an end")
	}
}
