// Package plan estimates how long a crawl will take. It is the command collyrobots plan.
//
// For each host, it reads robots.txt and the sitemaps. It obeys the delay of the host, checks several
// hosts in parallel, and requests nothing else. Pages of example.com and of www.example.com belong to one
// site.
package plan

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

const usage = `Usage: collyrobots plan [flags] SITE...
       collyrobots plan [flags] -frontier DIR

Prints how long a crawl will take, which hosts determine that, and what would make it shorter.
It requests only robots.txt and sitemaps. A site is a host, or the URL of a page. The flags -hours,
-jitter and -max-rate are for the planned crawl; the plan itself is made at once.`

// A job has the arguments of the program.
type job struct {
	sites []site

	pace      input.Pace
	hours     *window       // the hours of the day when the crawl sends requests; nil means all
	agent     string        // the User-Agent header
	max       int           // the maximum number of pages per host; 0 means all
	parallel  int           // the number of hosts that are checked in parallel
	look      time.Duration // the time limit for the check of a host
	frontier  string        // the folder of the frontier whose pages are planned; "" if there is none
	rows      int           // the maximum number of hosts in the table; 0 means all
	json      bool
	transport http.RoundTripper

	began        time.Time // when the plan was begun, and the planned crawl begins
	frontierTime time.Time // when the counts of waiting pages were written
}

// Run runs the command with the arguments after its name and returns its exit status: 0 if there is
// a plan, or no page waits in the frontier; 1 if it was interrupted; and 2 if the arguments are invalid
// or no host has answered. The plan goes to stdout, and progress to stderr. If ctx ends, the plan covers the hosts that were
// checked until then.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	j, err := parse(args, stdin, stderr)
	if errors.Is(err, errNothingWaits) {
		cli.Fail(stderr, "plan", err)
		return cli.OK
	}
	var p *plan
	if err == nil {
		p, err = j.plan(ctx, stderr)
	}
	if err == nil {
		err = p.write(stdout, j)
	}
	switch {
	case err != nil:
		return cli.Fail(stderr, "plan", err)
	case p.Interrupted:
		term.Fprintf(stderr, "collyrobots plan: interrupted after %d of %s\n", p.answered(), term.Number(len(j.sites), "host"))
		return cli.Negative
	case p.answered() == 0:
		return cli.Failed
	}
	return cli.OK
}

// parse parses the command line, and reads the list of the hosts.
func parse(args []string, stdin io.Reader, stderr io.Writer) (*job, error) {
	j := &job{began: time.Now()}
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	j.pace.Define(flags)
	from := flags.String("from", "", "read more sites from this `file`, one in a line; - is standard input, as it is among the sites")
	flags.StringVar(&j.frontier, "frontier", "", "plan for the pages that wait in the frontier in this `folder`")
	flags.StringVar(&j.agent, "agent", "ExampleBot/1.0 (+https://github.com/collyrobots/collyrobots)", "User-Agent `header` of the crawl; it contains the name to look for in robots.txt")
	flags.IntVar(&j.max, "max", 0, "crawl at most this `number` of pages per host (MaxPagesPerHost); 0 means all")
	flags.IntVar(&j.parallel, "parallel", 256, "`number` of hosts that are checked in parallel")
	flags.DurationVar(&j.look, "look", time.Minute, "time limit for the check of one host; sitemaps that are not read by then are left out")
	flags.IntVar(&j.rows, "rows", 40, "maximum `number` of hosts in the table, the longest first; 0 means all")
	flags.BoolVar(&j.json, "json", false, "print JSON; durations are numbers of seconds")
	if err := cli.Parse(flags, usage, args, stderr); err != nil {
		return nil, err
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	j.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second, IdleConnTimeout: 30 * time.Second,
	}
	if j.frontier == "" {
		return j, j.readSites(flags.Args(), *from, stdin)
	}
	if *from != "" || flags.NArg() > 0 {
		return nil, errors.New("-frontier takes all sites from the folder; remove -from and the other arguments")
	}
	return j, j.readFrontier(j.frontier)
}

// check returns the first fault of the flags.
func (j *job) check() error {
	switch {
	case j.rows < 0:
		return fmt.Errorf("-rows %d is negative; 0 means all hosts", j.rows)
	case j.pace.Delay < time.Millisecond:
		return fmt.Errorf("-delay %v is less than 1ms; without a delay, the time for a page is not known", j.pace.Delay)
	case j.parallel < 1:
		return fmt.Errorf("-parallel %d is less than 1", j.parallel)
	case j.look < time.Second:
		return fmt.Errorf("-look %v is less than 1s", j.look)
	}
	options, err := j.pace.Options()
	if err != nil {
		return err
	}
	robots, err := collyrobots.New(append(options, collyrobots.MaxPagesPerHost(j.max))...) // checks the options
	if err != nil {
		return err
	}
	hours, _ := j.pace.Hours()
	j.hours = newWindow(hours)
	return robots.Close()
}
