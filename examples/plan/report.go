package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// write writes the plan as it was asked for.
func (p *plan) write(w io.Writer, j *job) error {
	if j.json {
		return term.JSON(w, p)
	}
	r := &report{plan: p, job: j, width: term.Width(w)}
	r.printHead()
	r.printHosts()
	r.printDialects()
	r.printSchedules()
	r.printDeciding()
	_, err := io.WriteString(w, r.out.String())
	return err
}

// A report is a plan for people.
type report struct {
	*plan
	job   *job
	width int // of the terminal; 0: any
	out   strings.Builder
}

func (r *report) printHead() {
	says := fmt.Sprintf("%s looked at in %s", term.Number(len(r.Hosts), "host"), term.Duration(time.Duration(r.Took)))
	if n := len(r.Hosts) - r.looked(); n > 0 {
		says += fmt.Sprintf(", %s without an answer", term.Count(n))
	}
	name, _, _ := strings.Cut(r.Agent, " ")
	says += fmt.Sprintf(". The crawl is %s under %s, with at least %s between two requests to a host", name, r.Dialect, term.Duration(time.Duration(r.MinDelay)))
	if r.Since != "" {
		says += ", of pages changed since " + r.Since
	}
	if r.Max > 0 {
		says += fmt.Sprintf(", at most %s of a host", term.Number(r.Max, "page"))
	}
	r.paragraph(says+".", 0)
	if r.Interrupted {
		r.paragraph("Interrupted: this is what was known until then.", 0)
	}
}

func (r *report) paragraph(text string, indent int) {
	term.Paragraph(&r.out, term.Safe(text), indent, r.width)
}

func (r *report) title(text string) {
	r.out.WriteString("\n")
	r.paragraph(text, 0)
	r.out.WriteString("\n")
}

// printHosts prints a row for each host, those that take longest first and those without an answer
// last.
func (r *report) printHosts() {
	t := term.NewTable(term.Column{Head: "host", Least: 16}, term.Column{Head: "listed", Right: true, Spare: true}, term.Column{Head: "denied", Right: true, Spare: true},
		term.Column{Head: "pages", Right: true}, term.Column{Head: "delay", Right: true}, term.Column{Head: "line", Right: true, Spare: true},
		term.Column{Head: "time", Right: true}, term.Column{Head: "remarks"})
	hosts := slices.SortedStableFunc(slices.Values(r.Hosts), func(a, b *host) int {
		if (a.Error != "") != (b.Error != "") {
			return len(a.Error) - len(b.Error)
		}
		return longestFirst(a, b)
	})
	silent, left := slices.IndexFunc(hosts, func(h *host) bool { return h.Error != "" }), 0
	if silent < 0 {
		silent = len(hosts)
	}
	for i, part := range [][]*host{hosts[:silent], hosts[silent:]} {
		shown := part
		if most := r.job.rows; most > 0 && len(part) > most {
			shown, left = part[:most], left+len(part)-most
		}
		for _, h := range shown {
			r.row(t, h, i == 1)
		}
	}
	r.out.WriteString("\n")
	t.Print(&r.out, r.width)
	if left > 0 {
		r.paragraph(fmt.Sprintf("  and %s more: -rows 0 shows all", term.Count(left)), 2)
	}
}

func (r *report) row(t *term.Table, h *host, silent bool) {
	if silent {
		t.Row(h.Host, "", "", "", "", "", "", h.Error)
		return
	}
	line, pages, takes := "", term.Count(h.Pages), term.Duration(time.Duration(h.Time))
	if h.Line > 0 {
		line = fmt.Sprint(h.Line)
	}
	switch {
	case h.Listed == 0 && h.Unread != "":
		pages, takes = "?", "?"
	case h.Unread != "":
		pages, takes = "≥"+pages, "≥"+takes
	case h.Listed == 0:
		pages, takes = "", ""
	}
	t.Row(h.Host, term.Count(h.Listed), term.Count(h.Denied), pages, term.Duration(time.Duration(h.Delay)), line, takes, h.remarks())
}

// remarks says in a few words what else is to be known of a host.
func (h *host) remarks() string {
	var remarks []string
	if d := h.Dialects[0]; !d.Allowed {
		remarks = append(remarks, "start page denied: "+d.why())
	}
	if h.Old > 0 {
		remarks = append(remarks, term.Count(h.Old)+" too old")
	}
	switch {
	case h.Unread != "":
		remarks = append(remarks, h.Unread)
	case h.Listed == 0 && h.Faults > 0:
		remarks = append(remarks, "no pages in sitemaps: "+h.Fault)
	case h.Listed == 0:
		remarks = append(remarks, "no sitemap")
	case h.Faults > 0:
		remarks = append(remarks, fmt.Sprintf("%s in sitemaps: %s", term.Number(h.Faults, "fault"), h.Fault))
	}
	return strings.Join(remarks, "; ")
}

// printDialects prints what the dialects make of robots.txt: of one host all, of many where they
// differ.
func (r *report) printDialects() {
	t := term.NewTable(term.Column{Head: "host", Least: 16}, term.Column{Head: "dialect", Least: 12}, term.Column{Head: "start", Least: 10}, term.Column{Head: "group", Least: 8, Spare: true},
		term.Column{Head: "delay", Right: true, Spare: true}, term.Column{Head: "line", Right: true, Spare: true}, term.Column{Head: "denied", Right: true, Spare: true}, term.Column{Head: "why"})
	rows, left := 0, 0
	for _, h := range r.Hosts {
		for i, d := range h.Dialects {
			switch {
			case h.Error != "":
			case len(r.Hosts) > 1 && (i == 0 || d.same(h.Dialects[0])):
			case rows >= 20:
				left++
			default:
				rows++
				t.Row(h.Host, d.Dialect, verdict(d.Allowed), d.Group, d.delay(), d.line(), term.Count(d.Denied), d.why())
			}
		}
	}
	if rows == 0 {
		return
	}
	if len(r.Hosts) == 1 {
		r.title("robots.txt under each dialect:")
	} else {
		r.title(fmt.Sprintf("Where other dialects differ from %s:", r.Dialect))
	}
	t.Print(&r.out, r.width)
	if left > 0 {
		r.paragraph(fmt.Sprintf("  and %s more: -json has all", term.Count(left)), 2)
	}
}

// same reports whether two dialects come to the same.
func (d reading) same(other reading) bool {
	return d.Allowed == other.Allowed && d.Delay == other.Delay && d.Denied == other.Denied
}

func (d reading) delay() string {
	if d.Delay == 0 {
		return ""
	}
	return term.Duration(time.Duration(d.Delay))
}

// why says why the start page is denied.
func (d reading) why() string {
	if d.Allowed || d.Rule != "" {
		return d.Rule
	}
	return strings.ReplaceAll(d.Reason, "_", " ")
}

func (d reading) line() string {
	if d.Line == 0 {
		return ""
	}
	return fmt.Sprint(d.Line)
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// printSchedules prints how long the crawl takes, and with what it takes less.
func (r *report) printSchedules() {
	if r.Schedules[0].Totals[0].Time == 0 {
		return
	}
	title := "How long the crawl takes, by the number of hosts side by side:"
	if len(r.Hosts) == 1 {
		title = "How long the crawl takes:"
	}
	r.title(title)
	columns := []term.Column{{Head: "", Least: 14}}
	for i, t := range r.Schedules[0].Totals {
		head := fmt.Sprint(t.SideBySide)
		if i == len(r.Schedules[0].Totals)-1 && len(r.Hosts) > 1 {
			head = fmt.Sprintf("all %d", len(r.Hosts))
		}
		columns = append(columns, term.Column{Head: head, Right: true, Spare: i > 0 && i < len(r.Schedules[0].Totals)-1})
	}
	t := term.NewTable(columns...)
	for _, s := range r.Schedules {
		cells := []string{s.What}
		for _, total := range s.Totals {
			cells = append(cells, term.Duration(time.Duration(total.Time)))
		}
		t.Row(cells...)
	}
	t.Print(&r.out, r.width)
}

func (r *report) printDeciding() {
	if hosts := r.deciding(); len(hosts) > 0 && len(r.Hosts) > 1 {
		r.title("What decides:")
		for _, h := range hosts {
			why := "the crawl's own delay"
			if h.Asked {
				why = "its robots.txt asks for that"
			}
			if h.Line > 0 {
				why = fmt.Sprintf("line %d of its robots.txt asks for that", h.Line)
			}
			r.paragraph(fmt.Sprintf("  %s takes %s: %s, %s each; %s.", h.Host, term.Duration(time.Duration(h.Time)), term.Number(h.Pages, "page"), term.Duration(time.Duration(h.Delay)), why), 4)
		}
		if rest := r.without(hosts); rest > 0 {
			r.paragraph(fmt.Sprintf("  Without %s, all others take %s side by side.", some(r.Decide), term.Duration(rest)), 4)
		}
	}
	if len(r.Advice) > 0 {
		r.title("What would help:")
		for _, a := range r.Advice {
			r.paragraph("  "+a, 4)
		}
	}
}
