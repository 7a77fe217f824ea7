//go:build race

package programs

func init() { underRace = true }
