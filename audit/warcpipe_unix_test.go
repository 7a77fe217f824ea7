//go:build unix

package audit_test

import "syscall"

// makePipe makes a named pipe. A program that opens it waits.
func makePipe(name string) error { return syscall.Mkfifo(name, 0o600) }
