//go:build race

package dialect_test

// The race detector makes everything slower, and sync.Pool forgetful, so that
// what is allocated proves nothing.
func init() { underRace = true }
