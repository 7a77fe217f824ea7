package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// An answer is what is to be said about one URL.
type answer struct {
	url      string
	source   string    // where the rules come from
	readings []reading // one for each dialect of the question, in its order
}

// A reading is what one dialect says.
type reading struct {
	dialect string
	allowed bool
	because string
	group   string        // as the file names it; empty: none applies
	delay   time.Duration // what the group asks for; 0: nothing
}

func (a answer) print(w io.Writer, q *question) {
	fmt.Fprintf(w, "%s is %s to %s.\nrobots.txt: %s\n\n", a.url, verdict(a.readings[0].allowed), q.tokens[0], a.source)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  dialect\tverdict\tgroup\tcrawl delay\tbecause")
	for _, r := range a.readings {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", r.dialect, verdict(r.allowed), orDash(r.group), delay(r.delay), r.because)
	}
	t.Flush()
	fmt.Fprintln(w)
}

// printIssues prints what is not read as the author of the file may think.
func printIssues(w io.Writer, q *question, issues []dialect.Issue) {
	if len(issues) == 0 {
		return
	}
	fmt.Fprintf(w, "%s, as %s reads it:\n", q.robots, q.dialects[0])
	for _, issue := range issues {
		fmt.Fprintf(w, "  %v\n", issue)
	}
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

func delay(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
