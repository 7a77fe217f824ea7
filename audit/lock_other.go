//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package audit

import (
	"os"
	"path/filepath"
)

// lockFolder opens the file that is the lock on other systems. Here, nothing keeps two processes
// from using one folder.
func lockFolder(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
}
