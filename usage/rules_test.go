package usage_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// manyPatterns returns as many patterns as fit in a robots.txt, and a long target that none of them
// matches.
func manyPatterns() (patterns []string, target string) {
	for i := range 14_000 {
		patterns = append(patterns, fmt.Sprintf("/*p%d*q%d", i, i))
	}
	return patterns, "/" + strings.Repeat("p1/q2/", 1300)
}

// TestManyPatterns checks that preferences for a path are found in about the time that a decision
// about it takes, although a file has three kinds of them.
func TestManyPatterns(t *testing.T) {
	patterns, target := manyPatterns()
	group := dialect.RFC9309().Parse([]byte("User-agent: *\nDisallow: " + strings.Join(patterns, "\nDisallow: "))).Group()
	if n := len(group.Rules()); n < 10_000 {
		t.Fatalf("%d rules", n)
	}
	decide := fastest(func() { group.Decide(target) })
	usages := robotsTxt("Content-Usage", strings.Join(patterns, " train-ai=n, ai-use=n, search=n\n"))
	signals := robotsTxt("Content-Signal", strings.Join(patterns, " ai-train=no, ai-input=no, search=no, use=full\n"))
	file, err := usage.ParseTDMFile([]byte(`[{"location": "`+strings.Join(patterns, `", "tdm-reservation": 1}, {"location": "`)+`", "tdm-reservation": 1}]`), from)
	if err != nil {
		t.Fatal(err)
	}
	for name, find := range map[string]func(){
		"Content-Usage":  func() { usages.Of(target) },
		"Content-Signal": func() { signals.Of(target) },
		"TDMRep":         func() { file.Of(target) },
	} {
		took := fastest(find)
		t.Logf("%s: %v, a decision %v", name, took, decide)
		const most = 20 // it is 4 at most; comparing all patterns takes hundreds of times as long
		if took > most*decide {
			t.Errorf("%s: %v, %d times as long as a decision (%v)", name, took, took/decide, decide)
		}
	}
}

// fastest returns the shortest time that f took in ten calls.
func fastest(f func()) time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		f()
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}
