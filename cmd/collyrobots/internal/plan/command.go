// Package plan estimates how long a crawl will take. It is the command collyrobots plan.
//
// For each host, it reads robots.txt in each dialect, and the sitemaps. It obeys the delay of the
// host, checks several hosts in parallel, and requests nothing except robots.txt and sitemaps. Pages
// of example.com and of www.example.com belong to one site.
//
// The plan contains the number of pages that the sitemaps list and that robots.txt denies, the
// delay of each host with the line that asks for it, the time for the crawl by the number of hosts
// that are crawled in parallel, the hosts that determine this time, and suggestions to make it
// shorter.
package plan

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// A job has the arguments of the program.
type job struct {
	sites   []site
	skipped []skippedLine
	repeats int // the number of lines with a host of an earlier line

	dialect   dialect.Dialect
	agent     string        // the User-Agent header
	since     time.Time     // only pages that have changed since then are crawled; if zero, all are
	max       int           // the maximum number of pages per host; 0 means all
	minDelay  time.Duration // the minimum delay between two requests to one host
	jitter    float64       // gaps are longer than the delay by a random share of it, up to this
	maxRate   float64       // the requests per second to all hosts together; 0 means no limit
	hours     *window       // the hours of the day when the crawl sends requests; nil means all
	paceBy    collyrobots.Grouping
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
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	j, err := parse(args, stdin, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if errors.Is(err, errNothingWaits) {
		return fail(stderr, err, 0)
	}
	if err != nil {
		return fail(stderr, err, 2)
	}
	j.printSkipped(stderr)
	p, err := j.plan(ctx, stderr)
	if err == nil {
		err = p.write(stdout, j)
	}
	switch {
	case err != nil:
		return fail(stderr, err, 2)
	case p.Interrupted:
		term.Fprintf(stderr, "collyrobots plan: interrupted after %d of %s\n", p.answered(), term.Number(len(j.sites), "host"))
		return 1
	case p.answered() == 0:
		return 2
	}
	return 0
}

func fail(stderr io.Writer, err error, status int) int {
	term.Errors(stderr, "collyrobots plan", err)
	return status
}

// The texts of flags that are not stored as they are.
type texts struct {
	dialect, from, since, hours, zone, paceBy string
}

// parse parses the command line, and reads the file with the hosts.
func parse(args []string, stdin io.Reader, stderr io.Writer) (*job, error) {
	j := &job{began: time.Now()}
	t := new(texts)
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Run prints the errors
	j.define(flags, t)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return nil, err
	}
	if err := j.set(t); err != nil {
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
		return j, j.readSites(flags.Args(), t.from, stdin)
	}
	if t.from != "" || flags.NArg() > 0 {
		return nil, errors.New("-frontier takes all sites from the folder; remove -from and the other arguments")
	}
	return j, j.readFrontier(j.frontier)
}

// define defines the flags.
func (j *job) define(flags *flag.FlagSet, t *texts) {
	flags.StringVar(&t.dialect, "dialect", "rfc9309", "read robots.txt in this `dialect`: "+term.List(dialect.All()))
	flags.StringVar(&t.from, "from", "", "read the sites from this `file`, one host or URL in each line; - means standard input")
	flags.StringVar(&j.frontier, "frontier", "", "plan for the pages that wait in the frontier in this `folder`")
	flags.StringVar(&t.since, "since", "", "leave out pages that have not changed since a `day` such as 2026-01-31, or for a time such as 7d or 36h")
	flags.StringVar(&j.agent, "agent", "ExampleBot/1.0 (+https://github.com/collyrobots/collyrobots)", "User-Agent `header` of the crawl; it contains the name to look for in robots.txt")
	flags.IntVar(&j.max, "max", 0, "crawl at most this `number` of pages per host (MaxPages); 0 means all")
	flags.DurationVar(&j.minDelay, "delay", 250*time.Millisecond, "minimum delay between two requests to one host; hosts may ask for a longer one")
	flags.Float64Var(&j.jitter, "jitter", 0, "the crawl makes each gap longer than the delay by a random `share` of it, up to this one (Jitter); the check itself does not")
	flags.Float64Var(&j.maxRate, "max-rate", 0, "the crawl sends at most this `number` of requests per second to all hosts together (MaxRate); the check itself is not limited, and 0 means no limit")
	flags.StringVar(&t.hours, "hours", "", "the crawl sends requests only in these `hours` of the day, such as 22:00-06:00 (CrawlHours); the check itself runs now")
	flags.StringVar(&t.paceBy, "pace-by", "host", "use one pace for each `unit`: host, domain or address (PaceBy)")
	flags.StringVar(&t.zone, "zone", "Local", "the time `zone` of -hours, such as Europe/Berlin")
	flags.IntVar(&j.parallel, "parallel", 256, "`number` of hosts that are checked in parallel")
	flags.DurationVar(&j.look, "look", time.Minute, "time limit for the check of one host; sitemaps that are not read by then are left out")
	flags.IntVar(&j.rows, "rows", 40, "maximum `number` of hosts in the table, the longest first; 0 means all")
	flags.BoolVar(&j.json, "json", false, "print JSON; durations are numbers of seconds")
}

// set sets the fields that follow from the texts of flags.
func (j *job) set(t *texts) (err error) {
	j.dialect, err = input.Dialect(t.dialect)
	if err != nil {
		return err
	}
	j.paceBy, err = input.Grouping(t.paceBy)
	if err != nil {
		return err
	}
	j.since, err = parseSince(t.since, j.began)
	if err != nil {
		return err
	}
	j.hours, err = parseWindow(t.hours, t.zone)
	return err
}

// check returns the first fault of the flags.
func (j *job) check() error {
	switch {
	case j.max < 0:
		return fmt.Errorf("-max %d is negative; 0 means all pages", j.max)
	case j.rows < 0:
		return fmt.Errorf("-rows %d is negative; 0 means all hosts", j.rows)
	case j.minDelay < time.Millisecond:
		return fmt.Errorf("-delay %v is less than 1ms; without a delay, the time for a page is not known", j.minDelay)
	case !(j.jitter >= 0 && j.jitter <= 1):
		return fmt.Errorf("-jitter %v is not between 0 and 1", j.jitter)
	case !(j.maxRate >= 0):
		return fmt.Errorf("-max-rate %v is negative or not a number; 0 means no limit", j.maxRate)
	case j.parallel < 1:
		return fmt.Errorf("-parallel %d is less than 1", j.parallel)
	case j.look < time.Second:
		return fmt.Errorf("-look %v is less than 1s", j.look)
	}
	return nil
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, `Usage: collyrobots plan [flags] SITE...
       collyrobots plan [flags] -from FILE
       collyrobots plan [flags] -frontier DIR

Prints how long a crawl will take, which hosts determine that, and what would make it shorter.
It requests only robots.txt and sitemaps. A site is a host, or the URL of a page.`)
	fmt.Fprintln(w)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// parseSince parses a day, or a time before now.
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
	return time.Time{}, fmt.Errorf("-since %s is invalid; use a day such as 2026-01-31, or a time such as 7d or 36h", s)
}
