// Package crawl crawls web sites, obeys their robots.txt files, and prints a report. It is the
// command collyrobots crawl, and the command collyrobots report.
//
// It follows the links within each site and fetches the pages in the site's sitemaps. It sends at
// most four requests a second to a host unless -delay is shorter.
//
// Progress goes to standard error. On a terminal, it is a few lines that are rewritten. Otherwise
// it is a line for each page and, while all pages are waiting, a line from time to time that names
// the host, the time left and the reason. The report goes to standard output, or with -json a line
// of JSON for each page. Ctrl-C and SIGTERM end the crawl, and the report then covers the pages
// until that time.
//
// With -cache DIR the robots.txt files and the pages that were found are kept for the next run, and
// -resume continues where the last run stopped, even if it was killed. If the last run has fetched
// all of its pages, -resume crawls again, without the sitemaps that have not changed. With -http
// ADDR a page in a browser shows the crawl while it runs, and how it ended until Ctrl-C.
package crawl

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// The exit statuses.
const (
	statusOK       = 0
	statusNegative = 1 // a start URL could not be fetched, or the crawl was interrupted
	statusFailed   = 2 // the crawl could not start, or its report is lost
)

// Run runs the command crawl with the arguments after its name and returns the exit status. It is 0
// if each start URL was fetched or was denied by its robots.txt. It is 1 if not, or if the crawl
// was interrupted. It is 2 if the crawl could not start because of the arguments, or if the report
// could not be written.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	j, err := parse(args, stdin, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return statusOK
	}
	p := newProgress(stderr)
	if err == nil {
		err = j.open(slog.New(&warnings{w: p}))
	}
	if err != nil {
		return fail(stderr, "crawl", err)
	}
	if j.json {
		j.lines = newLines(stdout)
	}
	r, err := crawl(ctx, j, p)
	err = errors.Join(err, j.close())
	if j.page != nil {
		defer j.page.await(ctx, stderr)
	}
	if r != nil {
		err = errors.Join(err, r.write(stdout, j))
	}
	switch {
	case err != nil:
		return fail(stderr, "crawl", err)
	case !r.worked():
		return statusNegative
	}
	return statusOK
}

// fail prints an error of a command and returns the exit status. It prints nothing if the reader of
// the output has closed its end of a pipe.
func fail(stderr io.Writer, command string, err error) (status int) {
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		term.Errors(stderr, "collyrobots "+command, err)
	}
	return statusFailed
}
