// Package scale simulates crawls by one process and by many, and measures the figures of
// benchmarks/scale.md. The pace is that of the project: each process has a pace.Hosts that decides
// when a request may start. Only the clock, the responses and, with a shared pace, the leases in
// Redis are simulated. The same seed gives the same figures, except for bytes of memory.
//
// A test with 10,000 hosts, which takes two seconds:
//
//	go test -run Scale -v
//
// The tables of benchmarks/scale.md, which take about a minute:
//
//	go test -run Scale -v -hosts 10000000
//
// The pages per second of one process over the loopback interface:
//
//	go test -run '^$' -bench OneProcess
//
// The hosts of the simulated web have the crawl delays of real robots.txt files, and numbers of
// pages with a heavy tail. A process has at most a thousand requests in flight. Its frontier knows
// which hosts are due, and visits them in the order of their due times. If no host is due, it
// visits a new one.
package scale

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// A Web is the hosts of a crawl. The properties of a host are computed from its number and the
// seed, so that ten million hosts need no memory.
type Web struct {
	Hosts int
	Seed  uint64
}

// MinDelay is the MinDelay of all crawlers.
const MinDelay = time.Second

// crawlDelays are the crawl delays that robots.txt files request from a crawler that they do not
// name, as dialect.RFC9309 reads them. 31 of 194 real files request one.
var crawlDelays = []struct {
	delay time.Duration
	files int
}{
	{0, 163}, {400 * time.Millisecond, 1}, {time.Second, 2}, {2 * time.Second, 1}, {3 * time.Second, 2},
	{5 * time.Second, 4}, {10 * time.Second, 16}, {15 * time.Second, 1}, {20 * time.Second, 2}, {30 * time.Second, 1},
	{500 * time.Second, 1},
}

const corpusFiles = 194

// The number of pages of a host follows a power law: n^-tail of the hosts have n pages or more.
// Huberman and Adamic (Growth dynamics of the World-Wide Web, Nature 401, 1999) found exponents of
// 0.65 to 0.91 in the crawls of two search engines.
const (
	tail      = 0.8
	mostPages = 100_000
)

// The response times have a lognormal distribution. These values have no source; they are
// assumptions of the tables.
const (
	medianResponse = 300 * time.Millisecond
	spreadResponse = 0.8
)

var meanResponse = time.Duration(float64(medianResponse) * math.Exp(spreadResponse*spreadResponse/2))

// name returns the name of a host with a number.
func (w Web) name(host int) string {
	b := strconv.AppendInt(append(make([]byte, 0, 32), "www.site-"...), int64(host), 10)
	return string(append(b, ".example"...))
}

// pages returns the number of pages of a host, without robots.txt.
func (w Web) pages(host int) int {
	u := (float64(w.random(host, 1)>>11) + 1) / (1 << 53) // in (0, 1]
	return int(min(math.Pow(u, -1/tail), mostPages))
}

// crawlDelay returns the crawl delay that the robots.txt of a host requests, or 0 if it requests
// none.
func (w Web) crawlDelay(host int) time.Duration {
	n := int(w.random(host, 2) % corpusFiles)
	for _, d := range crawlDelays {
		n -= d.files
		if n < 0 {
			return d.delay
		}
	}
	panic("the files do not add up")
}

// random returns a random number for a host. Numbers with different uses are independent.
func (w Web) random(host, use int) uint64 {
	return rand.NewPCG(w.Seed<<8|uint64(use), uint64(host)).Uint64()
}

// allowed returns how many requests the delay of a host allows in a time, including the one for
// robots.txt. This is at most the number of all requests.
func (w Web) allowed(host int, window time.Duration) int {
	delay := max(w.crawlDelay(host), MinDelay)
	return min(w.pages(host)+1, int(window/delay)+1)
}

// responseTime returns the time from the start of a request to the end of its response.
func responseTime(r *rand.Rand) time.Duration {
	return time.Duration(float64(medianResponse) * math.Exp(spreadResponse*r.NormFloat64()))
}
