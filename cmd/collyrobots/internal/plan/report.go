package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// write writes the plan as text or as JSON.
func (p *plan) write(w io.Writer, j *job) error {
	if j.json {
		return term.JSON(w, p)
	}
	r := &printer{plan: p, job: j, width: term.Width(w)}
	r.printHead()
	r.printHosts()
	r.printSchedules()
	r.printDeciding()
	_, err := io.WriteString(w, r.out.String())
	return err
}

// A printer prints a plan as text.
type printer struct {
	*plan
	job   *job
	width int // the width of the terminal; 0 if the output is not a terminal
	out   strings.Builder
}

// answer returns the answer to the question how long the crawl takes.
func (r *printer) answer() string {
	totals := r.Schedules[0].Totals
	longest := totals[len(totals)-1].Time
	unknown := fmt.Sprintf("the pages of %s are not known", term.Number(r.Unknown, "host"))
	if longest == 0 && r.Unknown > 0 {
		return "It is not known how long the crawl takes: " + unknown + "."
	}
	pages := 0
	for _, h := range r.Hosts {
		pages += h.Pages
	}
	what := "page"
	if r.Unknown > 0 {
		what = "known page"
	}
	text := fmt.Sprintf("The crawl takes %s for %s", r.atLeast("at least ", longest), term.Number(pages, what))
	if len(r.Hosts) > 1 {
		text += fmt.Sprintf(" if all %s are crawled at once", term.Number(len(r.Hosts), "host"))
	}
	if r.Unknown > 0 {
		text += "; " + unknown
	}
	return text + "."
}

// atLeast returns a time of the whole crawl. If not all pages are known, it is a lower bound, and a
// prefix says so.
func (r *printer) atLeast(prefix string, d term.Seconds) string {
	if r.Unknown == 0 {
		prefix = ""
	}
	return prefix + duration(d)
}

func (r *printer) printHead() {
	r.paragraph(r.answer(), 0)
	text := fmt.Sprintf("Checked %s in %s", term.Number(len(r.Hosts), "host"), duration(r.Took))
	if n := len(r.Hosts) - r.answered(); n > 0 {
		text += fmt.Sprintf(", %s without a response", term.Count(n))
	}
	name, _, _ := strings.Cut(r.Agent, " ")
	text += fmt.Sprintf(". Planned crawl: %s, dialect %s, at least %s between two requests to a host", name, r.Dialect, duration(r.MinDelay))
	if r.Max > 0 {
		text += fmt.Sprintf(", at most %s per host", term.Number(r.Max, "page"))
	}
	if r.Jitter > 0 {
		text += fmt.Sprintf(", gaps longer by up to %v of the delay", r.Jitter)
	}
	if r.MaxRate > 0 {
		text += fmt.Sprintf(", at most %v requests per second to all hosts together", r.MaxRate)
	}
	if r.Hours != "" {
		text += ", only at " + r.Hours
	}
	r.paragraph(text+".", 0)
	if r.job.frontier != "" {
		r.paragraph(fmt.Sprintf("The pages are those that waited in the frontier at %s.", r.job.frontierTime.Format(time.DateTime)), 0)
	}
	if r.Interrupted {
		r.paragraph("Interrupted: the plan covers only the hosts that were checked.", 0)
	}
}

func (r *printer) paragraph(text string, indent int) {
	term.Paragraph(&r.out, term.Safe(text), indent, r.width)
}

func (r *printer) title(text string) {
	r.out.WriteString("\n")
	r.paragraph(text, 0)
	r.out.WriteString("\n")
}

// printHosts prints a row for each host. Hosts that take longer come first, and hosts without a
// response come last.
func (r *printer) printHosts() {
	t := term.NewTable(term.Column{Head: "host", Least: 16}, term.Column{Head: "listed", Right: true, Spare: true}, term.Column{Head: "denied", Right: true, Spare: true},
		term.Column{Head: "pages", Right: true}, term.Column{Head: "delay", Right: true}, term.Column{Head: "line", Right: true, Spare: true},
		term.Column{Head: "time", Right: true}, term.Column{Head: "remarks"})
	hosts := slices.SortedStableFunc(slices.Values(r.Hosts), func(a, b *host) int {
		if (a.Error != "") != (b.Error != "") {
			return len(a.Error) - len(b.Error)
		}
		return longestFirst(a, b)
	})
	answered := slices.IndexFunc(hosts, func(h *host) bool { return h.Error != "" })
	if answered < 0 {
		answered = len(hosts)
	}
	left := 0
	for _, part := range [][]*host{hosts[:answered], hosts[answered:]} {
		if most := r.job.rows; most > 0 && len(part) > most {
			left += len(part) - most
			part = part[:most]
		}
		for _, h := range part {
			r.row(t, h)
		}
	}
	r.out.WriteString("\n")
	t.Print(&r.out, r.width)
	if left > 0 {
		r.paragraph(fmt.Sprintf("  %s; -rows 0 shows all", term.Number(left, "more host")), 2)
	}
}

func (r *printer) row(t *term.Table, h *host) {
	if h.Error != "" {
		t.Row(h.Host, "", "", "", "", "", "", h.Error)
		return
	}
	pages := term.Count(h.Pages)
	takes := duration(h.Time)
	switch {
	case !h.isCounted() && h.Unread != "":
		pages = "?"
		takes = "?"
	case h.Unread != "":
		pages = "≥" + pages
		takes = "≥" + takes
	case !h.isCounted():
		pages = ""
		takes = ""
	}
	t.Row(h.Host, term.Count(h.Listed), term.Count(h.Denied), pages, duration(h.Delay), lineNumber(h.Line), takes, h.remarks())
}

// remarks returns other important facts about a host.
func (h *host) remarks() string {
	var remarks []string
	if !h.Allowed {
		remarks = append(remarks, "start page denied: "+h.Reason)
	}
	if h.shares != "" {
		remarks = append(remarks, h.shares)
	}
	switch {
	case h.Unread != "":
		remarks = append(remarks, h.Unread)
	case !h.isCounted() && h.Faults > 0:
		remarks = append(remarks, "no pages in sitemaps: "+h.Fault)
	case !h.isCounted():
		remarks = append(remarks, "no sitemap")
	case h.Faults > 0:
		remarks = append(remarks, fmt.Sprintf("%s in sitemaps: %s", term.Number(h.Faults, "error"), h.Fault))
	}
	return strings.Join(remarks, "; ")
}

// lineNumber formats the number of a line. It returns "" for 0.
func lineNumber(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// printSchedules prints how long the crawl takes, and how long with changes that make it shorter.
func (r *printer) printSchedules() {
	if r.Schedules[0].Totals[0].Time == 0 {
		return
	}
	title := "Time for the crawl, by the number of hosts that are crawled at once:"
	if len(r.Hosts) == 1 {
		title = "Time for the crawl:"
	}
	r.title(title)
	columns := []term.Column{{Head: "crawl", Least: 14}}
	for i, t := range r.Schedules[0].Totals {
		head := fmt.Sprintf("%d at once", t.SideBySide)
		switch {
		case len(r.Hosts) == 1:
			head = "time"
		case i == len(r.Schedules[0].Totals)-1:
			head = fmt.Sprintf("all %d", len(r.Hosts))
		}
		columns = append(columns, term.Column{Head: head, Right: true, Spare: i > 0 && i < len(r.Schedules[0].Totals)-1})
	}
	t := term.NewTable(columns...)
	for _, s := range r.Schedules {
		cells := []string{s.What}
		for _, total := range s.Totals {
			cells = append(cells, r.atLeast("≥", total.Time))
		}
		t.Row(cells...)
	}
	t.Print(&r.out, r.width)
}

func (r *printer) printDeciding() {
	if hosts := r.deciding(); len(hosts) > 0 && len(r.Hosts) > 1 {
		r.title("Hosts that take longest:")
		for _, h := range hosts {
			r.paragraph(fmt.Sprintf("  %s takes %s: %s, with a delay of %s (%s).",
				h.Host, duration(h.Time), term.Number(h.Pages, "page"), duration(h.Delay), h.delaySource()), 4)
		}
		if rest := r.without(hosts); rest > 0 {
			r.paragraph(fmt.Sprintf("  Without %s, all hosts in parallel take %s.", some(r.Decide), r.atLeast("at least ", term.Seconds(rest))), 4)
		}
	}
	if len(r.Advice) > 0 {
		r.title("Suggestions:")
		for _, a := range r.Advice {
			r.paragraph("  "+a, 4)
		}
	}
}
