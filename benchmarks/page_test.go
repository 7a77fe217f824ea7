package benchmarks

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/gocolly/colly/v2"
)

var rounds = flag.Int("rounds", 300, "TestPageRatio: how often each crawler gets its turn; 1500 are good for two digits")

// pagesPerTurn is how many pages a crawler visits in its turn. Half a millisecond: what disturbs
// one turn is likely to disturb those of the others beside it as well.
const pagesPerTurn = 20

const pageURL = "http://www.example.com/some/page.html?id=1"

// A crawler is one way to crawl, and what its turns took.
type crawler struct {
	name          string
	c             *colly.Collector
	turns         []float64 // nanoseconds a page
	allocs, bytes float64   // a page
}

// TestPageRatio prints what a page costs with the plugin beside bare Colly and Colly's built-in
// check. All visit the same page, without callbacks, over a transport that answers from memory.
// They take turns, in another order each round, and the ratio is the median of the rounds' ratios.
// Bare Colly takes part twice: where the second is not at 1.00, the machine is too busy for the
// digits that are printed.
func TestPageRatio(t *testing.T) {
	turns := *rounds
	if underRace {
		turns = 3 // times mean nothing then
	}
	for _, rules := range []int{9, 1000} {
		crawlers := pageCrawlers(t, rules)
		for _, c := range crawlers {
			c.visit(t, 1) // reads robots.txt
			c.count(t)
		}
		for range turns {
			for _, i := range rand.Perm(len(crawlers)) {
				crawlers[i].turn(t)
			}
		}
		t.Logf("%d rules, %d rounds of %d pages\n%s", rules, turns, pagesPerTurn, table(crawlers))
		if bare, plugin := crawlers[0], crawlers[3]; !underRace && (plugin.allocs > bare.allocs || plugin.bytes > bare.bytes) {
			t.Errorf("%d rules: %.1f allocations and %.0f bytes a page, more than bare Colly's %.1f and %.0f", rules, plugin.allocs, plugin.bytes, bare.allocs, bare.bytes)
		}
	}
}

// pageCrawlers returns what is compared; bare Colly, bare Colly, the built-in check, the plugin.
func pageCrawlers(t *testing.T, rules int) []*crawler {
	robots := rulesFor(rules)
	w := &web{robots: func(string) string { return robots }, page: "<!doctype html><title>x</title>"}
	builtIn := crawl(w)
	builtIn.IgnoreRobotsTxt = false
	plugin, p := obedient(t, w)
	t.Cleanup(func() { p.Close() })
	return []*crawler{{name: "bare", c: crawl(w)}, {name: "bare again", c: crawl(w)}, {name: "built-in", c: builtIn}, {name: "plugin", c: plugin}}
}

func (c *crawler) turn(t *testing.T) {
	c.visit(t, pagesPerTurn/10) // what the one before has left in the processor's caches
	start := time.Now()
	c.visit(t, pagesPerTurn)
	c.turns = append(c.turns, float64(time.Since(start).Nanoseconds())/pagesPerTurn)
}

func (c *crawler) visit(t *testing.T, pages int) {
	for range pages {
		if err := c.c.Visit(pageURL); err != nil {
			t.Fatal(c.name, err)
		}
	}
}

// count notes what a page allocates.
func (c *crawler) count(t *testing.T) {
	const pages = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.visit(t, pages)
	runtime.ReadMemStats(&after)
	c.allocs = float64(after.Mallocs-before.Mallocs) / pages
	c.bytes = float64(after.TotalAlloc-before.TotalAlloc) / pages
}

func table(crawlers []*crawler) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tµs a page\tfastest\t/ bare\t/ built-in\tquartiles / bare\tallocs a page\tB a page\t")
	for _, c := range crawlers {
		bare, builtIn := ratios(c, crawlers[0]), ratios(c, crawlers[2])
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.3f\t%.3f\t%.2f-%.2f\t%.1f\t%.0f\t\n", c.name, quantile(c.turns, 0.5)/1000, quantile(c.turns, 0)/1000,
			quantile(bare, 0.5), quantile(builtIn, 0.5), quantile(bare, 0.25), quantile(bare, 0.75), c.allocs, c.bytes)
	}
	w.Flush()
	return b.String()
}

// ratios returns c's turns in terms of other's, round by round.
func ratios(c, other *crawler) []float64 {
	r := make([]float64, len(c.turns))
	for i := range r {
		r[i] = c.turns[i] / other.turns[i]
	}
	return r
}

// quantile returns the value that the share q of values is below.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}
