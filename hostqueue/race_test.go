//go:build race

package hostqueue

// raceEnabled says that the race detector makes these tests slow. They are skipped with it, and .ci/run runs
// them without it.
const raceEnabled = true
