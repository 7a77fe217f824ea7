package main

import (
	"bytes"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/internal/tooltest"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

// call runs the program in this process.
func call(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"help", "-h", "-help", "--help"} {
		status, out, errs := call(t, "", arg)
		if status != cli.OK || errs != "" {
			t.Errorf("%s: status %d, errors %q", arg, status, errs)
		}
		for _, c := range commands {
			if !strings.Contains(out, "  "+c.name+" ") || !strings.Contains(out, c.summary) {
				t.Errorf("%s: the help has no line about %s:\n%s", arg, c.name, out)
			}
		}
	}
	status, out, errs := call(t, "")
	if status != cli.Failed || out != "" || !strings.HasPrefix(errs, "Usage: ") {
		t.Errorf("without arguments: status %d, output %q, errors %q", status, out, errs)
	}
}

// TestUsageOfCommands checks the help of each command, and what it does with a flag that it does
// not have.
func TestUsageOfCommands(t *testing.T) {
	for _, c := range commands {
		status, out, errs := call(t, "", c.name, "-h")
		if status != cli.OK || out != "" || !strings.HasPrefix(errs, "Usage: collyrobots "+c.name) {
			t.Errorf("%s -h: status %d, output %q, errors %q", c.name, status, out, errs)
		}
		status, out, errs = call(t, "", c.name, "-no-such-flag")
		if status != cli.Failed || out != "" || !strings.HasPrefix(errs, "collyrobots "+c.name+": ") {
			t.Errorf("%s -no-such-flag: status %d, output %q, errors %q", c.name, status, out, errs)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	status, out, errs := call(t, "", "conforn")
	if status != cli.Failed || out != "" || !strings.Contains(errs, `unknown command "conforn"`) {
		t.Errorf("status %d, output %q, errors %q", status, out, errs)
	}
}

func TestVersion(t *testing.T) {
	status, out, errs := call(t, "", "version")
	if status != cli.OK || !strings.HasPrefix(out, "collyrobots ") || errs != "" {
		t.Errorf("status %d, output %q, errors %q", status, out, errs)
	}
	if status, _, errs := call(t, "", "version", "x"); status != cli.Failed || !strings.Contains(errs, `"x"`) {
		t.Errorf("with an argument: status %d, errors %q", status, errs)
	}
	info := &debug.BuildInfo{
		GoVersion: "go1.25.0",
		Main:      debug.Module{Version: "v1.2.3"},
		Settings:  []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
	}
	if got := versionText(info, true); got != "collyrobots v1.2.3 abc go1.25.0" {
		t.Errorf("version %q", got)
	}
	if got := versionText(&debug.BuildInfo{GoVersion: "go1.25.0"}, true); got != "collyrobots (devel) go1.25.0" {
		t.Errorf("version %q", got)
	}
	if got := versionText(nil, false); !strings.Contains(got, "unknown") {
		t.Errorf("version %q", got)
	}
}

// TestClosedPipe checks that a command whose reader goes away ends and prints no error.
func TestClosedPipe(t *testing.T) {
	reader, writer := io.Pipe()
	reader.Close()
	var errs bytes.Buffer
	if status := run([]string{"version"}, strings.NewReader(""), writer, &errs); status != cli.Failed || errs.Len() > 0 {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
}

// program builds the program and returns the path of its executable file.
func program(t *testing.T) string {
	t.Helper()
	return (*tooltest.World)(nil).Command(t).Path
}
