// Command check prints whether a crawler may fetch a URL, and why. It also checks a robots.txt for
// mistakes.
//
//	check [-dialect D] [-token T] [-json] URL...
//	check [-dialect D] [-token T] [-json] -robots FILE PATH...
//	check [-dialect D] [-json] -lint URL...
//	check [-dialect D] [-json] -lint -robots FILE
//
// The first form fetches the robots.txt of each URL's host once. The second form reads the rules
// from a file, and also lists the issues in that file. The first row of each table is the decision
// under the dialect of -dialect, and the other rows are the decisions under the other dialects.
//
// The forms with -lint list the issues in a robots.txt, for its author: the lines that the dialect
// ignores or reads in a way that the author may not expect, in the format of compiler messages.
//
// The exit status is 0 if all URLs are allowed and 1 if one is denied. With -lint it is 0 if there
// are no issues and 1 if there are some. It is 2 if a URL or a file could not be checked, for
// example because the host does not exist.
//
// To install the command:
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
	"github.com/collyrobots/collyrobots/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A question has the arguments of the program.
type question struct {
	dialects  []dialect.Dialect // the selected one, then the others
	tokens    []string          // the names of the crawler, the most specific first
	robots    string            // the file with the rules; if empty, they are fetched
	urls      []string
	lint      bool // check robots.txt files instead of URLs
	json      bool
	width     int // the width of the terminal; 0 if the output is not a terminal
	transport http.RoundTripper
}

// run runs the program and returns its exit status.
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

// ask returns the result for q.
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
	flags.SetOutput(io.Discard) // run prints the errors
	name := flags.String("dialect", "rfc9309", "read robots.txt in this `dialect`: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "comma-separated `names` of the crawler to look for in robots.txt, the most specific first")
	flags.StringVar(&q.robots, "robots", "", "read the rules from this `file` instead of fetching them; paths may be given instead of URLs")
	flags.BoolVar(&q.lint, "lint", false, "list the issues in robots.txt; the exit status is 1 if there are some")
	flags.BoolVar(&q.json, "json", false, "print JSON; durations are numbers of seconds")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, `Usage: check [flags] URL...
       check [flags] -robots FILE PATH...
       check [flags] -lint URL...
       check [flags] -lint -robots FILE

Prints whether a crawler may fetch a URL, and why. With -lint, lists the issues in a robots.txt.
The exit status is 0 if all URLs are allowed or there are no issues, 1 if not, and 2 if something
could not be checked.`)
			fmt.Fprintln(stderr)
			flags.SetOutput(stderr)
			flags.PrintDefaults()
		}
		return nil, err
	}
	selected, known := dialect.ByName(*name)
	q.dialects = append(q.dialects, selected)
	for _, d := range dialect.All() {
		if d != selected {
			q.dialects = append(q.dialects, d)
		}
	}
	q.tokens = strings.FieldsFunc(*token, func(r rune) bool { return r == ',' || r == ' ' })
	q.urls = flags.Args()
	fileOnly := q.lint && q.robots != ""
	switch {
	case !known:
		return nil, fmt.Errorf("-dialect %s: unknown dialect; use one of %s", *name, term.List(dialect.All()))
	case len(q.tokens) == 0:
		return nil, errors.New("-token: no name given")
	case len(q.urls) == 0 && !fileOnly:
		return nil, errors.New("no URL given; check -h prints the usage")
	case len(q.urls) > 0 && fileOnly:
		return nil, fmt.Errorf("-lint checks %s and takes no URL: %s", q.robots, q.urls[0])
	}
	if err := q.checkURLs(); err != nil {
		return nil, err
	}
	// New checks the names.
	robots, err := collyrobots.New(collyrobots.Dialect(selected), collyrobots.ProductToken(q.tokens...))
	return q, errors.Join(err, robots.Close())
}

// checkURLs returns an error for each argument that is not a URL or a path.
func (q *question) checkURLs() error {
	var faults []error
	for _, arg := range q.urls {
		u, err := url.Parse(arg)
		s := term.Safe(arg) // keeps the message on one line
		isURL := err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
		isPath := q.robots != "" && strings.HasPrefix(arg, "/")
		switch {
		case isURL || isPath:
		case strings.HasPrefix(arg, "-"): // the next argument may be its value, so stop here
			return errors.Join(append(faults, fmt.Errorf("%s: flags must come before the URLs", s))...)
		case q.robots != "":
			faults = append(faults, fmt.Errorf(`"%s" is not a path such as /page?x=1, and not a URL of a web page`, s))
		default:
			faults = append(faults, fmt.Errorf(`"%s" is not a URL of a web page, such as https://example.com/`, s))
		}
	}
	return errors.Join(faults...)
}
