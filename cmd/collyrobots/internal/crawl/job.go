package crawl

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/keyfile"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/webbotauth"
)

const crawlUsage = `Usage: collyrobots crawl [flags] URL...

Crawls web sites and obeys their robots.txt files. A host without https:// means https. It sends at
most four requests a second to a host unless -delay is shorter, and follows links only within the
sites. The report names the denied and the failed pages. Ctrl-C ends the crawl and prints the report.

The exit status is 0 if each URL was fetched or was denied by its robots.txt, 1 if not or if the
crawl was interrupted, and 2 if it could not start or if its report could not be written.`

// A job has the arguments of the command.
type job struct {
	urls                []string
	pace                input.Pace
	tokens              []string // the product tokens of the crawler, the most specific first
	agent               string   // the User-Agent header
	depth               int      // links are followed to this depth; start pages have depth 1; 0 means no limit
	max                 int      // the maximum number of pages on all sites together; 0 means no limit
	maxPerHost          int      // the maximum number of pages of each host; 0 means no limit
	stopAfterRefusals   int      // a host that has refused so many pages in a row is stopped; 0 means that none is stopped
	parallelism         int      // the number of requests in flight at once, to all hosts together
	sitemaps            bool
	skipCrawlDelayAbove time.Duration        // hosts that ask for a longer delay are skipped; 0 means that none is skipped
	cache               string               // the directory of the store; if empty, there is no store
	resume              bool                 // continue where the last run stopped
	revalidate          bool                 // request only pages that have changed
	report              string               // the file for the HTML report; "" for none
	http                string               // the address of the page that shows the crawl; if empty, there is no page
	audit               string               // the folder of the audit log; if empty, there is no log
	signKey             string               // the file with the key that signs requests; if empty, they are not signed
	signAgent           string               // the URL of the key directory
	options             []collyrobots.Option // the options that flags name directly
	json                bool

	// These are opened by open. Each of them may be nil.
	store     store.Store
	pages     *pages
	log       *audit.Log
	logFailed <-chan error // gets an error when the log cannot be written
	listener  net.Listener
	page      *pageServer       // serves listener; nil until the crawl has begun
	transport http.RoundTripper // if nil, the collector uses its own transport
	lines     *lines            // where JSON lines go
}

// The values of flags that are not stored as they are.
type texts struct {
	token, from, purpose string
	adaptive             float64
	tdmRep               bool
}

// parse parses the command line.
func parse(args []string, stdin io.Reader, stderr io.Writer) (*job, error) {
	j := new(job)
	t := new(texts)
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	j.define(flags, t)
	err := cli.Parse(flags, crawlUsage, args, stderr)
	if err == nil {
		err = j.set(t)
	}
	if err == nil {
		err = j.check()
	}
	if err == nil {
		err = j.readURLs(flags.Args(), t.from, stdin)
	}
	if err != nil {
		return nil, err
	}
	robots, err := collyrobots.New(j.options...) // checks the options
	if err != nil {
		return nil, err
	}
	return j, robots.Close()
}

// define defines the flags.
func (j *job) define(flags *flag.FlagSet, t *texts) {
	j.pace.Define(flags)
	flags.StringVar(&t.from, "from", "", "read more URLs from this `file`, one in a line; - is standard input, as it is among the URLs")
	flags.StringVar(&t.token, "token", "ExampleBot", "comma-separated `names` of the crawler to look for in robots.txt, the most specific first")
	flags.StringVar(&j.agent, "agent", "", "User-Agent `header`; without it, it is the first name of -token with the address of this project")
	flags.IntVar(&j.depth, "depth", 3, "follow links to this `depth`; the start page has depth 1, and 0 means no limit")
	flags.IntVar(&j.max, "max", 10_000, "request at most this `number` of pages on all sites together; 0 means no limit")
	flags.IntVar(&j.maxPerHost, "max-per-host", 0, "request at most this `number` of pages of each host; 0 means no limit")
	flags.IntVar(&j.stopAfterRefusals, "stop-after-refusals", 5, "request no more pages of a host that has refused this `number` in a row; 0 means no limit")
	flags.IntVar(&j.parallelism, "parallelism", 8, "`number` of requests in flight at once")
	flags.BoolVar(&j.sitemaps, "sitemaps", true, "crawl the pages in the sitemaps of the sites; -sitemaps=false leaves them out")
	flags.DurationVar(&j.skipCrawlDelayAbove, "skip-crawl-delay-above", 0, "skip hosts that ask for a longer delay; 0 means that none is skipped")
	flags.Float64Var(&t.adaptive, "adaptive", 0, "wait for at least this `factor` times the response time of a host; 0 means that it does not matter")
	flags.StringVar(&t.purpose, "purpose", "", "what the pages are for: search, ai-use or train-ai, separated by commas; pages that their owners exclude from these `uses` are denied")
	flags.BoolVar(&t.tdmRep, "tdmrep", false, "also request the TDMRep file of each host, and add what it says to -purpose; needs -purpose")
	flags.StringVar(&j.cache, "cache", "", "keep the robots.txt files and the pages in this `directory` for the next run; it is created if necessary")
	flags.BoolVar(&j.resume, "resume", false, "continue where the last run with the same -cache stopped; if it has fetched all pages, crawl again and leave out sitemaps that have not changed")
	flags.BoolVar(&j.revalidate, "revalidate", false, "ask sites only for pages that have changed since the last run with the same -cache")
	flags.StringVar(&j.signKey, "sign", "", "sign each request with the Ed25519 key in this PEM `file` (Web Bot Auth); needs -sign-agent")
	flags.StringVar(&j.signAgent, "sign-agent", "", "the https `URL` of the directory with the public key of -sign")
	flags.StringVar(&j.audit, "audit", "", "keep a log of every request in this `directory`, which collyrobots audit verifies")
	flags.StringVar(&j.report, "report", "", "write a report of the crawl as an HTML page to this `file`")
	flags.StringVar(&j.http, "http", "", "show the crawl in a browser at this `address`, such as :8090 for port 8090 on loopback")
	flags.BoolVar(&j.json, "json", false, "print one line of JSON for each page, and one at the end; durations are numbers of seconds")
}

// set makes options of the flags.
func (j *job) set(t *texts) error {
	j.tokens = input.Names(t.token)
	purpose, err := input.Purpose(t.purpose)
	if err != nil {
		err = fmt.Errorf("-purpose %w", err)
	}
	options, paceErr := j.pace.Options()
	err = errors.Join(err, paceErr)
	if err != nil {
		return err
	}
	j.options = append(options,
		collyrobots.ProductToken(j.tokens...),
		collyrobots.AdaptiveDelay(t.adaptive),
		collyrobots.SkipCrawlDelayAbove(j.skipCrawlDelayAbove),
		collyrobots.MaxPagesPerHost(j.maxPerHost),
		collyrobots.StopAfterRefusals(j.stopAfterRefusals),
		collyrobots.TDMRep(t.tdmRep))
	if purpose != 0 {
		j.options = append(j.options, collyrobots.Purpose(purpose), collyrobots.EnforceUsage(true))
	}
	if t.tdmRep && purpose == 0 {
		return errors.New("-tdmrep needs -purpose")
	}
	return nil
}

// check returns the first fault of the flags.
func (j *job) check() error {
	switch {
	case len(j.tokens) == 0:
		return errors.New("-token: no name given")
	case j.depth < 0:
		return fmt.Errorf("-depth %d is negative; 0 means no limit", j.depth)
	case j.max < 0:
		return fmt.Errorf("-max %d is negative; 0 means no limit", j.max)
	case j.parallelism < 1:
		return fmt.Errorf("-parallelism %d is less than 1", j.parallelism)
	case j.resume && j.cache == "":
		return errors.New("-resume needs -cache with the directory of the earlier run")
	case j.revalidate && j.cache == "":
		return errors.New("-revalidate needs -cache with the directory of the earlier run")
	case (j.signKey == "") != (j.signAgent == ""):
		return errors.New("-sign and -sign-agent need each other: the key, and the URL of the directory with its public part")
	}
	return nil
}

// readURLs sets the start URLs. It returns all of their faults.
func (j *job) readURLs(args []string, from string, stdin io.Reader) error {
	args, err := input.Sites(args, from, stdin)
	if err != nil {
		return err
	}
	var faults []error
	for _, arg := range args {
		u, err := input.URL(arg)
		if err != nil {
			faults = append(faults, err)
		}
		j.urls = append(j.urls, u)
	}
	return errors.Join(faults...)
}

// open opens the key, the store, the audit log, and the listener of the page.
func (j *job) open(log *slog.Logger) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, j.close())
		}
	}()
	if j.signKey != "" {
		key, err := keyfile.Read(j.signKey)
		if err != nil {
			return fmt.Errorf("-sign: %w", err)
		}
		signer, err := webbotauth.NewSigner(key, j.signAgent, webbotauth.Draft)
		if err != nil {
			return fmt.Errorf("-sign: %w", err)
		}
		j.options = append(j.options, collyrobots.SignRequests(signer))
	}
	if j.cache != "" {
		j.store, err = store.OpenDir(j.cache)
		if err != nil {
			return fmt.Errorf("-cache: %w", err)
		}
		j.pages, err = openPages(j.cache, j.resume, j.parallelism, log)
		if err != nil {
			return fmt.Errorf("-cache: %w", err)
		}
	}
	if j.audit != "" {
		j.log, j.logFailed, err = cli.OpenLog(j.audit)
		if err != nil {
			return err
		}
	}
	if j.http != "" {
		j.listener, err = cli.Listen(j.http)
		if err != nil {
			return fmt.Errorf("-http: %w", err)
		}
	}
	return nil
}

// close closes what open has opened, except the listener.
func (j *job) close() (err error) {
	if j.pages != nil {
		err = j.pages.Close()
	}
	if j.store != nil {
		err = errors.Join(err, j.store.Close())
	}
	if j.log != nil {
		err = errors.Join(err, j.log.Close())
	}
	return err
}
