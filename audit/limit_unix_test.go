//go:build unix

package audit_test

import (
	"os/signal"
	"syscall"
)

// canLimitFiles says whether limitFiles works on this system.
const canLimitFiles = true

// limitFiles sets the largest size of a file that this process may write. Larger writes fail with
// EFBIG.
func limitFiles(size uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
	if err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
