//go:build race

package frontier_test

// raceEnabled says that the race detector makes these tests slow. They do less with it, and .ci/run runs
// them again without it.
const raceEnabled = true
