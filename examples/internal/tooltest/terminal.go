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

// NewTerminal returns a terminal that ends with the test. The test is skipped where there is no
// tmux.
func NewTerminal(t *testing.T) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux, which is the terminal of this test (apt-get install tmux)")
	}
	return &Terminal{t, fmt.Sprintf("tool-%d-%s", os.Getpid(), t.Name())}
}

func (x *Terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", x.name}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Start runs a command, and shows below what it has written with which status it has ended: "exit
// 0".
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

// Keys presses a key, such as "C-c".
func (x *Terminal) Keys(keys string) { x.tmux("send-keys", keys) }

// WaitFor returns the screen once it matches a regular expression.
func (x *Terminal) WaitFor(pattern string) (screen string) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if screen = x.tmux("capture-pane", "-p"); regexp.MustCompile(pattern).MatchString(screen) {
			return screen
		}
	}
	x.t.Fatalf("the screen has no %s:\n%s", pattern, screen)
	return ""
}

// Run returns the screen at the end of a command.
func (x *Terminal) Run(cmd *exec.Cmd, columns, rows int) string {
	x.t.Helper()
	x.Start(cmd, columns, rows)
	return x.WaitFor(`exit \d`)
}
