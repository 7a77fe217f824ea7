//go:build race

package dialect_test

// Under the race detector, sync.Pool drops objects at random, so tests cannot count allocations.
func init() { underRace = true }
