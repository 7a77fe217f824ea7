package audit

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// A Report is the result of Verify.
type Report struct {
	Logs   []LogReport   // one for each folder
	Checks []CheckReport // in the order of the Check constants

	// Findings are the faults, in the order of the entries. There are at most 1,000 of each check;
	// CheckReport.Faults counts all of them.
	Findings []Finding
	// Exceptions are deviations from a robots.txt that an option of the operator causes, such as
	// MaxCrawlDelay or IgnoreRobots: one for each host and option. They are no faults, because the log
	// cannot show whether the owner has agreed.
	Exceptions []Finding
	// Permissions are those of IgnoreRobots, in the order of the first requests: one for each host and
	// permission. There are at most 1,000.
	Permissions []PermissionReport
}

// A PermissionReport says how often a permission of IgnoreRobots was used for a host.
type PermissionReport struct {
	report.Permission
	Host     string
	Requests int // requests that were sent without robots.txt because of the permission
}

// String returns the permission and its use in one line.
func (p PermissionReport) String() string {
	return fmt.Sprintf("%s: %d requests by %v", p.Host, p.Requests, p.Permission)
}

// A LogReport describes one log.
type LogReport struct {
	Dir      string
	Origin   string    // the name in its checkpoints; "" if it has none
	Signed   uint64    // the number of entries that the checkpoint covers
	Unsigned uint64    // the number of entries after it
	First    time.Time // of the first event; zero if there are none
	Last     time.Time // of the last event
	Starts   int       // requests that were sent
	Denied   int       // requests that were not sent
	Open     int       // requests without an end
	Closed   bool      // whether the last process has called Close
	OwnKey   bool      // whether the key was only found in the folder, so that it proves nothing

	// Readings are the dialects and product tokens of the decisions that could be repeated, in the
	// order of their first decisions. There are at most 100.
	Readings []Reading
}

// A Reading says how a crawl has read robots.txt.
type Reading struct {
	Dialect dialect.Dialect
	Token   string // Decision.Token
}

// maxReadings bounds LogReport.Readings.
const maxReadings = 100

// add adds a reading, unless l has it.
func (l *LogReport) add(r Reading) {
	r.Token = shorten(r.Token)
	if slices.Contains(l.Readings, r) || len(l.Readings) >= maxReadings {
		return
	}
	l.Readings = append(l.Readings, r)
}

// String returns the reading as a sentence.
func (r Reading) String() string {
	names := "all crawlers"
	if r.Token != "" {
		names = r.Token
	}
	return fmt.Sprintf("The crawl has read robots.txt in the dialect %v, with the rules for %s.", r.Dialect, names)
}

// A Check is one of the things that Verify checks. It is a stable short code.
type Check string

const (
	CheckRules    Check = "rules"    // no request was sent that robots.txt denies, and each decision is that of the dialect
	CheckDelay    Check = "delay"    // no gap between two requests to a host was shorter than the delay in force
	CheckFresh    Check = "fresh"    // each robots.txt was as fresh as its dialect requires
	CheckComplete Check = "complete" // each request has a start and an end, no event is missing, and the clock did not jump
	CheckTree     Check = "tree"     // no entry was changed, removed, moved or inserted
)

// checks has the meaning of each check, in the order of the report.
var checks = []struct {
	check Check
	text  string
}{
	{CheckRules, "every request was allowed, and every decision can be repeated"},
	{CheckDelay, "no gap was shorter than the delay in force"},
	{CheckFresh, "every robots.txt was fresh enough"},
	{CheckComplete, "no event is missing, and the clock did not jump"},
	{CheckTree, "no entry was changed, removed, moved or inserted"},
}

// A CheckReport says how a check ended.
type CheckReport struct {
	Check     Check
	Checked   int // how many things were checked: requests, gaps, decisions, entries
	Unchecked int // how many could not be checked: the log has only hashes, or a transport did not report a start in time
	Faults    int
}

// A Finding is a fault or an exception.
type Finding struct {
	Check Check
	Dir   string    // the folder of the log
	Entry uint64    // the index of the entry
	Time  time.Time // of the event; zero if there is none
	Host  string
	URL   string
	Text  string
}

// maxFindings bounds the Findings of each check.
const maxFindings = 1000

// shorten bounds a text of a Finding, which may come from a hostile log.
func shorten(text string) string {
	const most = 4 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// OK reports whether there are no faults.
func (r *Report) OK() bool {
	for _, c := range r.Checks {
		if c.Faults > 0 {
			return false
		}
	}
	return true
}

// result returns the result of the check in one or two words.
func (c CheckReport) result() string {
	if c.Faults > 0 {
		return fmt.Sprintf("%d faults", c.Faults)
	}
	return "ok"
}

// check returns the report of one check.
func (r *Report) check(name Check) *CheckReport {
	for i := range r.Checks {
		if r.Checks[i].Check == name {
			return &r.Checks[i]
		}
	}
	panic("audit: unknown check " + string(name))
}

// add adds a fault.
func (r *Report) add(f Finding) {
	c := r.check(f.Check)
	c.Faults++
	if c.Faults <= maxFindings {
		f.URL = shorten(f.URL)
		f.Host = shorten(f.Host)
		f.Text = shorten(f.Text)
		r.Findings = append(r.Findings, f)
	}
}

// String returns the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: entry %d of %s", f.Check, f.Entry, f.Dir)
	if !f.Time.IsZero() {
		fmt.Fprintf(&b, ", %s", f.Time.UTC().Format("2006-01-02 15:04:05.000"))
	}
	if f.URL != "" {
		fmt.Fprintf(&b, ", %s", f.URL)
	} else if f.Host != "" {
		fmt.Fprintf(&b, ", %s", f.Host)
	}
	return b.String() + ": " + f.Text
}

// limits says what a report does not prove.
const limits = `What this proves: the entries that a checkpoint covers are those that the holder of the key signed. If another
party holds the checkpoint, they cannot have been changed since then.
What this does not prove: that every request was logged, and that the times are true. Dates that servers sent
are compared with the clock of the log.
`

// WriteText writes the report as text: a table of the checks, the exceptions, the faults, and what
// the report does not prove.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, l := range r.Logs {
		fmt.Fprintf(&b, "%s: %d entries (%d after the last checkpoint), %d requests, %d denials", l.Dir, l.Signed+l.Unsigned, l.Unsigned, l.Starts, l.Denied)
		if !l.First.IsZero() {
			fmt.Fprintf(&b, ", %s to %s", l.First.UTC().Format(time.DateTime), l.Last.UTC().Format(time.DateTime))
		}
		b.WriteString("\n")
		r.writeNotes(&b, l)
	}
	b.WriteString("\n")
	for i, c := range r.Checks {
		fmt.Fprintf(&b, "%-9s %-13s %9d checked %9d not checkable   %s\n", c.Check, c.result(), c.Checked, c.Unchecked, checks[i].text)
	}
	writeFindings(&b, "Exceptions that options of the operator caused", r.Exceptions)
	writePermissions(&b, r.Permissions)
	writeFindings(&b, "Faults", r.Findings)
	b.WriteString("\n" + limits)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeNotes writes what is unusual about a log, but no fault.
func (r *Report) writeNotes(b *strings.Builder, l LogReport) {
	for _, reading := range l.Readings {
		fmt.Fprintf(b, "  %v\n", reading)
	}
	if !l.Closed {
		b.WriteString("  The log does not end with Close: the process was killed, or is still running.\n")
	}
	if l.Open > 0 {
		fmt.Fprintf(b, "  %d requests have no end.\n", l.Open)
	}
	if l.OwnKey {
		b.WriteString("  The key was found in the folder itself. Compare key.pub with the key that you know.\n")
	}
}

func writePermissions(b *strings.Builder, all []PermissionReport) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nPermissions to ignore robots.txt:\n")
	for _, p := range all {
		fmt.Fprintf(b, "  %v\n", p)
	}
}

func writeFindings(b *strings.Builder, title string, findings []Finding) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, f := range findings {
		fmt.Fprintf(b, "  %v\n", f)
	}
}
