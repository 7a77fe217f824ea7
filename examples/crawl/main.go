// Command crawl crawls web sites, obeys their robots.txt files, and prints a report.
//
//	crawl [flags] [URL...]
//
// It follows the links within each site and fetches the pages in the site's sitemaps. It sends at
// most four requests a second to a host unless -delay is shorter. Without URLs it starts a few demo
// sites on the loopback interface and crawls these, so it sends nothing to other machines.
//
// Progress goes to standard error. On a terminal, it is a few lines that are rewritten. Otherwise
// it is a line for each page and, while all pages are waiting, a line from time to time that names
// the host, the time left and the reason. The report goes to standard output, as text or as JSON
// (-json). Ctrl-C and SIGTERM end the crawl, and the report then covers the pages until that time.
//
// With -cache DIR the robots.txt files and the pages that were found are kept for the next run, and
// -resume continues where the last run stopped, even if it was killed. If the last run has fetched
// all of its pages, -resume crawls again, without the sitemaps that have not changed. With -http
// ADDR a page in a browser shows the crawl while it runs.
//
// The exit status is 0 if each start URL got a response or was denied by its robots.txt. It is 1 if
// not, if the crawl was interrupted, or if the report could not be written. It is 2 if the crawl
// could not start because of the arguments.
//
//	go install github.com/collyrobots/collyrobots/examples/crawl@latest
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	j, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = j.open()
	}
	if err != nil {
		term.Errors(stderr, "crawl", err)
		return 2
	}
	p := newProgress(stderr)
	if len(j.urls) == 0 {
		sites, err := demo.Start()
		if err != nil {
			term.Errors(stderr, "crawl: demo sites", err)
			return 1
		}
		defer sites.Close()
		j.urls = demo.Starts()
		j.transport = sites.Transport()
		p.display.Printf("No URLs given: crawling %d demo sites on this machine.", len(j.urls))
	}
	r, err := crawl(ctx, j, p)
	err = errors.Join(err, j.close())
	if r == nil {
		term.Errors(stderr, "crawl", err)
		return 2
	}
	err = errors.Join(err, r.write(stdout, j))
	if err != nil {
		term.Errors(stderr, "crawl", err)
	}
	if err != nil || !r.worked() {
		return 1
	}
	return 0
}
