//go:build race

package compare

func init() { underRace = true }
