package crawl

import (
	"fmt"
	"io"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/report"
)

// namedHosts is how many hosts are named in one line.
const namedHosts = 3

// printEndings prints why hosts ended, one line for each reason. Hosts whose pages are all done are
// left out.
func (r *summary) printEndings(w io.Writer, width int) {
	first := true
	for _, ending := range []report.Ending{report.EndingBudget, report.EndingThrottled, report.EndingRefused, report.EndingCanceled} {
		var hosts []report.HostStats
		for _, h := range r.ending.Stats.Hosts {
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
func (r *summary) causeOf(ending report.Ending) string {
	switch ending {
	case report.EndingBudget:
		return "budget of " + term.Number(r.ending.MaxPerHost, "page")
	case report.EndingThrottled:
		return "pages given up after status 429 or 503"
	case report.EndingRefused:
		return "refused " + term.Number(r.ending.StopAfterRefusals, "page") + " in a row"
	case report.EndingCanceled:
		if r.ending.Full {
			return "limit of -max"
		}
		return "interrupted"
	}
	return string(ending)
}

// namesOf returns the names of hosts, or their number if there are many.
func namesOf(hosts []report.HostStats) string {
	if len(hosts) > namedHosts {
		return term.Number(len(hosts), "host")
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Host)
	}
	return strings.Join(names, ", ")
}
