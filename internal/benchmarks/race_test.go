//go:build race

package benchmarks

func init() { underRace = true }
