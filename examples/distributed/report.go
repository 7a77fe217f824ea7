package main

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A report is what the sites' access log says of a crawl.
type report struct {
	hosts  []*hostReport
	killed []string // workers, by name
	heirs  int      // workers that were started for these, since they had been at something
	failed []string // tasks that were given up, and why
	took   time.Duration
	whole  bool // the crawl has come to its end
}

// A hostReport is a row of the table.
type hostReport struct {
	host     string
	requests int
	robots   int            // for robots.txt
	by       map[string]int // requests, by the worker
	delay    time.Duration
	gap      time.Duration // the smallest between two requests; 0: there were no two
	pages    int           // that were fetched, sitemaps included
	lost     []string      // pages that are allowed and were not fetched
	again    []string      // pages that a worker was killed over, and another one fetched
	twice    []string      // pages that were fetched more than once without that
}

func newReport(st *stage, whole bool) *report {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := &report{took: time.Since(st.began), heirs: st.heirs, whole: whole}
	for _, w := range st.victims {
		r.killed = append(r.killed, w.name())
	}
	names := make(map[string]string) // by user agent
	for _, w := range st.workers {
		names[userAgent(w.job.Worker)] = w.name()
	}
	for _, host := range slices.Sorted(maps.Keys(demo.Sites)) {
		h := newHostReport(host, st.sites.Log(host), names)
		h.findPages(st.sites.Log(host), func(agent string) bool { return slices.Contains(r.killed, names[agent]) })
		r.hosts = append(r.hosts, h)
	}
	return r
}

func newHostReport(host string, log []demo.Access, names map[string]string) *hostReport {
	h := &hostReport{host: host, requests: len(log), by: make(map[string]int), delay: minDelay}
	if asked, ok := rulesOf(host).CrawlDelay(); ok {
		h.delay = max(h.delay, asked)
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

// findPages looks for what became of each page of the site that a crawler may ask for.
func (h *hostReport) findPages(log []demo.Access, killed func(agent string) bool) {
	for _, page := range pagesOf(h.host) {
		var agents []string // that have asked for it, in their order
		for _, a := range log {
			if a.Path == page {
				agents = append(agents, a.Agent)
			}
		}
		switch before := agents[:max(0, len(agents)-1)]; {
		case len(agents) == 0:
			h.lost = append(h.lost, "http://"+h.host+page)
			continue
		case slices.ContainsFunc(before, func(agent string) bool { return !killed(agent) }):
			h.twice = append(h.twice, "http://"+h.host+page)
		case len(before) > 0:
			h.again = append(h.again, "http://"+h.host+page)
		}
		h.pages++
	}
}

// rulesOf is what the robots.txt of a demo site says to the workers.
func rulesOf(host string) *dialect.Group {
	return dialect.RFC9309().Parse(demo.Sites[host]["/robots.txt"].Body).Group(productToken)
}

// pagesOf returns the paths of a demo site that the workers may ask for, robots.txt left out.
func pagesOf(host string) (paths []string) {
	site, rules := demo.Sites[host], rulesOf(host)
	if site["/robots.txt"].Status >= 500 {
		return nil // nobody knows what is allowed
	}
	for _, path := range slices.Sorted(maps.Keys(site)) {
		u, err := url.Parse("http://" + host + path)
		if err == nil && path != "/robots.txt" && rules.Decide(dialect.Target(u)).Allowed {
			paths = append(paths, path)
		}
	}
	return paths
}

// isPage reports whether a path of the demo is a page, and no file that the plugin reads for
// itself.
func isPage(path string) bool { return path != "/robots.txt" && !strings.Contains(path, ".xml") }

// early reports whether a host was asked before its delay had passed, but for what a busy machine
// notes late.
func (h *hostReport) early() bool { return h.gap > 0 && h.gap < h.delay-h.delay/20 }

// good reports whether all was done that was to be done, and nothing else.
func (r *report) good() bool {
	return r.whole && !slices.ContainsFunc(r.hosts, func(h *hostReport) bool { return h.early() || len(h.lost)+len(h.twice) > 0 })
}

func (r *report) print(w io.Writer) {
	table := term.NewTable(
		term.Column{Head: "host", Least: 10},
		term.Column{Head: "requests", Right: true},
		term.Column{Head: "robots.txt", Right: true, Spare: true},
		term.Column{Head: "pages", Right: true},
		term.Column{Head: "twice", Right: true},
		term.Column{Head: "lost", Right: true},
		term.Column{Head: "delay", Right: true},
		term.Column{Head: "least gap", Right: true},
		term.Column{Head: "by worker"})
	for _, h := range r.hosts {
		gap := ""
		if h.gap > 0 {
			gap = h.gap.Round(time.Millisecond).String()
		}
		table.Row(h.host, term.Count(h.requests), term.Count(h.robots), term.Count(h.pages), term.Count(len(h.again)+len(h.twice)),
			term.Count(len(h.lost)), term.Duration(h.delay), gap, shares(h.by))
	}
	fmt.Fprintln(w)
	table.Print(w, term.Width(w))
	fmt.Fprintln(w)
	r.printPages(w)
	r.printVerdict(w)
}

// printPages lists the pages that are worth a word.
func (r *report) printPages(w io.Writer) {
	lost := "Lost"
	if !r.whole {
		lost = "Not fetched yet"
	}
	for _, list := range []struct {
		head string
		of   func(*hostReport) []string
	}{
		{"Fetched twice, by the worker that was killed and by another one", func(h *hostReport) []string { return h.again }},
		{"Fetched twice, for no reason that is known", func(h *hostReport) []string { return h.twice }},
		{lost, func(h *hostReport) []string { return h.lost }},
	} {
		var pages []string
		for _, h := range r.hosts {
			pages = append(pages, list.of(h)...)
		}
		if len(pages) > 0 {
			term.Fprintf(w, "%s (%d):\n", list.head, len(pages))
			printList(w, pages)
		}
	}
	if len(r.failed) > 0 {
		fmt.Fprintln(w, "Given up:")
		printList(w, r.failed)
	}
}

func printList(w io.Writer, list []string) {
	const most = 10
	for _, item := range list[:min(len(list), most)] {
		term.Fprintf(w, "  %s\n", item)
	}
	if len(list) > most {
		fmt.Fprintf(w, "  and %d more\n", len(list)-most)
	}
}

// printVerdict says what the table means.
func (r *report) printVerdict(w io.Writer) {
	if !r.whole {
		fmt.Fprintln(w, "The crawl did not come to its end.")
		return
	}
	killed := "No worker was killed."
	if len(r.killed) > 0 {
		killed = "Killed: " + strings.Join(r.killed, ", ") + "."
	}
	fmt.Fprintf(w, "The crawl took %s. %s\n", term.Duration(r.took), killed)
	if r.heirs > 0 {
		fmt.Fprintf(w, "What a killed worker was at went to the others after %v; asynq by itself does that after one to two minutes.\n", silent)
	}
	if r.good() {
		fmt.Fprintln(w, "No page is lost, and no host was asked before its delay had passed.")
	}
	for _, h := range r.hosts {
		if h.early() {
			term.Fprintf(w, "%s was asked before its delay had passed.\n", h.host)
		}
	}
}

// shares lists who has sent how many requests: "1:5 3:2".
func shares(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s:%d", strings.TrimPrefix(name, "worker "), by[name]))
	}
	return strings.Join(parts, " ")
}
