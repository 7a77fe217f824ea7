//go:build race

package kit

// UnderRace says that the race detector is on, which makes programs slow. Tests that compute much may then
// do less: go test ./... runs them in full.
const UnderRace = true
