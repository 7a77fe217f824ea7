package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/term"
)

// write writes the report as text or as JSON.
func (r *report) write(w io.Writer, j *job) error {
	if j.json {
		return term.JSON(w, r.json())
	}
	var out strings.Builder
	r.print(&out, term.Width(w), j.cache != "")
	_, err := io.WriteString(w, out.String())
	return err
}

// print prints the report as text for a terminal of the given width. If width is 0, lines may have
// any length. ages says whether to print the ages of the robots.txt files.
func (r *report) print(w io.Writer, width int, ages bool) {
	r.printHosts(w, width, ages)
	r.printSitemaps(w, width)
	r.printEndings(w, width)
	r.printDenials(w, width)
	r.printFailures(w, width)
	if r.startFailed {
		fmt.Fprintln(w)
		term.Paragraph(w, "At least one start URL got no response.", 0, width)
	}
	if r.full {
		fmt.Fprintln(w)
		term.Paragraph(w, "The crawl ended at the limit of -max; there may be more pages.", 0, width)
	}
	if r.interrupted {
		fmt.Fprintln(w)
		term.Paragraph(w, "Interrupted; there are more pages to crawl.", 0, width)
	}
}

func (r *report) printHosts(w io.Writer, width int, ages bool) {
	denied := make(map[string]int)
	for _, d := range r.denials {
		_, host, _ := strings.Cut(d.Authority, "://")
		denied[host]++
	}
	columns := []term.Column{{Head: "host", Least: 16}, {Head: "pages", Right: true}, {Head: "denied", Right: true},
		{Head: "Crawl-delay", Right: true, Spare: true}, {Head: "delay", Right: true}, {Head: "smallest gap", Right: true, Spare: true}}
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
	text := fmt.Sprintf("Sitemaps: %s, %s", term.Number(s.Files, "file"), term.Number(s.Entries, "page"))
	add := func(n int, number, what string) {
		if n > 0 {
			text += ", " + number + " " + what
		}
	}
	pages := func(n int, what string) { add(n, term.Count(n), what) }
	files := func(n int, what string) { add(n, term.Number(n, "file"), what) }
	pages(s.Fed, "added to the crawl")
	pages(s.Resumed, "done by an earlier run")
	pages(s.Refused+s.Duplicate, "already known")
	pages(s.Denied, "denied")
	pages(s.OutOfScope, "out of scope")
	pages(s.Old+s.Dropped, "filtered out")
	pages(s.GivenUp, "given up")
	files(s.FilesUnchanged, "unchanged")
	files(s.FilesFailed, "failed")
	files(s.FilesCut, "cut off")
	if s.Errors > 0 {
		text += ", " + term.Number(s.Errors, "error")
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

// duration returns d rounded to a millisecond, or a dash if d is 0.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return term.Duration(d)
}
