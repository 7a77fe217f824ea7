package crawl

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

const reportUsage = `Usage: collyrobots report [FILE]

Prints the report of a crawl again, from the lines that "collyrobots crawl -json" has printed. Without
FILE, or with -, it reads standard input. If the last line is missing, because the crawl was killed,
the report has no table of the hosts.

The exit status is that of the crawl, or 2 if the lines could not be read.`

// RunReport runs the command report with the arguments after its name and returns the exit status.
func RunReport(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, reportUsage)
		return statusOK
	}
	if err == nil && flags.NArg() > 1 {
		err = fmt.Errorf("want one file, not %d", flags.NArg())
	}
	if err != nil {
		return fail(stderr, "report", err)
	}
	r, err := readReport(flags.Arg(0), stdin)
	if err == nil {
		err = r.writeText(stdout, false)
	}
	switch {
	case err != nil:
		return fail(stderr, "report", err)
	case !r.worked():
		return statusNegative
	}
	return statusOK
}

// readReport reads the JSON lines of a crawl from a file, or from stdin if the name is "" or "-".
func readReport(name string, stdin io.Reader) (*summary, error) {
	if name == "" || name == "-" {
		return parseReport(stdin, "standard input")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseReport(file, name)
}

// parseReport reads the JSON lines of a crawl. An end without a newline is a line that a kill has
// cut off.
func parseReport(in io.Reader, name string) (*summary, error) {
	r := newReport(new(job))
	r.interrupted = true // until the last line says something else
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && number > 1 {
			return r, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s has no lines of a crawl; collyrobots crawl -json prints them", term.Safe(name))
		}
		if err != nil {
			return nil, err
		}
		var l record
		if err := json.Unmarshal(line, &l); err != nil || !r.add(l, number == 1) {
			return nil, fmt.Errorf("%s, line %d: not a line of collyrobots crawl -json", term.Safe(name), number)
		}
	}
}

// add adds a record to the report. It reports whether the record is one of a crawl.
func (r *summary) add(l record, first bool) bool {
	if first {
		r.began = l.Time
	}
	r.ended = l.Time
	switch {
	case l.Kind == kindPage:
		r.page(l.Status)
	case l.Kind == kindFailed:
		r.fail(failure{URL: l.URL, Status: l.Status, Error: l.Error})
	case l.Kind == kindDenied && l.Decision != nil:
		r.deny(*l.Decision)
	case l.Kind == kindEnd && l.End != nil:
		r.end(l.End)
	default:
		return false
	}
	return true
}

// end sets what the last line says.
func (r *summary) end(e *ending) {
	r.interrupted = e.Interrupted
	r.full = e.Full
	r.startFailed = e.StartFailed
	r.maxPerHost = e.MaxPerHost
	r.stopRefused = e.StopRefused
	r.began = e.Began
	r.ended = e.Ended
	r.left = e.Left
	r.stats = e.Stats
	for _, f := range e.Robots {
		r.robots[f.URL] = f
	}
}
