// Command check says whether a crawler may fetch a URL, and why, or what is odd about a robots.txt.
//
//	check [-dialect D] [-token T] [-json] URL...
//	check [-dialect D] [-token T] [-json] -robots FILE PATH...
//	check [-dialect D] [-json] -lint URL...
//	check [-dialect D] [-json] -lint -robots FILE
//
// The first form asks each URL's host for its robots.txt, once; the second reads the rules from a
// file, and tells what is odd about it under the dialect. The first line of each table is the
// dialect that was asked for, the others are what the other dialects would say. With -lint it is
// for those who write the file: it prints what the dialect ignores, or reads in a way that its
// author may not expect, a line for each, as compilers do.
//
// The exit status is 0 if everything is allowed, or nothing is odd, 1 if something is denied, or
// odd, and 2 if that could not be told, such as for a host that does not exist.
//
// To have it at hand:
//
//	go install github.com/collyrobots/collyrobots/examples/check@latest
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A question is what the command line asks.
type question struct {
	dialects  []dialect.Dialect // the one asked for, then the others
	tokens    []string          // as whom, the most specific first
	robots    string            // the file with the rules; empty: the web
	urls      []string
	lint      bool // about robots.txt, not about URLs
	json      bool
	width     int // of the terminal; 0: there is none
	transport http.RoundTripper
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	q, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var r *result
	if err == nil {
		q.width = term.Width(stdout)
		r, err = q.ask(ctx)
	}
	if r != nil {
		err = errors.Join(err, r.write(stdout, q))
	}
	switch {
	case ctx.Err() != nil:
		term.Fprintf(stderr, "check: interrupted\n")
		return 2
	case err != nil:
		term.Errors(stderr, "check", err)
		return 2
	case r.clean(q):
		return 0
	}
	return 1
}

// ask finds out.
func (q *question) ask(ctx context.Context) (*result, error) {
	switch {
	case q.lint && q.robots != "":
		return q.lintFile()
	case q.lint:
		return q.lintWeb(ctx)
	case q.robots != "":
		return q.askFile()
	}
	return q.askWeb(ctx)
}

func (q *question) result(answers []answer, issues []issue) *result {
	return &result{Dialect: q.dialects[0].String(), Tokens: q.tokens, Answers: answers, Issues: issues}
}

func parse(args []string, stderr io.Writer) (*question, error) {
	q := &question{transport: http.DefaultTransport}
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	name := flags.String("dialect", "rfc9309", "whose reading of robots.txt: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "`names` that robots.txt may call the crawler by, the most specific first, with commas")
	flags.StringVar(&q.robots, "robots", "", "`file` with the rules, instead of the hosts' own; then paths will do for URLs")
	flags.BoolVar(&q.lint, "lint", false, "tell what is odd about the robots.txt; the exit status is 1 if something is")
	flags.BoolVar(&q.json, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, `Usage: check [flags] URL...
       check [flags] -robots FILE PATH...
       check [flags] -lint URL...
       check [flags] -lint -robots FILE

Says whether a crawler may fetch a URL, and why, or what is odd about a robots.txt.
The exit status is 0 for allowed or nothing odd, 1 for denied or odd, 2 if that cannot be told.`)
			fmt.Fprintln(stderr)
			flags.SetOutput(stderr)
			flags.PrintDefaults()
		}
		return nil, err
	}
	asked, known := dialect.ByName(*name)
	q.dialects = append(q.dialects, asked)
	for _, d := range dialect.All() {
		if d != asked {
			q.dialects = append(q.dialects, d)
		}
	}
	q.tokens = strings.FieldsFunc(*token, func(r rune) bool { return r == ',' || r == ' ' })
	q.urls = flags.Args()
	alone := q.lint && q.robots != ""
	switch {
	case !known:
		return nil, fmt.Errorf("-dialect %s: unknown; there are %s", *name, term.List(dialect.All()))
	case len(q.tokens) == 0:
		return nil, errors.New("-token: a crawler needs a name")
	case len(q.urls) == 0 && !alone:
		return nil, errors.New("which URL? (check -h tells more)")
	case len(q.urls) > 0 && alone:
		return nil, fmt.Errorf("%s: -lint is about %s, not about pages", q.urls[0], q.robots)
	}
	if err := q.checkURLs(); err != nil {
		return nil, err
	}
	robots, err := collyrobots.New(collyrobots.Dialect(asked), collyrobots.ProductToken(q.tokens...)) // knows what is no name
	return q, errors.Join(err, robots.Close())
}

// checkURLs reports what has no answer, all of it.
func (q *question) checkURLs() error {
	var faults []error
	for _, arg := range q.urls {
		u, err := url.Parse(arg)
		s := term.Safe(arg) // a line end in it would make two messages
		isURL := err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
		switch isPath := q.robots != "" && strings.HasPrefix(arg, "/"); {
		case isURL || isPath:
		case strings.HasPrefix(arg, "-"): // what follows may be its value
			return errors.Join(append(faults, fmt.Errorf("%s: flags come before the URLs", s))...)
		case q.robots != "":
			faults = append(faults, fmt.Errorf(`"%s" is neither a path, such as /page?x=1, nor a URL of a web page`, s))
		default:
			faults = append(faults, fmt.Errorf(`"%s" is no URL of a web page, such as https://example.com/`, s))
		}
	}
	return errors.Join(faults...)
}
