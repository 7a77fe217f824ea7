//go:build !race

package hostqueue

const raceEnabled = false
