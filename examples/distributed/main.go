// Command distributed crawls a few sites of its own with several processes that share a Redis,
// kills one of them with -9 on the way, and says what the sites saw of it.
//
//	go run . [-redis ADDR] [-workers N] [-kill D]
//
// The URLs are in asynq, which gives a page to one worker after the other until one of them has
// said that it is done (frontier.go). What robots.txt says and when a host may be asked again is in
// store/redisstore. A worker (worker.go) is what to copy into a crawler; the rest is the stage: a
// Redis, the sites, processes, and a table from the sites' access log.
//
// Nothing leaves the machine, and nothing is left behind: with the command end the workers, the
// Redis that it has started and its folder, and in a Redis of -redis its keys.
//
// The exit status is 0 if each page was fetched, none of them twice but for the worker that was
// killed, and no host was asked before its delay had passed. It is 1 if not, if something is
// missing, or after Ctrl-C, and 2 if the arguments make no sense.
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

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

func main() {
	logging.Disable() // what go-redis has to say is in its errors
	if status, isChild := asChild(); isChild {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// settings are what the command line says.
type settings struct {
	redis   string        // where one runs; "": one of our own
	workers int           // how many processes crawl
	kill    time.Duration // after how long one of them is killed; 0: none is
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		term.Errors(stderr, "distributed", err)
		return 2
	}
	r, err := crawl(ctx, s, term.NewDisplay(stderr), nil)
	if r != nil {
		r.print(stdout)
	}
	switch {
	case ctx.Err() != nil:
		term.Errors(stderr, "distributed", errors.New("interrupted"))
		return 1
	case err != nil:
		term.Errors(stderr, "distributed", err)
		return 1
	case !r.good():
		return 1
	}
	return 0
}

// mostWorkers is how many processes this is still fun with.
const mostWorkers = 32

// parse reads the command line. Its errors say what to write instead.
func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("distributed", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	flags.StringVar(&s.redis, "redis", "", "`address` of a Redis to use, host:port or a redis:// URL, instead of one that is started and ended")
	flags.IntVar(&s.workers, "workers", 4, "how many processes crawl")
	flags.DurationVar(&s.kill, "kill", 3*time.Second, "when to kill one of them, in the middle of its next page; 0: none")
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
		return settings{}, fmt.Errorf("what is %s? It crawls demo sites and takes flags only: see -h", strings.Join(flags.Args(), " "))
	case s.workers < 1 || s.workers > mostWorkers:
		return settings{}, fmt.Errorf("-workers %d: not between 1 and %d", s.workers, mostWorkers)
	case s.kill < 0:
		return settings{}, fmt.Errorf("-kill %v: is negative; 0 means that none is killed", s.kill)
	}
	return s, nil
}
