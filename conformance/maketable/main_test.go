package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// TestPythonAdapter checks that a table names the version of Python and its year, and that the newest
// Python is used.
func TestPythonAdapter(t *testing.T) {
	if _, err := exec.LookPath("python3"); err == nil {
		if a := pythonAdapter("x.py"); !regexp.MustCompile(`^Python 3\.\d+\.\d+\+? \(20\d\d\)$`).MatchString(a.name) {
			t.Errorf("the name is %q", a.name)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs programs that are shell scripts")
	}
	dir := t.TempDir()
	for _, name := range pythons[1:] {
		err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+"\n"), 0o755)
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	if a := pythonAdapter("x.py"); a.name != pythons[1] || a.args[0] != pythons[1] || a.args[1] != "x.py" {
		t.Errorf("got %+v", a)
	}
	t.Setenv("PATH", t.TempDir())
	if a := pythonAdapter("x.py"); a.name != "Python" || a.args[0] != "python3" {
		t.Errorf("without Python: %+v", a)
	}
}
