package compare

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

var (
	out   = flag.String("compare.out", "", "the file for the hashes of the records, or for the record of one crawl")
	first = flag.Uint64("compare.first", 0, "the first seed")
	count = flag.Uint64("compare.count", 1, "the number of seeds")
	step  = flag.Uint64("compare.step", 1, "the difference between two seeds")
)

// TestTwice runs some crawls until two of at most five records are equal: otherwise the driver depends
// on more than the seed. Usually these are the first two, but a busy machine may preempt a goroutine.
func TestTwice(t *testing.T) {
	if *out != "" {
		t.Skip("the script writes records")
	}
	if underRace {
		t.Skip("the race detector runs goroutines in random order")
	}
	quietly(t)
	for seed := range uint64(25) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			var records []string
			for range 5 {
				record := crawl(t, seed, false)
				if slices.Contains(records, record) {
					return
				}
				records = append(records, record)
			}
			t.Errorf("all records of one crawl differ: %s", firstDifference(records[0], records[1]))
		})
	}
}

// TestRecord writes the records of crawls for the script: the record of one crawl, or the hashes of
// several.
func TestRecord(t *testing.T) {
	if *out == "" {
		t.Skip("only the script needs the records")
	}
	quietly(t)
	file, err := os.Create(*out)
	must(t, err)
	defer file.Close()
	for i := range *count {
		seed := *first + i**step
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			text := crawl(t, seed, randomIsFixed())
			if *count > 1 {
				text = fmt.Sprintf("%d %x\n", seed, sha256.Sum256([]byte(text)))
			}
			_, err := file.WriteString(text)
			must(t, err)
		})
	}
}

// quietly runs the goroutines of a test one at a time and without garbage collection, so that those
// that wake at the same instant run in the same order each time.
func quietly(t *testing.T) {
	readResolverConfig()
	processors := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(processors) })
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(2 << 30)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
}

// randomIsFixed reports whether the program was built by the script, which replaces the random
// numbers of the back-off.
func randomIsFixed() bool {
	for range 2 {
		if rand.Float64() != 0.5 {
			return false
		}
	}
	return true
}

// underRace reports whether the race detector is enabled.
var underRace bool
