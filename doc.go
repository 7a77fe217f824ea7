// Package collyrobots makes Colly collectors obey robots.txt, keeps the delay between two requests
// to a host, and crawls the pages that the sitemaps of a site list.
//
// An existing spider needs one more call, after its OnRequest callbacks and before its first Visit:
//
//	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
//	// ... callbacks and limits, as before
//	robots, err := collyrobots.WithRobots(c, collyrobots.MinDelay(time.Second))
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer robots.Close()
//	c.Visit("https://example.com/")
//	c.Wait()
//
// The plugin finds the robots.txt of each request, by its scheme, host and port. It fetches each
// file once, keeps it for a day or as long as the dialect says, and denies the requests that it
// disallows. It delays the other requests so that no two requests to a host start closer together
// than the delay of the host. Redirects, retries, sitemaps and robots.txt itself count as requests.
// The name that the plugin looks for in robots.txt is the product token of the User-Agent header:
// "ExampleBot" above.
//
// # Plugins and collectors
//
// [New] makes a [Plugin], and [Plugin.Attach] attaches it to a collector. [WithRobots] does both.
// One Plugin can serve any number of collectors, which then share the robots.txt files and the pace
// of each host. A program with many collectors for the same hosts should have one Plugin, because
// two plugins know nothing of each other's requests. [NewCollector] and [Wrap] return a
// [Collector], whose clones are attached by themselves. [Plugin.Close] ends the plugin; call it
// after the crawl. [Plugin.Shutdown] also waits for the requests that are under way.
//
// # Options
//
// The options of [New] and [WithRobots] are functions that return an [Option]. New reports all
// faults of the options at once, each as an [*OptionError]. A zero number or duration, or
// false, switches an option off. The file docs/reference/options.md of the repository lists all
// options with their defaults.
//
// [Polite] sets the usual options for sites that you do not own. Options after it override it.
//
// How robots.txt is read:
//   - [Dialect] selects the specification or search engine whose reading applies.
//   - [ProductToken] sets the names to look for in robots.txt.
//   - [HonorDelays] keeps Crawl-delay, Request-rate and Visit-time under a dialect that ignores them.
//   - [IgnoreRobots] does not request robots.txt, and [RobotsTxt] uses a file of the
//     program in its place.
//   - [WhenUnreachable] and [WhenForbidden] decide about sites whose robots.txt cannot be read.
//
// How fast each host is crawled:
//   - [MinDelay] sets a minimum delay, and [MaxCrawlDelay] caps the crawl delays that hosts ask for.
//   - [SkipCrawlDelayAbove] skips the hosts that ask for too long a delay.
//   - [Jitter] makes the gaps between requests longer by a random share of the delay.
//   - [AdaptiveDelay] makes the delay depend on the response time of the host.
//   - [DelayFromEnd] counts delays from the end of a response.
//   - [MaxInFlightPerHost] bounds the requests to a host that are in flight at once.
//   - [MaxBackOff] bounds the delay after status 429 or 503.
//   - [Retry] repeats requests that have failed in a way that can pass, and [RetryThrottled] those that
//     were answered with 429 or 503.
//   - [CrawlHours] sends pages only in some hours of the day.
//   - [PaceBy] gives several hosts one pace.
//   - [MaxRate] limits the requests to all hosts together.
//
// How much each host is crawled:
//   - [MaxPages] and [MaxPagesPerHost] limit the pages of the crawl and of a host.
//   - [StopAfterRefusals] stops a host that refuses requests.
//
// What the pages may be used for:
//   - [Purpose] declares what the crawl is for, and [EnforceUsage] denies the pages whose owners
//     disallow that.
//   - [TDMRep] also requests the TDMRep files of the sites.
//   - [EnforceNofollow] does not follow links with nofollow.
//
// For some hosts only:
//   - [ForHosts] sets options for the hosts of a pattern, and [HostOptions] for each host. They take
//     each [HostOption]: the options above, except MaxRate and MaxPages, and also [Revalidate].
//
// What is crawled, and again:
//   - [FollowSitemaps] also crawls the pages that sitemaps list, as its [Feed] says.
//   - [Frontier] records the pages that wait, so that a later run continues with them.
//   - [Revalidate] requests only pages that have changed, as its [Revalidation] says.
//
// What is reported:
//   - [OnDenied], [OnEvent] and [OnEveryEvent] set functions that the plugin calls, and [Logger] sets
//     its logger.
//   - [DryRun] decides and reports but denies and delays nothing.
//   - [Shadow] compares the decisions of other dialects with those in force.
//
// How the plugin works with other parts of a system:
//   - [Store] keeps robots.txt files and the progress of sitemaps for later runs.
//   - [SharedPace] and [ShardByHost] coordinate several processes.
//   - [RobotsClient] sets another client for robots.txt and sitemaps.
//   - [PrivateNetworks] lets public sites lead the crawler to private addresses, or denies all
//     requests to them.
//   - [SignRequests] signs the requests.
//
// # Any http.Client
//
// [Plugin.Transport] returns an http.RoundTripper that makes any http.Client obey robots.txt and
// keep the delay of each host, with or without Colly. [Plugin.Acquire] is for clients that send
// their requests themselves, such as a headless browser. Collectors and http.Clients with the same
// Plugin share the robots.txt files and the pace.
//
// # Denied requests
//
// A request that is denied fails like any other request that fails: Visit returns an error if the
// collector is not Async, and OnError is called. If robots.txt, an owner's wish or a limit denies
// it, the error is a [*DeniedError], which contains a [Decision]: the reason, the robots.txt, its
// line and group, and the dialect. It wraps colly.ErrRobotsTxtBlocked only if robots.txt is the
// cause. The function of [OnDenied] is called only for denied requests. [Plugin.Check] returns the
// Decision about a URL without a crawl, and [Plugin.Robots] the robots.txt in force for its site.
//
// # Observing a crawl
//
// [Plugin.Stats] returns counts and delays by host. [OnEvent] and [Plugin.Listen] call a function
// for each [Event]. A [Stats], an Event and a Decision can be encoded in JSON and read back;
// durations are numbers of seconds. Package view shows a crawl on a web page, and the modules
// metrics/robotsprom and metrics/robotsotel publish metrics.
//
// Package report has the types of decisions, events and counters, and their values, such as
// report.ReasonNofollow. Packages store/urlstore and store/pacer have the interfaces for [Frontier]
// and [SharedPace].
//
// # Sitemaps
//
// [FollowSitemaps] crawls the pages of sitemaps with the collector. [Plugin.Pages] returns them as
// a loop, and [Plugin.SitemapQueue] adds them to a queue of colly/queue. In all cases a page is
// left out if robots.txt denies it. Package sitemap reads sitemaps without a plugin.
//
// # Tests
//
// Package robotstest has sites in memory for the test of a spider, and reports the requests that
// were not polite.
package collyrobots
