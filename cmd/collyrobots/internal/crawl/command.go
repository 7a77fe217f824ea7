// Package crawl crawls web sites, obeys their robots.txt files, and prints a report. It is the
// command collyrobots crawl, and the command collyrobots report.
//
// Progress goes to standard error, and the report to standard output, or with -json a line of JSON for
// each page. docs/tools/command.md describes the flags.
package crawl

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
)

// Run runs the command crawl with the arguments after its name and returns the exit status. It is 0
// if each start URL was fetched or was denied by its robots.txt. It is 1 if not, or if the crawl
// was interrupted. It is 2 if the crawl could not start because of the arguments, or if the report
// could not be written.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	j, err := parse(args, stdin, stderr)
	p := newProgress(stderr)
	if err == nil {
		err = j.open(slog.New(&warnings{w: p}))
	}
	if err != nil {
		return cli.Fail(stderr, "crawl", err)
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
		return cli.Fail(stderr, "crawl", err)
	case !r.worked():
		return cli.Negative
	}
	return cli.OK
}
