// Command distributed crawls demo sites with several processes that share a Redis. It kills one of
// the processes with -9 during the crawl, and prints a report from the access logs of the sites.
//
//	go run . [-redis ADDR] [-workers N] [-kill D] [-sites N] [-pages N]
//
// The URLs are in a hostqueue, which gives the hosts of a worker to other workers if it dies. The
// robots.txt files, and the times when hosts may get their next requests, are in store/redisstore.
// To write a crawler, start from the worker (worker.go). The other files contain the demo: a Redis,
// the sites, the processes, and the report.
//
// With -sites, the workers crawl generated sites. The report compares their requests per second
// with the number that the delays of the sites allow.
//
// The command sends nothing to other machines and leaves nothing behind: when it ends, the workers
// and the Redis that it has started end, and its directory is removed. With -redis, its keys are
// removed from that Redis.
//
// The exit status is 0 if each page was fetched, no page was fetched twice except after a worker
// was killed, and each delay was kept. It is 2 if the arguments are invalid, and 1 otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // the errors of go-redis contain the same information
	if status, isChild := asChild(); isChild {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// settings has the arguments of the program.
type settings struct {
	redis   string        // the address of a Redis; if empty, one is started
	workers int           // the number of processes that crawl
	kill    time.Duration // the time after which one of them is killed; 0 means that none is killed
	sites   int           // the number of generated sites; 0 means the demo sites
	pages   int           // the number of pages of each generated site
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "distributed:", err)
		return 2
	}
	r, err := crawl(ctx, s, stderr, nil)
	if r != nil {
		r.print(stdout)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "distributed: interrupted")
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "distributed:", err)
		return 1
	case !r.good():
		return 1
	}
	return 0
}

// These are the maximum values of flags.
const (
	mostWorkers = 32
	mostSites   = 10_000
	mostPages   = 1000
)

// parse parses the command line.
func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("distributed", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the errors
	flags.StringVar(&s.redis, "redis", "", "use the Redis at this `address`, host:port or a redis:// URL, instead of starting one")
	flags.IntVar(&s.workers, "workers", 4, "`number` of processes that crawl")
	flags.DurationVar(&s.kill, "kill", 3*time.Second, "kill a process after this time, while it fetches a page; 0 kills none")
	flags.IntVar(&s.sites, "sites", 0, "crawl this `number` of generated sites instead of the demo sites")
	flags.IntVar(&s.pages, "pages", 50, "`number` of pages of each generated site")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "Usage: distributed [flags]\n\nCrawls demo sites on this machine with several processes that share a Redis.")
			flags.SetOutput(stderr)
			flags.PrintDefaults()
		}
		return settings{}, err
	}
	switch {
	case flags.NArg() > 0:
		return settings{}, fmt.Errorf("unexpected argument %s; the command crawls demo sites and takes only flags", strings.Join(flags.Args(), " "))
	case s.workers < 1 || s.workers > mostWorkers:
		return settings{}, fmt.Errorf("-workers %d is not between 1 and %d", s.workers, mostWorkers)
	case s.sites < 0 || s.sites > mostSites:
		return settings{}, fmt.Errorf("-sites %d is not between 0 and %d", s.sites, mostSites)
	case s.pages < 1 || s.pages > mostPages:
		return settings{}, fmt.Errorf("-pages %d is not between 1 and %d", s.pages, mostPages)
	case s.kill < 0:
		return settings{}, fmt.Errorf("-kill %v is negative; 0 kills no process", s.kill)
	}
	return s, nil
}
