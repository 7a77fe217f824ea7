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
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no python3 or no shell")
	}
	if a := pythonAdapter("x.py"); !regexp.MustCompile(`^Python 3\.\d+\.\d+\+? \(20\d\d\)$`).MatchString(a.name) {
		t.Errorf("the name is %q", a.name)
	}
	dir := t.TempDir()
	for _, name := range pythons[1:] {
		script := "#!/bin/sh\nexec " + python + " \"$@\"\n"
		err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755)
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	if a := pythonAdapter("x.py"); a.args[0] != pythons[1] || a.args[1] != "x.py" {
		t.Errorf("the program is %q", a.args)
	}
	t.Setenv("PATH", t.TempDir())
	if a := pythonAdapter("x.py"); a.name != "Python" || a.args[0] != "python3" {
		t.Errorf("without Python: %+v", a)
	}
}
