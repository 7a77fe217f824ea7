//go:build race

package collyrobots

func init() { underRace = true }
