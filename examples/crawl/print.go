package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// write writes the report as it was asked for.
func (r *report) write(w io.Writer, j *job) error {
	if j.json {
		return term.JSON(w, r.json())
	}
	var out strings.Builder
	r.print(&out, term.Width(w), j.cache != "")
	_, err := io.WriteString(w, out.String())
	return err
}

// print prints the report for a terminal of so many columns; 0: any.
func (r *report) print(w io.Writer, width int, ages bool) {
	r.printHosts(w, width, ages)
	r.printSitemaps(w, width)
	r.printDenials(w, width)
	r.printFailures(w, width)
	if r.startFailed {
		fmt.Fprintln(w)
		term.Paragraph(w, "Not every start URL was answered.", 0, width)
	}
	if r.full {
		fmt.Fprintln(w)
		term.Paragraph(w, "No more pages may be asked for (-max): there may be more to crawl.", 0, width)
	}
	if r.interrupted {
		fmt.Fprintln(w)
		term.Paragraph(w, "Interrupted: there was more to crawl.", 0, width)
	}
}

func (r *report) printHosts(w io.Writer, width int, ages bool) {
	denied := make(map[string]int)
	for _, d := range r.denials {
		_, host, _ := strings.Cut(d.Authority, "://")
		denied[host]++
	}
	columns := []term.Column{{Head: "host", Least: 16}, {Head: "pages", Right: true}, {Head: "denied", Right: true},
		{Head: "delay asked", Right: true, Spare: true}, {Head: "delay kept", Right: true}, {Head: "smallest gap", Right: true, Spare: true}}
	if ages {
		columns = append(columns, term.Column{Head: "robots.txt", Right: true})
	}
	t := term.NewTable(columns...)
	for _, h := range r.stats.Hosts {
		row := []string{h.Host, term.Count(h.Pages), term.Count(denied[h.Host]), duration(h.CrawlDelay), duration(h.Delay), duration(h.MinGap)}
		if ages {
			row = append(row, "-")
			if age, known := r.age(h.Host); known {
				row[len(row)-1] = term.Duration(age.Truncate(time.Second)) + " old"
			}
		}
		t.Row(row...)
	}
	t.Print(w, width)
}

func (r *report) printSitemaps(w io.Writer, width int) {
	s := r.stats.Sitemaps
	if s.Files+s.FilesFailed+s.FilesUnchanged == 0 {
		return
	}
	text := fmt.Sprintf("Sitemaps: %s, %s listed", term.Number(s.Files, "file"), term.Number(s.Entries, "page"))
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Fed, "handed on"}, {s.Resumed, "done by an earlier run"}, {s.Refused + s.Duplicate, "met before"}, {s.Denied, "denied"},
		{s.OutOfScope, "of other sites"}, {s.Old + s.Dropped, "filtered"}, {s.GivenUp, "given up"}, {s.FilesUnchanged, "files unchanged"},
		{s.FilesFailed, "files failed"}, {s.FilesCut, "files cut short"}, {s.Errors, "errors"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(", %s %s", term.Count(part.n), part.what)
		}
	}
	fmt.Fprintln(w)
	term.Paragraph(w, text, 2, width)
}

func (r *report) printDenials(w io.Writer, width int) {
	t := term.NewTable(term.Column{}, term.Column{})
	for _, d := range sorted(r.denials) {
		t.Row(d.URL, why(d))
	}
	printList(w, width, "Denied", len(r.denials), t)
}

func (r *report) printFailures(w io.Writer, width int) {
	t := term.NewTable(term.Column{}, term.Column{})
	for _, f := range sorted(r.failures) {
		t.Row(f.URL, f.why())
	}
	printList(w, width, "Failed", len(r.failures), t)
}

func printList(w io.Writer, width int, title string, n int, list *term.Table) {
	if n > 0 {
		fmt.Fprintf(w, "\n%s (%s):\n", title, term.Count(n))
		list.Print(w, width)
	}
}

// duration prints d to the millisecond, and none as a dash.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return term.Duration(d)
}
