//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart keeps the Ctrl-C of a terminal from a child: its parent gets it, and ends its children one
// after the other.
func apart(process *exec.Cmd) { process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
