// Command crawl crawls web sites as their robots.txt files allow, and tells what it did.
//
//	crawl [flags] [URL...]
//
// It follows the links within each site, and the site's sitemaps, asking no host more often than four times a second.
// Without URLs it starts a few sites of its own on the loopback interface and crawls those; nothing leaves the machine.
// Progress goes to standard error, the report to standard output. Ctrl-C ends the crawl, and the report tells of what was
// done until then.
//
// The exit status is 0 if the crawl worked: every start URL was answered, or denied by its robots.txt. It is 1 if not, or if the crawl
// was interrupted, and 2 if the arguments make no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A job is what is to be crawled, and how.
type job struct {
	urls        []string
	dialect     dialect.Dialect
	tokens      []string // as whom: the product tokens, the most specific first
	depth       int      // of links from the start pages, which are 1; 0: no limit
	pages       int      // at most; 0: no limit
	parallelism int      // requests under way at once, whatever their hosts
	sitemaps    bool
	minDelay    time.Duration     // between two requests to one host, whatever it asks for
	transport   http.RoundTripper // nil: the collector's own
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	j, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "crawl:", err)
		return 2
	}
	if len(j.urls) == 0 {
		sites, err := demo.Start()
		if err != nil {
			fmt.Fprintln(stderr, "crawl: the demo sites:", err)
			return 1
		}
		defer sites.Close()
		j.urls, j.transport = demo.Starts(), sites.Transport()
		fmt.Fprintf(stderr, "No URLs given: crawling %d demo sites on this machine.\n", len(j.urls))
	}
	r, err := crawl(ctx, j, newProgress(stderr))
	if err != nil {
		fmt.Fprintln(stderr, "crawl:", err)
		return 2 // the plugin or the collector refused an argument
	}
	r.print(stdout)
	if !r.worked() {
		return 1
	}
	return 0
}

// parse reads the command line. Its errors tell what to write instead.
func parse(args []string, stderr io.Writer) (job, error) {
	j := job{minDelay: 250 * time.Millisecond}
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	name := flags.String("dialect", "rfc9309", "whose reading of robots.txt to obey: "+dialects())
	token := flags.String("token", "ExampleBot", "`names` that robots.txt may call this crawler by, the most specific first, with commas")
	flags.IntVar(&j.depth, "depth", 3, "how many pages deep to follow links, the start page being the first; 0: all the way")
	flags.IntVar(&j.pages, "pages", 10_000, "most pages to ask for, on all sites together; 0: no limit")
	flags.IntVar(&j.parallelism, "parallelism", 8, "requests under way at once")
	flags.BoolVar(&j.sitemaps, "sitemaps", true, "crawl what the sites' sitemaps list; -sitemaps=false does not")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return job{}, err
	}
	j.urls = flags.Args()
	j.tokens = strings.FieldsFunc(*token, func(r rune) bool { return r == ',' || r == ' ' })
	var known bool
	j.dialect, known = dialect.ByName(*name)
	switch {
	case !known:
		return job{}, fmt.Errorf("-dialect %s: unknown; there are %s", *name, dialects())
	case len(j.tokens) == 0:
		return job{}, errors.New("-token: a crawler needs a name")
	case j.depth < 0:
		return job{}, fmt.Errorf("-depth %d: is negative; 0 means no limit", j.depth)
	case j.pages < 0 || j.pages > math.MaxInt32:
		return job{}, fmt.Errorf("-pages %d: not between 0, which means no limit, and 2147483647", j.pages)
	case j.parallelism < 1:
		return job{}, fmt.Errorf("-parallelism %d: at least 1 is needed", j.parallelism)
	}
	return j, checkURLs(j.urls)
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, `Usage: crawl [flags] [URL...]

Crawls the sites as their robots.txt files allow, no host faster than four requests a second.
Without URLs: demo sites on this machine.`)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

func dialects() string {
	var names []string
	for _, d := range dialect.All() {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}

// checkURLs reports what cannot be crawled, all of it.
func checkURLs(urls []string) error {
	var faults []error
	for _, s := range urls {
		u, err := url.Parse(s)
		switch {
		case err != nil:
			faults = append(faults, err)
		case strings.HasPrefix(s, "-"):
			faults = append(faults, fmt.Errorf("%s: flags come before the URLs", s))
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			faults = append(faults, fmt.Errorf("%q is no URL of a web page, such as https://example.com/", s))
		}
	}
	return errors.Join(faults...)
}
