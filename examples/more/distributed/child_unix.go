//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ignoreInterrupt keeps the signal of Ctrl-C in a terminal from a child. Only the parent gets it,
// and then ends its children.
func ignoreInterrupt(process *exec.Cmd) { process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
