// Package frontier keeps the pages of a crawl in a folder until they are done. Pages that wait for
// their host need neither a goroutine nor memory, so a crawl can have millions of them. If the crawl
// ends for any reason, the next run continues it.
//
//	f, err := frontier.Open("crawl-state")
//	...
//	defer f.Close()
//	robots, err := collyrobots.WithRobots(c, collyrobots.Frontier(f))
//
// # Which page is next
//
// The next page belongs to the host that may start soonest. The plugin calls Pace to say when that
// is. Until then, and after a failed attempt, only one page of a host is out, so a host that does not
// answer holds one place. If hosts may start at the same time, they take turns. The pages of a host
// come in the order of discovery, or see ByDepth and ByPriority.
//
// # What survives
//
// Each change is written in one piece, in the order of the calls. If the process is killed, the last
// changes may be lost, but only so many that Window limits the pages that are handed out again. All
// changes are written to the disk within about a second, and by Close. Only one process may use a
// folder at a time.
//
// # What it costs
//
// A page on disk takes a few hundred bytes. In memory, a host with pages that wait takes about as
// much, and the storage engine up to about 100 MB.
package frontier
