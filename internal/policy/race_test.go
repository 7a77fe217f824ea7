//go:build race

package policy

// Under the race detector the memory in use says nothing about that of a normal program.
func init() { UnderRace = true }
