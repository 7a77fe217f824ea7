package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/conformance/runner"
	"github.com/collyrobots/collyrobots/conformance/runner/crawl"
)

const conformUsage = `Usage: collyrobots conform [flags] [-- PROGRAM [ARGUMENT...]]

Runs the conformance suite on a parser of robots.txt, and prints the cases that it fails and a score
for each dialect. The program reads one case per line as JSON from its standard input:

  {"id": "...", "dialect": "rfc9309", "robots": "User-agent: *\n", "agent": "ExampleBot",
   "url": "https://example.com/"}

It writes one line for each to its standard output, in the same order. Only allowed is required:

  {"allowed": true, "line": 0, "delay": 0, "sitemaps": []}

With -fetch, the program is a crawler. It gets the URL of a site on the loopback interface and URLs
to fetch, fetches those that the robots.txt of the site allows, and then writes a line:

  {"id": "...", "dialect": "rfc9309", "agent": "ExampleBot", "site": "http://127.0.0.1:1234",
   "fetch": ["http://127.0.0.1:1234/open"]}
  {}

If the program does not answer a case within the time of -wait, the case is failed, and the program
is killed and started again with the cases after it. Name the parser itself after --, not a program
such as "go run" that starts it, because only the named program is killed.

Without a program, the suite runs on the parser or the crawler of collyrobots. The exit status is 0
if all cases are passed, 1 if not, and 2 if the program has not answered all questions.
conformance/README.md has the details.`

// runConform runs the command conform.
func runConform(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("conform", flag.ContinueOnError)
	selection := runner.Selection{}
	flags.StringVar(&selection.Dialect, "dialect", "", "run only the cases of this `dialect`")
	flags.StringVar(&selection.Pattern, "run", "", "run only the cases whose id begins with this `text`, or matches it if it contains *, ? or [")
	skip := flags.String("skip", "", "do not run the cases whose id begins with one of these comma-separated `texts`, or matches it as in -run")
	fetch := flags.Bool("fetch", false, "run the fetch cases on a crawler instead")
	asJSON := flags.Bool("json", false, "print one line of JSON for each case and dialect, disputed cases included")
	wait := flags.Duration("wait", 5*time.Second, "give up a case that is not answered within this `time`; the first answer may take six times as long; 0 is no limit; with -fetch, there is none")
	limit := flags.Duration("timeout", 5*time.Minute, "end the run after this `time`")
	if err := cli.Parse(flags, conformUsage, args, stderr); err != nil {
		return cli.Fail(stderr, "conform", err)
	}
	selection.Skip = input.Names(*skip)
	progress := term.NewDisplay(stderr)
	suite := runner.Suite
	if *fetch {
		suite = crawl.Suite
	}
	var program *runner.Program
	if flags.NArg() > 0 {
		program = &runner.Program{Args: flags.Args(), Stderr: stderr, Limit: *limit, AnswerLimit: *wait}
		showAnswers(program, progress)
	}
	report, err := suite(ctx, program, selection)
	progress.Close()
	if report != nil {
		write := report.WriteText
		if *asJSON {
			write = report.WriteJSON
		}
		err = cmp.Or(write(stdout), err)
	}
	switch {
	case err != nil:
		return cli.Fail(stderr, "conform", err)
	case !report.Passed():
		return cli.Negative
	}
	return cli.OK
}

// showAnswers shows how many answers of a program have arrived.
func showAnswers(program *runner.Program, progress *term.Display) {
	n := 0
	show := func() { progress.Show(fmt.Sprintf("%s of %s", term.Number(n, "answer"), program.Args[0])) }
	program.OnAnswer = func() {
		n++
		show()
	}
	show()
}
