// Command check says whether a crawler may fetch a URL, and why.
//
//	check [-dialect D] [-token T] URL...
//	check [-dialect D] [-token T] -robots FILE PATH...
//
// The first form asks each URL's host for its robots.txt, once; the second reads the rules from a file, and tells what is odd about it
// under the dialect. The first line of each table is the dialect that was asked for, the others are what the other dialects would say.
//
// The exit status is 0 if everything is allowed, 1 if something is denied, and 2 if that could not be told.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A question is what the command line asks.
type question struct {
	dialects []dialect.Dialect // the one asked for, then the others
	tokens   []string          // as whom, the most specific first
	robots   string            // the file with the rules; empty: the web
	urls     []string
}

// run is the program; it returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	q, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var answers []answer
	var issues []dialect.Issue
	if err == nil && q.robots != "" {
		answers, issues, err = q.askFile()
	} else if err == nil {
		answers, err = q.askWeb(ctx)
	}
	if err != nil {
		fmt.Fprintln(stderr, "check:", err)
		return 2
	}
	denied := false
	for _, a := range answers {
		a.print(stdout, q)
		denied = denied || !a.readings[0].allowed
	}
	printIssues(stdout, q, issues)
	if denied {
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (*question, error) {
	q := new(question)
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are run's to print
	name := flags.String("dialect", "rfc9309", "whose reading of robots.txt: "+names(dialect.All()))
	token := flags.String("token", "ExampleBot", "`names` that robots.txt may call the crawler by, the most specific first, with commas")
	flags.StringVar(&q.robots, "robots", "", "`file` with the rules, instead of the hosts' own; then paths will do for URLs")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, `Usage: check [flags] URL...
       check [flags] -robots FILE PATH...

Says whether a crawler may fetch a URL, and why.`)
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
	switch {
	case !known:
		return nil, fmt.Errorf("-dialect %s: unknown; there are %s", *name, names(dialect.All()))
	case len(q.tokens) == 0:
		return nil, errors.New("-token: a crawler needs a name")
	case len(q.urls) == 0:
		return nil, errors.New("which URL? (check -h tells more)")
	}
	return q, q.checkURLs()
}

func names(dialects []dialect.Dialect) string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}

// checkURLs reports what has no answer, all of it.
func (q *question) checkURLs() error {
	var faults []error
	for _, s := range q.urls {
		u, err := url.Parse(s)
		isURL := err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != ""
		switch isPath := q.robots != "" && strings.HasPrefix(s, "/"); {
		case isURL || isPath:
		case strings.HasPrefix(s, "-"):
			faults = append(faults, fmt.Errorf("%s: flags come before the URLs", s))
		case q.robots != "":
			faults = append(faults, fmt.Errorf("%q is neither a path, such as /page?x=1, nor a URL of a web page", s))
		default:
			faults = append(faults, fmt.Errorf("%q is no URL of a web page, such as https://example.com/", s))
		}
	}
	return errors.Join(faults...)
}
