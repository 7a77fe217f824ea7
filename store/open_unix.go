//go:build unix

package store

import (
	"os"
	"syscall"
)

// openRecord opens a file for reading. It does not follow a link, and it does not block on a pipe
// that has no writer.
func openRecord(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
