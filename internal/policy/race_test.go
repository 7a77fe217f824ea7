//go:build race

package policy

// The race detector makes everything slower and larger, so that what is retained proves nothing.
func init() { underRace = true }
