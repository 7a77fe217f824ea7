package crawl

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

const reportUsage = `Usage: collyrobots report [FILE]

Prints the report of a crawl again, from the lines that "collyrobots crawl -json" has printed. Without
FILE, or with -, it reads standard input. If the last line is missing, because the crawl was killed,
the report has no table of the hosts.

The exit status is that of the crawl, or 2 if the lines could not be read.`

// RunReport runs the command report with the arguments after its name and returns the exit status.
func RunReport(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	err := cli.Parse(flags, reportUsage, args, stderr)
	if err == nil && flags.NArg() > 1 {
		err = fmt.Errorf("want one file, not %d", flags.NArg())
	}
	r := new(summary)
	if err == nil {
		r, err = readReport(flags.Arg(0), stdin)
	}
	if err == nil {
		err = r.writeText(stdout, false)
	}
	switch {
	case err != nil:
		return cli.Fail(stderr, "report", err)
	case !r.worked():
		return cli.Negative
	}
	return cli.OK
}

// readReport reads the JSON lines of a crawl from a file, or from stdin if the name is "" or "-".
func readReport(name string, stdin io.Reader) (*summary, error) {
	in, err := input.Open(cmp.Or(name, "-"), stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if name == "" || name == "-" {
		name = "standard input"
	}
	return parseReport(in, name)
}

// parseReport reads the JSON lines of a crawl. An end without a newline is a line that a kill has
// cut off.
func parseReport(in io.Reader, name string) (*summary, error) {
	r := newReport(new(job))
	r.ending.Interrupted = true // until the last line says something else
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
		r.ending.Began = l.Time
	}
	r.ending.Ended = l.Time
	switch {
	case l.Kind == kindPage:
		r.page(l.Status)
	case l.Kind == kindFailed:
		r.fail(failure{URL: l.URL, Status: l.Status, Error: l.Error})
	case l.Kind == kindDenied && l.Decision != nil:
		r.deny(*l.Decision)
	case l.Kind == kindEnd && l.End != nil:
		r.ending = *l.End
		for _, f := range l.End.Robots {
			r.robots[f.URL] = f
		}
	default:
		return false
	}
	return true
}
