//go:build !unix

package store

import "os"

// openRecord opens a file for reading. What is there was looked at before.
func openRecord(path string) (*os.File, error) { return os.Open(path) }
