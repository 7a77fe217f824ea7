// Command plan says how long a crawl will take, before it is begun.
//
//	plan [flags] SITE...
//	plan [flags] -hosts FILE
//
// A site is the name of a host, or the URL of a page of it. FILE has one in each line; - is
// standard input. Of each host it reads robots.txt, as each dialect does, and the sitemaps, as
// politely as the crawl will be, many hosts side by side. It prints how many pages they list, which
// of them are denied, the delay of each host and the line that asks for it, how long all take at
// which number of hosts side by side, which hosts decide that, and what would help. Nothing but
// robots.txt and sitemaps is asked for. Pages of example.com and of www.example.com are those of
// one site.
//
// The plan goes to standard output, progress to standard error. After Ctrl-C the plan is of what
// was known until then.
//
// The exit status is 0 if there is a plan, 1 if it was interrupted or no host has answered, and 2
// if the arguments make no sense.
//
//	go install github.com/collyrobots/collyrobots/examples/plan@latest
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A job is what is to be planned.
type job struct {
	sites   []site
	skipped []skippedLine
	repeats int // lines that name a host which was named before

	dialect   dialect.Dialect
	agent     string        // the User-Agent header
	since     time.Time     // pages that have not changed since are not crawled; zero: all are
	max       int           // most pages of a host; 0: all
	minDelay  time.Duration // between two requests to one host, whatever it asks for
	parallel  int           // hosts looked at side by side
	look      time.Duration // most to look at one host
	rows      int           // most hosts in the table; 0: all
	json      bool
	transport http.RoundTripper
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	j, err := parse(args, stdin, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return fail(stderr, err, 2)
	}
	j.tellSkipped(stderr)
	p, err := j.plan(ctx, stderr)
	if err == nil {
		err = p.write(stdout, j)
	}
	switch {
	case err != nil:
		return fail(stderr, err, 1)
	case p.Interrupted:
		term.Fprintf(stderr, "plan: interrupted after %d of %s\n", p.looked(), term.Number(len(j.sites), "host"))
		return 1
	case p.looked() == 0:
		return 1
	}
	return 0
}

func fail(stderr io.Writer, err error, status int) int {
	term.Errors(stderr, "plan", err)
	return status
}

// parse reads the command line and the file with the hosts.
func parse(args []string, stdin io.Reader, stderr io.Writer) (*job, error) {
	j := new(job)
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	name := flags.String("dialect", "rfc9309", "whose reading of robots.txt the crawl will obey: "+term.List(dialect.All()))
	file := flags.String("hosts", "", "`file` with a host, or the URL of a page, in each line; - is standard input")
	since := flags.String("since", "", "leave out pages that have not changed since a `day` such as 2026-01-31, or for a time such as 7d or 36h")
	flags.StringVar(&j.agent, "agent", "ExampleBot/1.0 (+https://github.com/collyrobots/collyrobots)", "the User-Agent `header` of the crawl, which names it to robots.txt")
	flags.IntVar(&j.max, "max", 0, "crawl at most so many pages of a host; 0: all")
	flags.DurationVar(&j.minDelay, "delay", 250*time.Millisecond, "between two requests to one host, where it does not ask for more")
	flags.IntVar(&j.parallel, "parallel", 32, "hosts looked at side by side")
	flags.DurationVar(&j.look, "look", time.Minute, "most to look at one host; sitemaps not read by then are left out")
	flags.IntVar(&j.rows, "rows", 40, "most hosts in the table, those that take longest first; 0: all")
	flags.BoolVar(&j.json, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return nil, err
	}
	var known bool
	j.dialect, known = dialect.ByName(*name)
	switch {
	case !known:
		return nil, fmt.Errorf("-dialect %s: unknown; there are %s", *name, term.List(dialect.All()))
	case j.max < 0, j.rows < 0:
		return nil, errors.New("-max and -rows: a number of pages or hosts, 0 for all")
	case j.minDelay < time.Millisecond:
		return nil, fmt.Errorf("-delay %v: at least 1ms, for how long pages take otherwise is not known", j.minDelay)
	case j.parallel < 1:
		return nil, fmt.Errorf("-parallel %d: at least 1 is needed", j.parallel)
	case j.look < time.Second:
		return nil, fmt.Errorf("-look %v: at least 1s is needed", j.look)
	}
	var err error
	if j.since, err = parseSince(*since, time.Now()); err != nil {
		return nil, err
	}
	j.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second, IdleConnTimeout: 30 * time.Second,
	}
	return j, j.readSites(flags.Args(), *file, stdin)
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, `Usage: plan [flags] SITE...
       plan [flags] -hosts FILE

Says how long a polite crawl will take, which hosts decide that, and what would help.
It asks for robots.txt and sitemaps alone. A site is a host, or the URL of a page.`)
	fmt.Fprintln(w)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// parseSince reads a day, or a time before now.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return day, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("-since %s: want a day such as 2026-01-31, or a time such as 7d or 36h", s)
}
