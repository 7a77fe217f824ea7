package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/hostqueue"
	"github.com/collyrobots/collyrobots/internal/demo"
)

// An outcome is made from the access logs of the sites.
type outcome struct {
	hosts    []*hostReport
	killed   []string // the names of the workers that were killed
	failed   []string // the pages that have failed three times, with their errors
	took     time.Duration
	complete bool // the crawl has finished
	even     bool // all hosts have the same number of pages and the same delay
}

// A hostReport is a row of the table.
type hostReport struct {
	host     string
	requests int
	robots   int            // the number of requests for robots.txt
	by       map[string]int // the number of requests by worker
	delay    time.Duration
	first    time.Time // of the requests
	last     time.Time
	gap      time.Duration // the smallest time between two requests; 0 if there were fewer than two
	pages    int           // the number of pages and sitemaps that were fetched
	lost     []string      // allowed pages that were not fetched
	again    []string      // pages that were fetched again because a worker was killed
	twice    []string      // pages that were fetched more than once for another reason
}

// newReport returns the report of a crawl. complete says whether the crawl has finished.
func newReport(c *cluster, complete bool) *outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &outcome{took: time.Since(c.began), complete: complete, even: c.settings.sites > 0}
	for _, w := range c.killed {
		r.killed = append(r.killed, w.name())
	}
	names := make(map[string]string) // the names of the workers by user agent
	for _, w := range c.workers {
		names[userAgent(w.job.Worker)] = w.name()
	}
	for _, host := range slices.Sorted(maps.Keys(c.web)) {
		h := newHostReport(host, c.web[host], c.sites.Log(host), names)
		h.findPages(c.web[host], c.sites.Log(host), func(agent string) bool { return slices.Contains(r.killed, names[agent]) })
		r.hosts = append(r.hosts, h)
	}
	return r
}

// addFailed adds the pages that have failed three times.
func (r *outcome) addFailed(ctx context.Context, queue *hostqueue.Queue) error {
	for failure, err := range queue.Failed(ctx) {
		if err != nil {
			return err
		}
		r.failed = append(r.failed, failure.URL+": "+failure.Err)
	}
	return nil
}

// newHostReport returns the report of a host from its log. names has the names of the workers by
// their user agents.
func newHostReport(host string, site demo.Site, log []demo.Access, names map[string]string) *hostReport {
	h := &hostReport{host: host, requests: len(log), by: make(map[string]int), delay: minDelay}
	if len(log) > 0 {
		h.first = log[0].At
		h.last = log[len(log)-1].At
	}
	if delay, ok := rulesOf(site).CrawlDelay(); ok {
		h.delay = max(h.delay, delay)
	}
	for i, a := range log {
		h.by[names[a.Agent]]++
		if a.Path == "/robots.txt" {
			h.robots++
		}
		if i > 0 {
			if gap := a.At.Sub(log[i-1].At); h.gap == 0 || gap < h.gap {
				h.gap = gap
			}
		}
	}
	return h
}

// findPages finds out how often each allowed page of the site was fetched. killed reports whether
// the worker with a User-Agent was killed.
func (h *hostReport) findPages(site demo.Site, log []demo.Access, killed func(agent string) bool) {
	for _, page := range pagesOf(h.host, site) {
		var agents []string // of the requests for the page, in their order
		for _, a := range log {
			if a.Path == page {
				agents = append(agents, a.Agent)
			}
		}
		if len(agents) == 0 {
			h.lost = append(h.lost, "http://"+h.host+page)
			continue
		}
		h.pages++
		earlier := agents[:len(agents)-1]
		switch {
		case slices.ContainsFunc(earlier, func(agent string) bool { return !killed(agent) }):
			h.twice = append(h.twice, "http://"+h.host+page)
		case len(earlier) > 0:
			h.again = append(h.again, "http://"+h.host+page)
		}
	}
}

// rulesOf returns the rules of a demo site for the workers.
func rulesOf(site demo.Site) *dialect.Group {
	return dialect.RFC9309().Parse(site["/robots.txt"].Body).Group(productToken)
}

// pagesOf returns the paths of a demo site that the workers may request, except robots.txt.
func pagesOf(host string, site demo.Site) (paths []string) {
	rules := rulesOf(site)
	if site["/robots.txt"].Status >= 500 {
		return nil // robots.txt cannot be read, so nothing is allowed
	}
	for _, path := range slices.Sorted(maps.Keys(site)) {
		u, err := url.Parse("http://" + host + path)
		if err == nil && path != "/robots.txt" && rules.Decide(dialect.Target(u)).Allowed {
			paths = append(paths, path)
		}
	}
	return paths
}

// isPage reports whether a path of the demo is a page, and not a robots.txt or a sitemap.
func isPage(path string) bool { return path != "/robots.txt" && !strings.Contains(path, ".xml") }

// early reports whether a request came before the delay of the host had passed. It allows 5 %,
// because a busy machine may record the earlier request late.
func (h *hostReport) early() bool { return h.gap > 0 && h.gap < h.delay-h.delay/20 }

// good reports whether the crawl has finished, fetched each page once, and kept the delays.
func (r *outcome) good() bool {
	return r.complete && !slices.ContainsFunc(r.hosts, func(h *hostReport) bool { return h.early() || len(h.lost)+len(h.twice) > 0 })
}

// mostRows is the maximum number of hosts in the table.
const mostRows = 10

func (r *outcome) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w)
	fmt.Fprintln(table, "host\trequests\trobots.txt\tpages\ttwice\tlost\tdelay\tsmallest gap\tby worker")
	for _, h := range r.hosts[:min(len(r.hosts), mostRows)] {
		gap := "-"
		if h.gap > 0 {
			gap = h.gap.Round(time.Millisecond).String()
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%v\t%s\t%s\n",
			h.host, h.requests, h.robots, h.pages, len(h.again)+len(h.twice), len(h.lost), h.delay, gap, shares(h.by))
	}
	table.Flush()
	if more := len(r.hosts) - mostRows; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	fmt.Fprintln(w)
	r.printPages(w)
	r.printVerdict(w)
}

// printPages lists the pages that were fetched twice or not at all.
func (r *outcome) printPages(w io.Writer) {
	var again, twice, lost []string
	for _, h := range r.hosts {
		again = append(again, h.again...)
		twice = append(twice, h.twice...)
		lost = append(lost, h.lost...)
	}
	list := func(head string, pages []string) {
		if len(pages) > 0 {
			fmt.Fprintf(w, "%s (%d):\n", head, len(pages))
			printList(w, pages)
		}
	}
	list("Fetched twice, by the killed worker and by another one", again)
	list("Fetched twice, for an unknown reason", twice)
	if r.complete {
		list("Lost", lost)
	} else {
		list("Not fetched yet", lost)
	}
	if len(r.failed) > 0 {
		fmt.Fprintln(w, "Failed three times:")
		printList(w, r.failed)
	}
}

func printList(w io.Writer, list []string) {
	const most = 10
	for _, item := range list[:min(len(list), most)] {
		fmt.Fprintf(w, "  %s\n", item)
	}
	if len(list) > most {
		fmt.Fprintf(w, "  and %d more\n", len(list)-most)
	}
}

// printVerdict prints a summary.
func (r *outcome) printVerdict(w io.Writer) {
	if !r.complete {
		fmt.Fprintln(w, "The crawl did not finish.")
		return
	}
	killed := "No worker was killed."
	if len(r.killed) > 0 {
		killed = "Killed: " + strings.Join(r.killed, ", ") + "."
	}
	fmt.Fprintf(w, "The crawl took %s. %s\n", r.took.Round(100*time.Millisecond), killed)
	if len(r.killed) > 0 {
		fmt.Fprintf(w, "The hosts of a killed worker went to other workers when its lease of %v had expired.\n", lease)
	}
	if r.even {
		rate, allowed := r.rates()
		fmt.Fprintf(w, "%.0f requests a second, %.0f %% of the %.0f that the delays of %d hosts allow.\n",
			rate, 100*rate/allowed, allowed, len(r.hosts))
	}
	if r.good() {
		fmt.Fprintln(w, "No page was lost, and the delay of each host was kept.")
	}
	for _, h := range r.hosts {
		if h.early() {
			fmt.Fprintf(w, "%s got a request before its delay had passed.\n", h.host)
		}
	}
}

// rates returns the requests per second between the first and the last request, and the requests
// per second that the delays of the hosts allow. rate is lower if some hosts have fewer pages than
// others.
func (r *outcome) rates() (rate, allowed float64) {
	var first, last time.Time
	for _, h := range r.hosts {
		if h.requests == 0 {
			continue
		}
		rate += float64(h.requests)
		allowed += 1 / h.delay.Seconds()
		if first.IsZero() || h.first.Before(first) {
			first = h.first
		}
		if h.last.After(last) {
			last = h.last
		}
	}
	return rate / max(last.Sub(first).Seconds(), minDelay.Seconds()), allowed
}

// shares lists the number of requests of each worker: "1:5 3:2".
func shares(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s:%d", strings.TrimPrefix(name, "worker "), by[name]))
	}
	return strings.Join(parts, " ")
}
