// Command crawl crawls web sites as their robots.txt files allow, and tells what it did.
//
//	crawl [flags] [URL...]
//
// It follows the links within each site, and the site's sitemaps, asking no host more often than
// four times a second. Without URLs it starts a few sites of its own on the loopback interface and
// crawls those; nothing leaves the machine.
//
// Progress goes to standard error: on a terminal a few lines that are rewritten, elsewhere a line
// for each page, and one now and then while there is nothing to do but wait, which says for which
// host, how long, and why. The report goes to standard output, as a text or with -json. Ctrl-C and
// SIGTERM end the crawl, and the report tells of what was done until then.
//
// With -cache DIR what was learnt of robots.txt files is kept for the next run, and -resume goes on
// with the sitemaps where the last run has stopped. With -http ADDR a page shows the crawl in a
// browser while it runs.
//
// The exit status is 0 if the crawl worked: every start URL was answered, or denied by its
// robots.txt. It is 1 if not, if the crawl was interrupted, or if the report could not be written,
// and 2 if the crawl could not begin: the arguments make no sense.
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
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program; it returns its exit status.
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
			term.Errors(stderr, "crawl: the demo sites", err)
			return 1
		}
		defer sites.Close()
		j.urls, j.transport = demo.Starts(), sites.Transport()
		p.display.Printf("No URLs given: crawling %d demo sites on this machine.", len(j.urls))
	}
	r, err := crawl(ctx, j, p)
	err = errors.Join(err, j.close())
	if r == nil {
		term.Errors(stderr, "crawl", err)
		return 2
	}
	if err = errors.Join(err, r.write(stdout, j)); err != nil {
		term.Errors(stderr, "crawl", err)
	}
	if err != nil || !r.worked() {
		return 1
	}
	return 0
}
