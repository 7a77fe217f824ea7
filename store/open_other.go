//go:build !unix

package store

import "os"

// openRecord opens a file for reading. The caller has checked that it is a regular file.
func openRecord(path string) (*os.File, error) { return os.Open(path) }
