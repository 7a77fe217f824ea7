package tooltest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A Terminal is a session of tmux.
type Terminal struct {
	t    *testing.T
	name string
}

// NewTerminal returns a terminal that is closed when the test ends. It skips the test if tmux is
// not installed.
func NewTerminal(t *testing.T) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed; this test runs the program in it (apt-get install tmux)")
	}
	return &Terminal{t, fmt.Sprintf("tool-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))}
}

// tmux runs a command of tmux and returns its output.
func (x *Terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", x.name}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Start starts a command. When the command ends, the screen shows its exit status below its output,
// as "exit 0".
func (x *Terminal) Start(cmd *exec.Cmd, columns, rows int) {
	x.t.Helper()
	line := "trap : INT; env"
	for _, variable := range cmd.Env {
		if strings.Contains(variable, "PROXY=") {
			line += " '" + variable + "'"
		}
	}
	line += " '" + strings.Join(cmd.Args, "' '") + "'; echo exit $?; sleep 60"
	x.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "sh", "-c", line)
	x.t.Cleanup(func() { exec.Command("tmux", "-L", x.name, "kill-server").Run() })
}

// Keys sends a key to the terminal, for example "C-c".
func (x *Terminal) Keys(keys string) { x.tmux("send-keys", keys) }

// WaitFor waits until the screen matches a regular expression, and returns the screen.
func (x *Terminal) WaitFor(pattern string) (screen string) {
	x.t.Helper()
	expression := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		screen = x.tmux("capture-pane", "-p")
		if expression.MatchString(screen) {
			return screen
		}
	}
	x.t.Fatalf("the screen does not match %s:\n%s", pattern, screen)
	return ""
}

// Colored returns the screen with the escape sequences of its colors.
func (x *Terminal) Colored() string {
	x.t.Helper()
	return x.tmux("capture-pane", "-e", "-p")
}

// Run runs a command until it ends, and returns the screen.
func (x *Terminal) Run(cmd *exec.Cmd, columns, rows int) string {
	x.t.Helper()
	x.Start(cmd, columns, rows)
	return x.WaitFor(`exit \d`)
}
