// Package report has the data that a crawl reports: the Decision about each URL, the Events on the
// wire, and Stats. It has their forms in JSON too. The package knows neither Colly nor the network,
// so a program that only reads reports needs no crawler.
//
// Package collyrobots makes these values. Names such as MaxPagesPerHost and Plugin.Usage in the
// comments are names of that package.
package report

import "context"

// A Source gives reports about a crawl. Type *collyrobots.Plugin is a Source.
type Source interface {
	// Check returns the Decision about a URL.
	Check(ctx context.Context, rawURL string) (Decision, error)

	// Listen calls f for each Event from now on, on a goroutine of its own. It drops events if f is
	// too slow. After stop, f is not called again.
	Listen(f func(*Event)) (stop func())

	// StatsFunc returns the Stats without Hosts. It calls visit for each host, in no particular
	// order.
	StatsFunc(visit func(host HostStats)) Stats
}
