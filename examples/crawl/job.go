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
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/term"
	"github.com/collyrobots/collyrobots/store"
)

// A job is what is to be crawled, and how.
type job struct {
	urls        []string
	dialect     dialect.Dialect
	tokens      []string // as whom: the product tokens, the most specific first
	depth       int      // of links from the start pages, which are 1; 0: no limit
	max         int      // most pages, on all sites together; 0: no limit
	parallelism int      // requests under way at once, whatever their hosts
	sitemaps    bool
	delay       time.Duration // between two requests to one host, where it does not ask for more
	skipAbove   time.Duration // hosts that ask for more are left out; 0: none is
	cache       string        // folder for what was learnt; "": it is forgotten
	resume      bool          // go on with the sitemaps where the last run has stopped
	http        string        // address of the page that shows the crawl; "": there is none
	json        bool

	// Open opens these.
	store     store.Store       // nil: no cache
	listener  net.Listener      // nil: no page
	transport http.RoundTripper // nil: the collector's own
}

// parse reads the command line. Its errors tell what to write instead.
func parse(args []string, stderr io.Writer) (*job, error) {
	j := new(job)
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	name := flags.String("dialect", "rfc9309", "whose reading of robots.txt to obey: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "`names` that robots.txt may call this crawler by, the most specific first, with commas")
	flags.IntVar(&j.depth, "depth", 3, "how many pages deep to follow links, the start page being the first; 0: all the way")
	flags.IntVar(&j.max, "max", 10_000, "most pages to ask for, on all sites together; 0: no limit")
	flags.IntVar(&j.parallelism, "parallelism", 8, "requests under way at once")
	flags.BoolVar(&j.sitemaps, "sitemaps", true, "crawl what the sites' sitemaps list; -sitemaps=false does not")
	flags.DurationVar(&j.delay, "delay", 250*time.Millisecond, "between two requests to one host, where it does not ask for more")
	flags.DurationVar(&j.skipAbove, "skip-above", 0, "leave out hosts that ask for a longer delay; 0: wait as long as they ask")
	flags.StringVar(&j.cache, "cache", "", "`folder` that keeps what robots.txt files said for the next run; made if it is not there")
	flags.BoolVar(&j.resume, "resume", false, "go on with the sitemaps where the last run with the same -cache has stopped; links are followed anew")
	flags.StringVar(&j.http, "http", "", "show the crawl in a browser, at an `address` such as :8090, which is this machine's alone")
	flags.BoolVar(&j.json, "json", false, "print the report as JSON")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return nil, err
	}
	j.urls = flags.Args()
	j.tokens = strings.FieldsFunc(*token, func(r rune) bool { return r == ',' || r == ' ' })
	var known bool
	if j.dialect, known = dialect.ByName(*name); !known {
		return nil, fmt.Errorf("-dialect %s: unknown; there are %s", *name, term.List(dialect.All()))
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	robots, err := collyrobots.New(collyrobots.Dialect(j.dialect), collyrobots.ProductToken(j.tokens...)) // knows what is no name
	if err != nil {
		return nil, err
	}
	return j, robots.Close()
}

// check returns what is wrong with the arguments: one fault of the flags, or all of the URLs.
func (j *job) check() error {
	switch {
	case len(j.tokens) == 0:
		return errors.New("-token: a crawler needs a name")
	case j.depth < 0:
		return fmt.Errorf("-depth %d: is negative; 0 means no limit", j.depth)
	case j.max < 0 || j.max > math.MaxInt32:
		return fmt.Errorf("-max %d: not between 0, which means no limit, and 2147483647", j.max)
	case j.parallelism < 1:
		return fmt.Errorf("-parallelism %d: at least 1 is needed", j.parallelism)
	case j.delay < 0:
		return fmt.Errorf("-delay %v: is negative", j.delay)
	case j.skipAbove < 0:
		return fmt.Errorf("-skip-above %v: is negative; 0 means to wait as long as hosts ask", j.skipAbove)
	case j.resume && j.cache == "":
		return errors.New("-resume: which run? It needs the -cache of that one")
	case j.resume && !j.sitemaps:
		return errors.New("-resume: goes on with sitemaps, which -sitemaps=false leaves out")
	}
	var faults []error
	for _, arg := range j.urls {
		u, err := url.Parse(arg)
		s := term.Safe(arg) // a line end in it would make two messages
		switch {
		case strings.HasPrefix(arg, "-"): // what follows may be its value
			return errors.Join(append(faults, fmt.Errorf("%s: flags come before the URLs", s))...)
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			faults = append(faults, fmt.Errorf(`"%s" is no URL of a web page, such as https://example.com/`, s))
		}
	}
	return errors.Join(faults...)
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, `Usage: crawl [flags] [URL...]

Crawls the sites as their robots.txt files allow, no host faster than four requests a second.
Without URLs: demo sites on this machine.`)
	fmt.Fprintln(w)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// open opens the cache and the address of the page.
func (j *job) open() (err error) {
	if j.cache != "" {
		if j.store, err = store.Dir(j.cache); err != nil {
			return fmt.Errorf("-cache: %w", err)
		}
	}
	if j.http != "" {
		if j.listener, err = listen(j.http); err != nil {
			return errors.Join(fmt.Errorf("-http: %w", err), j.close())
		}
	}
	return nil
}

// close closes the cache, when the crawl is over.
func (j *job) close() error {
	if j.store == nil {
		return nil
	}
	return j.store.Close()
}
