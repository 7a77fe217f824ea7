package crawl

import (
	"fmt"
	"io"
	"strings"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/term"
)

// namedHosts is how many hosts are named in one line.
const namedHosts = 3

// printEndings prints why hosts ended, one line for each reason. Hosts whose pages are all done are
// left out.
func (r *report) printEndings(w io.Writer, width int) {
	first := true
	for _, ending := range []collyrobots.Ending{collyrobots.EndingBudget, collyrobots.EndingRefused, collyrobots.EndingCancelled} {
		var hosts []collyrobots.HostStats
		for _, h := range r.stats.Hosts {
			if h.Ended == ending {
				hosts = append(hosts, h)
			}
		}
		if len(hosts) == 0 {
			continue
		}
		if first {
			fmt.Fprintln(w)
			first = false
		}
		term.Paragraph(w, namesOf(hosts)+" ended: "+r.causeOf(ending), 2, width)
	}
}

// causeOf returns the reason of an ending in words.
func (r *report) causeOf(ending collyrobots.Ending) string {
	switch ending {
	case collyrobots.EndingBudget:
		return "budget of " + term.Number(r.maxPerHost, "page")
	case collyrobots.EndingRefused:
		return "refused " + term.Number(r.stopRefused, "page") + " in a row"
	}
	return string(ending)
}

// namesOf returns the names of hosts, or their number if there are many.
func namesOf(hosts []collyrobots.HostStats) string {
	if len(hosts) > namedHosts {
		return term.Number(len(hosts), "host")
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Host)
	}
	return strings.Join(names, ", ")
}
