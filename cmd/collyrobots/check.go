package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

const checkUsage = `Usage: collyrobots check [flags] URL...
       collyrobots check [flags] -robots FILE PATH...

Prints whether a crawler may fetch a URL, and why. A host without https:// means https. The robots.txt
of each host is fetched once, and many hosts are asked at once. The decision is that of -dialect. If
other dialects decide differently, a table shows all of them. With -robots, the rules are in a file.

The exit status is 0 if all URLs are allowed, 1 if one is denied, and 2 if a host could not be asked.`

// A question has the arguments of the command check.
type question struct {
	dialects  []dialect.Dialect // the selected one, then the others
	tokens    []string          // the names of the crawler, the most specific first
	robots    string            // the file with the rules, or "-" for stdin; if empty, they are fetched
	stdin     io.Reader
	urls      []string
	written   []string // the arguments that the URLs are made of
	page      bool     // also request the pages
	all       bool     // print the table of the dialects even if they agree
	json      bool
	timeout   time.Duration
	transport http.RoundTripper

	width    int // the width of the terminal; 0 if the output is not a terminal
	paint    term.Painter
	progress *term.Display
}

// runCheck runs the command check.
func runCheck(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	q := &question{
		stdin:     stdin,
		transport: http.DefaultTransport,
		width:     term.Width(stdout),
		paint:     term.NewPainter(stdout),
		progress:  term.NewDisplay(stderr),
	}
	if err := q.parse(args, stdin, stderr); err != nil {
		return cli.Fail(stderr, "check", err)
	}
	return q.run(ctx, stdout, stderr)
}

// run answers the question and returns the exit status.
func (q *question) run(ctx context.Context, stdout, stderr io.Writer) (status int) {
	answers, err := q.ask(ctx)
	q.progress.Close()
	switch {
	case ctx.Err() != nil:
		return cli.Fail(stderr, "check", errors.New("interrupted"))
	case err != nil:
		return cli.Fail(stderr, "check", err)
	}
	out := bufio.NewWriter(stdout)
	status = q.print(out, answers)
	err = out.Flush()
	for _, a := range answers {
		if a.Error != "" && !q.json {
			cli.Fail(stderr, "check", fmt.Errorf("cannot ask about %s: %s%s", a.written, a.Error, a.hint()))
		}
	}
	if err != nil {
		return cli.Fail(stderr, "check", err)
	}
	return status
}

// ask returns the answers.
func (q *question) ask(ctx context.Context) ([]*answer, error) {
	if q.robots != "" {
		return q.askFile()
	}
	return q.askWeb(ctx, robotsfile.New(q.transport))
}

// parse parses the arguments.
func (q *question) parse(args []string, stdin io.Reader, stderr io.Writer) error {
	var selected dialect.Dialect
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.TextVar(&selected, "dialect", dialect.RFC9309(), "decide in this `dialect`: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "comma-separated `names` of the crawler to look for in robots.txt, the most specific first")
	from := flags.String("from", "", "read more URLs from this `file`, one in a line; - is standard input, as it is among the URLs")
	flags.StringVar(&q.robots, "robots", "", "read the rules from this `file` instead of fetching them, or - for standard input; paths may be given instead of URLs")
	flags.BoolVar(&q.page, "page", false, "also request each page that is allowed, and print its robots tags and what it says about its use")
	flags.BoolVar(&q.all, "all", false, "print the decisions of all dialects, even if they agree")
	flags.BoolVar(&q.json, "json", false, "print one line of JSON for each URL; durations are numbers of seconds")
	flags.DurationVar(&q.timeout, "timeout", 20*time.Second, "give up a host that has not answered after this `time`")
	if err := cli.Parse(flags, checkUsage, args, stderr); err != nil {
		return err
	}
	args, err := input.Sites(flags.Args(), *from, stdin)
	if err != nil {
		return err
	}
	return q.set(selected, input.Names(*token), args)
}

// set sets what the flags and the arguments say.
func (q *question) set(selected dialect.Dialect, tokens, args []string) error {
	others := slices.DeleteFunc(dialect.All(), func(d dialect.Dialect) bool { return d == selected })
	q.dialects = append([]dialect.Dialect{selected}, others...)
	q.tokens = tokens
	switch {
	case len(tokens) == 0:
		return errors.New("-token: no name given")
	case q.page && q.robots != "":
		return errors.New("-page cannot be used with -robots, because a file has no pages")
	}
	if err := q.setURLs(args); err != nil {
		return err
	}
	robots, err := collyrobots.New(collyrobots.Dialect(selected), collyrobots.ProductToken(tokens...)) // checks the names
	return errors.Join(err, robots.Close())
}

// setURLs sets the URLs. With -robots, they may be paths.
func (q *question) setURLs(args []string) error {
	var faults []error
	for _, arg := range args {
		u, err := input.URL(arg)
		switch {
		case q.robots != "" && strings.HasPrefix(arg, "/"):
			u = arg
		case err != nil:
			faults = append(faults, err)
		}
		q.urls = append(q.urls, u)
		q.written = append(q.written, arg)
	}
	return errors.Join(faults...)
}

// print prints the answers and a line with their numbers, and returns the exit status.
func (q *question) print(w io.Writer, answers []*answer) (status int) {
	denied := 0
	failed := 0
	for _, a := range answers {
		switch {
		case a.Error != "":
			failed++
		case !a.Allowed:
			denied++
		}
		switch {
		case q.json:
			term.JSONLine(w, a)
		case a.Error == "":
			a.print(w, q)
		}
	}
	if len(answers) > 1 && !q.json {
		fmt.Fprintf(w, "%s: %d allowed, %d denied, %d not answered\n", term.Number(len(answers), "URL"), len(answers)-denied-failed, denied, failed)
	}
	switch {
	case failed > 0:
		return cli.Failed
	case denied > 0:
		return cli.Negative
	}
	return cli.OK
}

// hint proposes another URL for one that was not answered. The command has added the scheme https.
func (a *answer) hint() string {
	host, _, _ := strings.Cut(a.written, "/")
	if strings.HasSuffix(host, ":") || !strings.Contains(host, ":") {
		return "" // there is a scheme, or the port is not unusual
	}
	return "; if the host has no TLS, use http://" + a.written
}

// agree reports whether all dialects come to the same verdict.
func (a *answer) agree() bool {
	return !slices.ContainsFunc(a.Readings, func(r reading) bool { return r.Allowed != a.Allowed })
}
