// Package hostqueue keeps the pages of a crawl in Redis, so that several processes crawl together.
//
// The pages of a host are crawled by one process at a time, one after the other, and each process
// crawls many hosts at once. A page stays recorded until its callbacks have run and its links are
// recorded, so a process that is killed loses no page: another process takes its hosts over when
// its [Lease] has expired, and fetches the pages that were in progress again.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
//	queue, err := hostqueue.Open(ctx, client, "news")
//	c := colly.NewCollector(colly.StdlibContext(ctx))
//	robots, err := collyrobots.WithRobots(c, collyrobots.MinDelay(time.Second))
//	c.OnHTML("a[href]", func(e *colly.HTMLElement) { queue.Follow(e.Request, e.Attr("href")) })
//	err = queue.Add(ctx, "https://example.com/")
//	err = queue.Run(ctx, c, robots) // returns when all pages of the crawl are done
//
// All processes run the same program. The only difference to a spider for one process is that it
// calls [Queue.Follow] instead of [colly.Request.Visit].
//
// # Hosts
//
// A host is a host as in [report.HostStats]: http and https are the same host, and each other
// port is a host of its own. Redis lists the hosts that have waiting pages by the time when they
// are due. A process takes hosts that are due, keeps them while their delays are short, and gives
// them back if the next request must wait for longer, for example because of a long Crawl-delay or
// a Retry-After. So a slow host takes no place from other hosts. The processes share the hosts
// evenly.
//
// The plugin keeps the delay of each host, and a host goes to another process only when its delay
// has passed. A process that was stopped for longer than its [Lease], for example because its machine
// was suspended, sends no more pages of its hosts, and another process continues with them. There are
// three exceptions, in which a request may come too early: a process is killed or stopped, and the
// delay is longer than two thirds of the Lease; a process is stopped in a redirect, in a request for
// a robots.txt, or in the instant before it sends a page; and a redirect leads to a host of another
// process. With the option [collyrobots.SharedPace] it does not. Each process requests robots.txt
// itself, also when it is started again. With the option [collyrobots.Store] and a store in Redis it
// does not, and a single process that is killed and started again keeps the delay of each host.
//
// # Pages
//
// Two URLs are the same page if they differ only in the fragment, a default port, the case of the
// scheme and the host, dot segments, or the percent-encoding of unreserved characters (RFC 3986,
// section 6.2.2). The set of known pages is exact. A page is never recorded twice, even after it is
// done. The target of a redirect is not recorded, so it is fetched again if a link leads to it.
//
// A page is done when its callbacks have run, also with a 4xx status. It is denied if robots.txt or
// a filter of the collector does not allow it. In these cases it is not fetched again. A page is
// tried three times in all if it gets no response or the status 407, 408, 429 or 5xx, if its
// robots.txt cannot be read, or if a callback panics. Then it has failed, and [Queue.Failed] has
// it. See [RetryPause]. If a page ends the process, for example because it takes all of the memory,
// the next process fetches it again.
//
// # Redis
//
// Redis must keep its data: with the setting "appendonly yes", at most the last second is lost if
// Redis is killed, and the pages of that second are fetched again. Without persistence, and after
// FLUSHALL, the crawl is lost, and Run returns [ErrLost]. The setting maxmemory-policy must be
// noeviction.
//
// When a host is due is decided by the clock of Redis, as a time of day. If this clock is set back
// by an hour, the hosts that wait then do so for up to an hour longer, and so do pages that wait for
// a retry and the hosts of a process that was killed. If it is set forward, hosts may get their next
// request too early, unless SharedPace is used. So let the server correct its clock gradually, as
// chrony and ntpd do after their start.
//
// While Redis does not answer, Run waits, and then continues. Redis 5 or later is
// needed. In a cluster, the keys of each host have their own hash tag.
package hostqueue
