package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/store"
)

// A job has the arguments of the program.
type job struct {
	urls        []string
	dialect     dialect.Dialect
	tokens      []string // the product tokens of the crawler, the most specific first
	depth       int      // the depth to which links are followed; start pages have depth 1; 0 means no limit
	max         int      // the maximum number of pages on all sites together; 0 means no limit
	maxPerHost  int      // the maximum number of pages of each host; 0 means no limit
	stopRefused int      // a host that has refused so many pages in a row is stopped; 0 means that none is stopped
	parallelism int      // the number of requests in flight at once, to all hosts together
	sitemaps    bool
	delay       time.Duration // the minimum delay between two requests to one host
	skipAbove   time.Duration // hosts that ask for a longer delay are skipped; 0 means that none is skipped
	cache       string        // the directory of the store; if empty, there is no store
	resume      bool          // continue where the last run stopped
	http        string        // the address of the page that shows the crawl; if empty, there is no page
	json        bool

	// These are opened by open. Each of them may be nil.
	store     store.Store
	links     *links
	listener  net.Listener
	transport http.RoundTripper // if nil, the collector uses its own transport
}

// parse parses the command line.
func parse(args []string, stderr io.Writer) (*job, error) {
	j := new(job)
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the errors
	name := flags.String("dialect", "rfc9309", "read robots.txt in this `dialect`: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "comma-separated `names` of the crawler to look for in robots.txt, the most specific first")
	flags.IntVar(&j.depth, "depth", 3, "follow links to this `depth`; the start page has depth 1, and 0 means no limit")
	flags.IntVar(&j.max, "max", 10_000, "request at most this `number` of pages on all sites together; 0 means no limit")
	flags.IntVar(&j.maxPerHost, "max-per-host", 0, "request at most this `number` of pages of each host; 0 means no limit")
	flags.IntVar(&j.stopRefused, "stop-refused", 5, "request no more pages of a host that has refused this `number` in a row; 0 means no limit")
	flags.IntVar(&j.parallelism, "parallelism", 8, "`number` of requests in flight at once")
	flags.BoolVar(&j.sitemaps, "sitemaps", true, "crawl the pages in the sitemaps of the sites; -sitemaps=false leaves them out")
	flags.DurationVar(&j.delay, "delay", 250*time.Millisecond, "minimum delay between two requests to one host; hosts may ask for a longer one")
	flags.DurationVar(&j.skipAbove, "skip-above", 0, "skip hosts that ask for a longer delay; 0 means that none is skipped")
	flags.StringVar(&j.cache, "cache", "", "keep the robots.txt files and the pages in this `directory` for the next run; it is created if necessary")
	flags.BoolVar(&j.resume, "resume", false, "continue where the last run with the same -cache stopped; if it has fetched all pages, crawl again and leave out sitemaps that have not changed")
	flags.StringVar(&j.http, "http", "", "show the crawl in a browser at this `address`, such as :8090 for port 8090 on loopback")
	flags.BoolVar(&j.json, "json", false, "print the report as JSON; durations are numbers of seconds")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return nil, err
	}
	j.urls = flags.Args()
	j.tokens = strings.FieldsFunc(*token, func(r rune) bool { return r == ',' || r == ' ' })
	d, known := dialect.ByName(*name)
	if !known {
		return nil, fmt.Errorf("-dialect %s: unknown dialect; use one of %s", *name, term.List(dialect.All()))
	}
	j.dialect = d
	if err := j.check(); err != nil {
		return nil, err
	}
	// New checks the names.
	robots, err := collyrobots.New(collyrobots.Dialect(j.dialect), collyrobots.ProductToken(j.tokens...))
	if err != nil {
		return nil, err
	}
	return j, robots.Close()
}

// check returns the first fault of the flags, or all faults of the URLs.
func (j *job) check() error {
	switch {
	case len(j.tokens) == 0:
		return errors.New("-token: no name given")
	case j.depth < 0:
		return fmt.Errorf("-depth %d is negative; 0 means no limit", j.depth)
	case j.max < 0 || j.max > math.MaxInt32:
		return fmt.Errorf("-max %d is not between 0, which means no limit, and 2147483647", j.max)
	case j.maxPerHost < 0 || j.maxPerHost > math.MaxInt32:
		return fmt.Errorf("-max-per-host %d is not between 0, which means no limit, and 2147483647", j.maxPerHost)
	case j.stopRefused < 0:
		return fmt.Errorf("-stop-refused %d is negative; 0 means that no host is stopped", j.stopRefused)
	case j.parallelism < 1:
		return fmt.Errorf("-parallelism %d is less than 1", j.parallelism)
	case j.delay < 0:
		return fmt.Errorf("-delay %v is negative", j.delay)
	case j.skipAbove < 0:
		return fmt.Errorf("-skip-above %v is negative; 0 means that no host is skipped", j.skipAbove)
	case j.resume && j.cache == "":
		return errors.New("-resume needs -cache with the directory of the earlier run")
	}
	var faults []error
	for _, arg := range j.urls {
		u, err := url.Parse(arg)
		s := term.Safe(arg) // keeps the message on one line
		switch {
		case strings.HasPrefix(arg, "-"): // the next argument may be its value, so stop here
			return errors.Join(append(faults, fmt.Errorf("%s: flags must come before the URLs", s))...)
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			faults = append(faults, fmt.Errorf(`"%s" is not a URL of a web page, such as https://example.com/`, s))
		}
	}
	return errors.Join(faults...)
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, `Usage: crawl [flags] [URL...]

Crawls web sites and obeys their robots.txt files. It sends at most four requests a second to a
host unless -delay is shorter. Without URLs, it crawls demo sites on this machine.`)
	fmt.Fprintln(w)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// open opens the store, and the listener of the page.
func (j *job) open() (err error) {
	if j.cache != "" {
		j.store, err = store.Dir(j.cache)
		if err != nil {
			return fmt.Errorf("-cache: %w", err)
		}
		j.links, err = openLinks(filepath.Join(j.cache, "links.jsonl"), j.resume)
		if err != nil {
			return errors.Join(fmt.Errorf("-cache: %w", err), j.close())
		}
	}
	if j.http != "" {
		j.listener, err = listen(j.http)
		if err != nil {
			return errors.Join(fmt.Errorf("-http: %w", err), j.close())
		}
	}
	return nil
}

// close closes the store and the links.
func (j *job) close() (err error) {
	if j.links != nil {
		err = j.links.close()
	}
	if j.store != nil {
		err = errors.Join(err, j.store.Close())
	}
	return err
}
