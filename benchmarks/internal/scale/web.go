// Package scale simulates crawls by one and by many processes, and measures what docs/scale.md
// says of them. It is the project's own pace that decides when a host may be asked, one
// pace.Hosts for each process; only the clock, the hosts' answers and, where the pace is shared,
// the leases in Redis are simulated. The same seed gives the same figures, bytes of memory apart.
//
//	go test -run Scale -v                    10,000 hosts, two seconds, with assertions
//	go test -run Scale -v -hosts 10000000    the tables of docs/scale.md, in about a minute
//	go test -run '^$' -bench OneProcess      pages a second of one process over loopback
//
// The simulated web has what real robots.txt files ask for and pages a host with a heavy tail. A
// process has a thousand requests in flight at most, and a frontier that knows which host is due:
// those come first, in the order in which they became so, and a new host comes when none is.
package scale

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// A Web is the hosts of a crawl. What a host is like follows from its number and the seed, so that
// ten million of them need no memory.
type Web struct {
	Hosts int
	Seed  uint64
}

// MinDelay is every crawler's own floor between two requests to a host.
const MinDelay = time.Second

// crawlDelays are what robots.txt files ask of a crawler that they do not name: 31 of 194 real
// files, as dialect.RFC9309 reads them.
var crawlDelays = []struct {
	delay time.Duration
	files int
}{
	{0, 163}, {400 * time.Millisecond, 1}, {time.Second, 2}, {2 * time.Second, 1}, {3 * time.Second, 2},
	{5 * time.Second, 4}, {10 * time.Second, 16}, {15 * time.Second, 1}, {20 * time.Second, 2}, {30 * time.Second, 1},
	{500 * time.Second, 1},
}

const corpusFiles = 194

// The number of pages of a host has a power law's tail: n pages or more have n^-tail of the hosts.
// Huberman and Adamic (Growth dynamics of the World-Wide Web, Nature 401, 1999) found exponents of
// 0.65 to 0.91 in two search engines' crawls.
const (
	tail      = 0.8
	mostPages = 100_000
)

// Answers take a time with a lognormal distribution. No source: it is what the tables assume.
const (
	medianAnswer = 300 * time.Millisecond
	spreadAnswer = 0.8
)

var meanAnswer = time.Duration(float64(medianAnswer) * math.Exp(spreadAnswer*spreadAnswer/2))

// name returns the name of a host.
func (w Web) name(host int) string {
	b := strconv.AppendInt(append(make([]byte, 0, 32), "www.site-"...), int64(host), 10)
	return string(append(b, ".example"...))
}

// pages returns how many pages a host has, robots.txt apart.
func (w Web) pages(host int) int {
	u := (float64(w.random(host, 1)>>11) + 1) / (1 << 53) // in (0, 1]
	return int(min(math.Pow(u, -1/tail), mostPages))
}

// crawlDelay returns what a host's robots.txt asks for; 0: nothing.
func (w Web) crawlDelay(host int) time.Duration {
	n := int(w.random(host, 2) % corpusFiles)
	for _, d := range crawlDelays {
		if n -= d.files; n < 0 {
			return d.delay
		}
	}
	panic("the files do not add up")
}

// random returns the number of a host that is for one use.
func (w Web) random(host, use int) uint64 {
	return rand.NewPCG(w.Seed<<8|uint64(use), uint64(host)).Uint64()
}

// allowed returns how many requests the delay of a host allows in a time, the one for robots.txt
// included; all of them at the most.
func (w Web) allowed(host int, window time.Duration) int {
	delay := max(w.crawlDelay(host), MinDelay)
	return min(w.pages(host)+1, int(window/delay)+1)
}

// answer returns how long one takes.
func answer(r *rand.Rand) time.Duration {
	return time.Duration(float64(medianAnswer) * math.Exp(spreadAnswer*r.NormFloat64()))
}
