package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/collyrobots/collyrobots"
)

// A report is what the user wants to know in the end. It may be added to by any number of goroutines.
type report struct {
	mu          sync.Mutex
	denials     map[string]collyrobots.Decision // by URL
	failures    map[string]error                // by URL
	startFailed bool
	interrupted bool
	full        bool // as many pages were asked for as may be
	stats       collyrobots.Stats
}

func newReport() *report {
	return &report{denials: make(map[string]collyrobots.Decision), failures: make(map[string]error)}
}

func (r *report) deny(d collyrobots.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denials[d.URL] = d
}

// fail notes a URL that could not be fetched.
func (r *report) fail(rawURL string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[rawURL] = err
}

// failStart notes that a URL which the user gave was not answered.
func (r *report) failStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startFailed = true
}

func (r *report) finish(stats collyrobots.Stats, interrupted bool) {
	r.stats, r.interrupted = stats, interrupted
}

// worked reports whether the crawl did what it was asked for.
func (r *report) worked() bool { return !r.startFailed && !r.interrupted }

func (r *report) print(w io.Writer) {
	r.printHosts(w)
	r.printSitemaps(w)
	r.printDenials(w)
	r.printFailures(w)
	if r.startFailed {
		fmt.Fprintln(w, "\nNot every start URL was answered.")
	}
	if r.full {
		fmt.Fprintln(w, "\nNo more pages may be asked for (-pages): there may be more to crawl.")
	}
	if r.interrupted {
		fmt.Fprintln(w, "\nInterrupted: there was more to crawl.")
	}
}

func (r *report) printHosts(w io.Writer) {
	denied := make(map[string]int)
	for _, d := range r.denials {
		_, host, _ := strings.Cut(d.Authority, "://")
		denied[host]++
	}
	width := len("host")
	for _, h := range r.stats.Hosts {
		width = max(width, len(h.Host))
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%-*s\tpages\tdenied\tdelay asked\tdelay kept\tsmallest gap\t\n", width, "host")
	for _, h := range r.stats.Hosts {
		fmt.Fprintf(t, "%-*s\t%d\t%d\t%s\t%s\t%s\t\n", width, h.Host,
			h.Pages, denied[h.Host], duration(h.CrawlDelay), duration(h.Delay), duration(h.MinGap))
	}
	t.Flush()
}

func (r *report) printSitemaps(w io.Writer) {
	s := r.stats.Sitemaps
	if s.Files+s.FilesFailed == 0 {
		return
	}
	fmt.Fprintf(w, "\nSitemaps: %d files, %d pages listed", s.Files, s.Entries)
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Fed, "crawled"}, {s.Refused + s.Duplicate, "met before"}, {s.Denied, "denied"}, {s.OutOfScope, "of other sites"},
		{s.Old + s.Dropped, "filtered"}, {s.FilesUnchanged, "files unchanged"},
		{s.FilesFailed, "files failed"}, {s.FilesCut, "files cut short"}, {s.Errors, "errors"},
	} {
		if part.n > 0 {
			fmt.Fprintf(w, ", %d %s", part.n, part.what)
		}
	}
	fmt.Fprintln(w)
}

func (r *report) printDenials(w io.Writer) {
	if len(r.denials) == 0 {
		return
	}
	fmt.Fprintf(w, "\nDenied (%d):\n", len(r.denials))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, u := range slices.Sorted(maps.Keys(r.denials)) {
		fmt.Fprintf(t, "  %s\t%s\n", u, why(r.denials[u]))
	}
	t.Flush()
}

func (r *report) printFailures(w io.Writer) {
	if len(r.failures) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFailed (%d):\n", len(r.failures))
	for _, u := range slices.Sorted(maps.Keys(r.failures)) {
		fmt.Fprintf(w, "  %s  %v\n", u, r.failures[u])
	}
}

// why says in a few words what denied a URL.
func why(d collyrobots.Decision) string {
	var request *url.Error // says the URL of robots.txt once more
	switch {
	case d.Reason == collyrobots.ReasonRule:
		return fmt.Sprintf("line %d: Disallow: %s", d.Rule.Line, d.Rule.Pattern)
	case errors.As(d.Err, &request):
		return fmt.Sprintf("%s: %v", d.Reason, request.Err)
	case d.Err != nil:
		return fmt.Sprintf("%s: %v", d.Reason, d.Err)
	default:
		return string(d.Reason)
	}
}

// duration prints d to the millisecond, and none as a dash.
func duration(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}
