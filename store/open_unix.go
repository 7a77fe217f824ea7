//go:build unix

package store

import (
	"os"
	"syscall"
)

// openRecord opens a file for reading. It follows no link, and does not wait for whoever may write
// into a pipe.
func openRecord(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
