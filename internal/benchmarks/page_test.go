//go:build unix

package benchmarks

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	rounds       = flag.Int("rounds", 3, "TestPageRatio, TestViewRatio: number of turns of each crawler; 300 give two digits")
	instructions = flag.Bool("instructions", false, "TestPageRatio: also count instructions; needs valgrind")
)

// A workload is a crawl that all crawlers repeat.
type workload struct {
	name  string
	kind  kind
	rules int // of robots.txt
	size  int // bytes of each page; if 0, the page is as small as possible

	// pages is the number of pages that a crawler visits in one turn. A turn takes about 20 ms, so
	// that a disturbance of one turn is likely to affect also the other turns of the same round.
	pages int
}

// A kind says how a crawler visits the pages.
type kind int

const (
	oneAfterOther     kind = iota // a collector visits one page after the other
	links                         // a collector follows the links of each page, four pages at once
	manyHosts                     // a collector visits pages of 50 hosts, four at once
	client                        // an http.Client without a timeout
	clientWithTimeout             // an http.Client with a timeout
	newConnections                // a collector opens a connection for each page
	https                         // a collector visits one page after the other over HTTPS
)

var workloads = []workload{
	{name: "no callbacks", rules: 9, pages: 250},
	{name: "no callbacks, 1,000 rules", rules: 1000, pages: 250},
	{name: "no callbacks, pages of 30 kB", rules: 9, size: 30_000, pages: 150},
	{name: "links", kind: links, rules: 9, pages: 40},
	{name: "50 hosts", kind: manyHosts, rules: 9, pages: 200},
	{name: "http.Client with a timeout", kind: clientWithTimeout, rules: 9, pages: 250},
	{name: "http.Client without a timeout", kind: client, rules: 9, pages: 250},
	{name: "a new connection for each page", kind: newConnections, rules: 9, pages: 60},
	{name: "HTTPS", kind: https, rules: 9, pages: 200},
}

// ways returns the ways to crawl that are compared. The second measurement of bare Colly, or of the bare
// http.Client, shows how much the ratios vary by chance. "built-in" is Colly's check. "wrapped" is a
// client whose transport is in a RoundTripper that does nothing: net/http then starts a goroutine for
// each request with a timeout.
func (w workload) ways() []string {
	other := "built-in"
	if w.kind == client || w.kind == clientWithTimeout {
		other = "wrapped"
	}
	return []string{"bare", "bare again", other, "plugin", "listener", "audit log"}
}

// TestPageRatio prints the cost of a page with the plugin, with Colly's built-in check, and with
// bare Colly. Each crawler is a process of its own, uses an http.Transport, and gets its pages over
// the loopback interface from this process, whose work is not counted. The crawlers take turns, in
// a random order in each round. A ratio is the median of the ratios of all rounds.
//
// The cost is the processor time of the crawler's process, in user and system mode. If "bare again"
// is not close to 1.00, the machine is too busy for the digits that are printed. Instructions in
// user mode do not depend on other work of the machine. Valgrind counts them, because the counters
// of the processor are not available in most virtual machines.
func TestPageRatio(t *testing.T) {
	turns := *rounds
	if underRace {
		turns = 1 // times are not meaningful
	}
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			site := newPageSite(t, w)
			var crawlers []*crawler
			for _, way := range w.ways() {
				crawlers = append(crawlers, startCrawler(t, way, w, site.Listener.Addr().String()))
			}
			for range turns {
				for _, i := range rand.Perm(len(crawlers)) {
					crawlers[i].turn(t, w.pages)
				}
			}
			if got, want := int(site.pages.Load()), len(crawlers)*(turns*w.pages+warmUp); got != want {
				t.Errorf("%d pages were requested, want %d", got, want)
			}
			if *instructions {
				for _, c := range crawlers {
					c.instructions = countInstructions(t, c.way, w, site.Listener.Addr().String())
				}
			}
			t.Logf("%d rounds of %d pages\n%s", turns, w.pages, table(crawlers))
			plugin, audited := crawlers[3], crawlers[5]
			t.Logf("time of a page with an audit log / without: %.3f, quartiles %.2f-%.2f; processor time: %.3f",
				quantile(ratios(audited, plugin, wall), 0.5), quantile(ratios(audited, plugin, wall), 0.25), quantile(ratios(audited, plugin, wall), 0.75),
				quantile(ratios(audited, plugin, cpu), 0.5))
		})
	}
}

// TestPageAllocations counts the allocations of a page over an http.Transport. The numbers are
// exact: the few allocations that do not belong to a page, such as those of the garbage collector,
// are less than one per page, and the cheapest of several turns has the fewest of them.
func TestPageAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates memory itself")
	}
	w := workloads[0]
	site := newPageSite(t, w)
	perPage := make(map[string]cost)
	for _, way := range []string{"bare", "plugin"} {
		c := startCrawler(t, way, w, site.Listener.Addr().String())
		for range 5 {
			c.turn(t, w.pages)
		}
		perPage[way] = cost{
			Allocs: slices.MinFunc(c.costs, func(a, b cost) int { return cmp.Compare(a.Allocs, b.Allocs) }).Allocs / uint64(w.pages),
			Bytes:  slices.MinFunc(c.costs, func(a, b cost) int { return cmp.Compare(a.Bytes, b.Bytes) }).Bytes / uint64(w.pages),
		}
	}
	bare, plugin := perPage["bare"], perPage["plugin"]
	t.Logf("allocations per page: bare %d, plugin %d; bytes: bare %d, plugin %d", bare.Allocs, plugin.Allocs, bare.Bytes, plugin.Bytes)
	if most := bare.Allocs + mostAllocs; plugin.Allocs > most {
		t.Errorf("%d allocations per page with the plugin, want at most %d, which is %d more than bare Colly", plugin.Allocs, most, mostAllocs)
	}
	if most := bare.Bytes + mostBytes; plugin.Bytes > most {
		t.Errorf("%d bytes per page with the plugin, want at most %d, which is %d more than bare Colly", plugin.Bytes, most, mostBytes)
	}
}

// mostAllocs and mostBytes are what the plugin may allocate for a page in addition to bare Colly.
const (
	mostAllocs = 3
	mostBytes  = 450
)

// A pageSite is a web site on the loopback interface that counts the requests for its pages.
type pageSite struct {
	*httptest.Server
	pages atomic.Int64
}

func newPageSite(t *testing.T, w workload) *pageSite {
	s := new(pageSite)
	robots := rulesFor(w.rules)
	text := strings.Repeat("x", w.size)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(rw, robots)
			return
		}
		s.pages.Add(1)
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, pageAt(r.URL.Path), text)
	}))
	if w.kind == https {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// linksPerPage is the number of links of each page of a crawl with links.
const linksPerPage = 20

// pageAt returns the page at a path. The pages /tree/N/TURN/I are a binary tree of N pages. Each
// links to its children, and with the rest of its links to its ancestors, which have been visited.
func pageAt(path string) string {
	var n, turn, i int
	if _, err := fmt.Sscanf(path, "/tree/%d/%d/%d", &n, &turn, &i); err != nil {
		return "<!doctype html><title>x</title>"
	}
	var b strings.Builder
	b.WriteString("<!doctype html><title>x</title><ul>")
	ancestor := i
	for link := range linksPerPage {
		target := 2*i + 1 + link
		if link >= 2 || target >= n {
			ancestor = max(0, (ancestor-1)/2)
			target = ancestor
		}
		fmt.Fprintf(&b, "\n<li><a href=\"/tree/%d/%d/%d\">Some text about page %d</a>, and some more text</li>", n, turn, target, target)
	}
	b.WriteString("</ul>")
	return b.String()
}

// table formats the costs of the crawlers, in the order of workload.ways.
func table(crawlers []*crawler) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tCPU µs/page\t/ bare\t/ %s\tquartiles / bare\tinstructions/page\t/ bare\tallocs/page\tB/page\t\n", crawlers[2].way)
	for _, c := range crawlers {
		bare, third := ratios(c, crawlers[0], cpu), ratios(c, crawlers[2], cpu)
		fmt.Fprintf(w, "%s\t%.1f\t%.3f\t%.3f\t%.2f-%.2f\t%s\t%s\t%.1f\t%.0f\t\n", c.way,
			median(c.costs, cpu)/float64(time.Microsecond), quantile(bare, 0.5), quantile(third, 0.5),
			quantile(bare, 0.25), quantile(bare, 0.75),
			number("%.0f", c.instructions), number("%.3f", c.instructions/crawlers[0].instructions),
			median(c.costs, allocs), median(c.costs, bytesOf))
	}
	w.Flush()
	return b.String()
}

// number formats a number, or "-" if it was not measured.
func number(format string, x float64) string {
	if x == 0 || math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// These functions select one cost of a page.
func cpu(c cost) float64     { return float64(c.CPU) / float64(c.Pages) }
func wall(c cost) float64    { return float64(c.Wall) / float64(c.Pages) }
func allocs(c cost) float64  { return float64(c.Allocs) / float64(c.Pages) }
func bytesOf(c cost) float64 { return float64(c.Bytes) / float64(c.Pages) }

// median returns the median of one cost of all turns.
func median(costs []cost, of func(cost) float64) float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = of(c)
	}
	return quantile(values, 0.5)
}

// ratios returns the ratio of one cost of c to that of another crawler, for each round.
func ratios(c, other *crawler, of func(cost) float64) []float64 {
	r := make([]float64, len(c.costs))
	for i := range r {
		r[i] = of(c.costs[i]) / of(other.costs[i])
	}
	return r
}

// quantile returns the value below which the share q of the values is.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}
