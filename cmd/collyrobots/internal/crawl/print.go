package crawl

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// write writes the report as text, or the last of the JSON lines.
func (r *summary) write(w io.Writer, j *job) error {
	if j.json {
		j.lines.write(record{Kind: kindEnd, End: r.end()})
		return j.lines.fault()
	}
	return r.writeText(w, j.cache != "")
}

// writeText writes the report as text.
func (r *summary) writeText(w io.Writer, ages bool) error {
	var out strings.Builder
	l := layout{width: term.Width(w), paint: term.NewPainter(w), ages: ages}
	r.print(&out, l)
	_, err := io.WriteString(w, out.String())
	return err
}

// A layout says how to print a report.
type layout struct {
	width int // of the terminal; if 0, lines may have any length
	paint term.Painter
	ages  bool // print the ages of the robots.txt files
}

// print prints the report as text.
func (r *summary) print(w io.Writer, l layout) {
	r.printHosts(w, l.width, l.ages)
	r.printSitemaps(w, l.width)
	r.printEndings(w, l.width)
	r.printDenials(w, l)
	r.printFailures(w, l)
	r.printEnd(w, l)
}

// printEnd prints how many pages there were and why the crawl ended.
func (r *summary) printEnd(w io.Writer, l layout) {
	fmt.Fprintln(w)
	if r.ending.StartFailed {
		term.Paragraph(w, "At least one start URL could not be fetched.", 0, l.width)
	}
	if r.ending.Full {
		term.Paragraph(w, "The crawl ended at the limit of -max; there may be more pages.", 0, l.width)
	}
	if r.ending.Interrupted {
		term.Paragraph(w, r.interruption(), 2, l.width)
	}
	if text := r.responses(); text != "" {
		term.Paragraph(w, text, 2, l.width)
	}
	term.Paragraph(w, r.total(), 2, l.width)
}

// total returns a line such as "23 pages in 11.0 s, 2 failed, 4 denied".
func (r *summary) total() string {
	text := fmt.Sprintf("%s in %s, %s failed, %s denied", term.Number(r.pages(), "page"), elapsed(r.ending.Ended.Sub(r.ending.Began)),
		term.Count(len(r.failures)), term.Count(len(r.denials)))
	if n := r.ending.Stats.Totals.Unchanged; n > 0 {
		text += fmt.Sprintf(", %s unchanged", term.Count(n))
	}
	return text
}

// elapsed returns a duration such as "11.0 s" or "2h5m".
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return term.Duration(d)
}

// responses returns the numbers of responses by status, such as "Responses: 21 × 200, 2 × 404". It
// returns "" if there were none.
func (r *summary) responses() string {
	counts := maps.Clone(r.statuses)
	for _, f := range r.failures {
		counts[f.Status]++
	}
	var texts []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		if status != 0 {
			texts = append(texts, fmt.Sprintf("%s × %d", term.Count(counts[status]), status))
		}
	}
	if counts[0] > 0 {
		texts = append(texts, fmt.Sprintf("%s × no response", term.Count(counts[0])))
	}
	if len(texts) == 0 {
		return ""
	}
	return "Responses: " + strings.Join(texts, ", ")
}

// interruption says how many pages were left when the crawl was interrupted.
func (r *summary) interruption() string {
	waiting := 0
	for _, h := range r.ending.Left {
		waiting += h.Pages
	}
	if waiting == 0 {
		return "Interrupted; there are more pages to crawl."
	}
	var hosts []string
	for _, h := range r.ending.Left[:min(namedHosts, len(r.ending.Left))] {
		hosts = append(hosts, term.Safe(fmt.Sprintf("%s %s", h.Host, term.Count(h.Pages))))
	}
	if more := len(r.ending.Left) - namedHosts; more > 0 {
		hosts = append(hosts, term.Number(more, "other host"))
	}
	return fmt.Sprintf("Interrupted; %s waiting (%s), and there may be more.", term.Number(waiting, "page")+verb(waiting), strings.Join(hosts, ", "))
}

func verb(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

func (r *summary) printHosts(w io.Writer, width int, ages bool) {
	if len(r.ending.Stats.Hosts) == 0 {
		return
	}
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
	for _, h := range r.ending.Stats.Hosts {
		row := []string{h.Host, term.Count(h.Pages), term.Count(denied[h.Host]), term.Delay(h.CrawlDelay), term.Delay(h.Delay), cmp.Or(term.Delay(h.MinGap), "-")}
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

func (r *summary) printSitemaps(w io.Writer, width int) {
	s := r.ending.Stats.Sitemaps
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

func (r *summary) printDenials(w io.Writer, l layout) {
	t := term.NewTable(term.Column{}, term.Column{})
	for _, d := range sorted(r.denials) {
		t.Row(d.URL, why(d))
	}
	printList(w, l.width, l.paint.Paint(term.Yellow, "Denied"), len(r.denials), t)
}

func (r *summary) printFailures(w io.Writer, l layout) {
	t := term.NewTable(term.Column{}, term.Column{})
	for _, f := range sorted(r.failures) {
		t.Row(f.URL, f.why())
	}
	printList(w, l.width, l.paint.Paint(term.Red, "Failed"), len(r.failures), t)
}

func printList(w io.Writer, width int, title string, n int, list *term.Table) {
	if n > 0 {
		fmt.Fprintf(w, "\n%s (%s):\n", title, term.Count(n))
		list.Print(w, width)
	}
}
