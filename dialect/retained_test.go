package dialect_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/temoto/robotstxt"
)

// retained returns the number of bytes that a value keeps alive, on average over many values.
func retained[T any](tb testing.TB, build func() T) int {
	tb.Helper()
	const n = 64
	kept := make([]T, n)
	build() // fills pools
	before := heap()
	for i := range kept {
		kept[i] = build()
	}
	after := heap()
	runtime.KeepAlive(kept)
	return int(int64(after-before) / n)
}

// retainedAtMost is like retained. While the result is above most, it measures again, up to three
// times, because the runtime may allocate at the same time.
func retainedAtMost[T any](tb testing.TB, most int, build func() T) int {
	tb.Helper()
	n := retained(tb, build)
	for range 2 {
		if n > most {
			n = min(n, retained(tb, build))
		}
	}
	return n
}

func skipUnderRace(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates memory")
	}
}

// heap returns the number of bytes in use after all garbage has been collected, including that in
// pools.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRetained checks that a group is small enough for a crawl of very many hosts: half of the
// files need at most 350 bytes, and the mean is at most a quarter of temoto's.
func TestRetained(t *testing.T) {
	skipUnderRace(t)
	var ours []int
	sum, theirs := 0, 0
	for i, file := range realFiles(t) {
		if i%4 != 0 { // a sample, because collecting garbage takes time
			continue
		}
		n := retained(t, func() *dialect.Group { return dialect.RFC9309().Parse(file).Group("ExampleBot") })
		ours = append(ours, n)
		if _, err := robotstxt.FromBytes(file); err == nil {
			sum += n
			theirs += retained(t, func() *robotstxt.RobotsData { data, _ := robotstxt.FromBytes(file); return data })
		}
	}
	slices.Sort(ours)
	median := ours[len(ours)/2]
	t.Logf("%d files: median %d bytes, p90 %d, mean %.3f of temoto's", len(ours), median, ours[len(ours)*9/10], float64(sum)/float64(theirs))
	if median > 350 || 4*sum > theirs {
		t.Errorf("median %d bytes, want at most 350; mean %d to temoto's %d, want a quarter", median, sum/len(ours), theirs/len(ours))
	}
}

// TestRetainedRules checks that a rule of a small group takes 13 bytes and its pattern, and that a
// rule of a large group takes at most 18 more bytes for the index.
func TestRetainedRules(t *testing.T) {
	skipUnderRace(t)
	for name, file := range map[string]func(int) []byte{"literal": literalFile, "wildcard": wildcardFile, "head": headFile} {
		for _, n := range []int{10, 20, 1000, 10_000} {
			body := file(n)
			patterns := len(body) - len("User-agent: *\n") - n*len("Disallow: \n")
			most := 2*48 + (patterns+13*n)*9/8 // a Group, and the size class of its data
			if n > 20 {
				most += 18 * n
			}
			if got := retainedAtMost(t, most, func() *dialect.Group { return dialect.RFC9309().Parse(body).Group("x") }); got > most {
				t.Errorf("%d %s rules keep %d bytes, want at most %d", n, name, got, most)
			} else {
				t.Logf("%d %s rules keep %d bytes of %d", n, name, got, most)
			}
		}
	}
}

// TestSelfContained checks that a group keeps neither the file nor the rules alive.
func TestSelfContained(t *testing.T) {
	skipUnderRace(t)
	file := literalFile(15_000) // 400 KB
	file = append(file, "\nUser-agent: ExampleBot\nDisallow: /x\n"...)
	for _, d := range dialect.All() {
		if n := retainedAtMost(t, 1000, func() *dialect.Group { return d.Parse(file).Group("ExampleBot") }); n > 1000 {
			t.Errorf("%s: a group of one rule keeps %d bytes", d, n)
		}
		if n := retainedAtMost(t, 1000, func() []string { return d.Parse(append(file, "Sitemap: https://example.com/s.xml\n"...)).Sitemaps() }); n > 1000 {
			t.Errorf("%s: a list of one sitemap keeps %d bytes", d, n)
		}
	}
}

// TestAllocations checks that parsing and compiling need few allocations and that decisions need
// none.
func TestAllocations(t *testing.T) {
	skipUnderRace(t)
	file := literalFile(9)
	for _, d := range published {
		if n := testing.AllocsPerRun(100, func() { d.Parse(file).Group("ExampleBot") }); n > 5 {
			t.Errorf("%s: %v allocations to parse and compile, want at most 5", d, n)
		}
		for name, body := range map[string][]byte{
			"nine literals": file, "many literals": literalFile(1000),
			"nine wildcards": wildcardFile(9), "many wildcards": wildcardFile(1000),
			"nine heads": headFile(9), "many heads": headFile(1000),
		} {
			group := d.Parse(body).Group("ExampleBot")
			for _, target := range []string{
				"/", "/robots.txt", "/directory0/page", benchTarget, "/a/dir1/b.html", "/?param0=1", "", "x", "/#",
				"/section7/a?sort=x", "/section7/a?sort=%20", "/%7Ejoe/%e3%83%84?q=*$[]<>", hostileTarget, hostileTarget + "%7e",
			} {
				if n := testing.AllocsPerRun(10, func() { group.Decide(target) }); n != 0 {
					t.Errorf("%s, %s: %v allocations to decide on %.20q", d, name, n, target)
				}
			}
		}
	}
}

// TestHostileMemory checks that no file of 500 KiB needs more than 20 MB to be parsed and matched.
func TestHostileMemory(t *testing.T) {
	skipUnderRace(t)
	for name, file := range hostileFiles() {
		for _, d := range published {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d.Parse(file).Group("ExampleBot").Decide(hostileTarget)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
				t.Errorf("%s, %s: allocated %d bytes", d, name, n)
			}
		}
	}
}
