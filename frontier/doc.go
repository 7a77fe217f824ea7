// Package frontier keeps the pages of a crawl in a folder until they are done. Pages that wait for
// their host need neither a goroutine nor memory, so a crawl can have millions of them. If the
// crawl ends for any reason, the next run continues it.
//
//	c := colly.NewCollector(colly.Async())
//	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
//	f, err := frontier.Open("crawl-state")
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer f.Close()
//	robots, err := collyrobots.WithRobots(c, collyrobots.Frontier(f))
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer robots.Close()
//	c.Visit("https://example.com/")
//	c.Wait()
//
// Programs that have no collector call Add, Next and End themselves; see the example.
//
// # Which page is next
//
// The next page belongs to the host that may start soonest. Pace says when that is; the plugin
// calls it. Until then, and after a failed attempt, only one page of a host is out, so a host that
// does not answer holds one place. Hosts that may start at the same time take turns. The pages of a
// host come in the order of discovery; ByDepth and ByPriority change that.
//
// # What survives
//
// Each change is written in one piece, in the order of the calls: to the operating system within 10
// milliseconds, and to the disk within about a second and by Close. A kill of the process loses the
// changes of these milliseconds. Window limits the pages that are handed out again because of that.
// A power failure may lose the last seconds. In both cases, what remains is a state that the crawl
// has had.
//
// If the disk is full, Add and Again return an error that wraps ErrFull. Pages that wait are still
// handed out. How they end is kept in memory, and recorded when there is space again. Stats says
// how many pages are not recorded.
//
// The folder also has the records of Records: the robots.txt files and the pace of the hosts, which
// the plugin keeps there.
//
// # Damage
//
// If Open finds that files of the folder have changed since they were written, or if the storage
// engine cannot open them, it changes nothing and returns an error that wraps ErrDamaged and says
// which file it is. Either restore the folder from a copy, or remove it to begin the crawl again. If
// some records can be read, a crawl can also continue with them: copy the folder, and remove the
// file pages/checksums in it. Pages whose records are missing are then unknown, so they may be
// fetched again.
//
// Open does not read the tables of the engine, which have most of the records of a large crawl. If a
// part of a table is damaged, the pages in it are lost and logged when they are read, and the others
// are kept. Neither a kill nor a full disk is damage.
//
// # The folder
//
// Only one process may use a folder at a time, and only the owner can read it, because recorded
// requests may contain cookies. The file waiting.jsonl is for other programs, such as the command
// collyrobots plan. It is replaced by Open, by Close, and at most once a minute. Its first line is
//
//	{"version":1,"written":"2026-11-22T13:00:00Z"}
//
// and each of the other lines has a host and the number of its pages that wait or are out, sorted
// by host:
//
//	{"host":"example.com","waiting":12}
//
// # What it costs
//
// A page on disk takes a few hundred bytes, a URL that is known 30 bytes, and a host about 100 bytes
// and its robots.txt. In memory, a host with pages that wait takes about a kilobyte, and the storage
// engine about 100 MB. 16 MB of the disk are reserved, so that a full disk does not damage the
// folder.
package frontier
