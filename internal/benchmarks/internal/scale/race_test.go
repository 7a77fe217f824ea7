//go:build race

package scale

func init() { underRace = true }
