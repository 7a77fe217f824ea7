package main

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/internal/conform"
)

const conformUsage = `Usage: collyrobots conform [flags] [-- PROGRAM [ARGUMENT...]]

Runs the conformance suite on a parser of robots.txt, and prints the cases that it fails and a score
for each dialect. The program reads one case per line as JSON from its standard input:

  {"id": "...", "dialect": "rfc9309", "robots": "User-agent: *\n", "agent": "ExampleBot", "url": "https://example.com/"}

It writes one line for each to its standard output, in the same order. Only allowed is required:

  {"allowed": true, "line": 0, "delay": 0, "sitemaps": []}

A file that is not valid UTF-8 is in robots_base64 instead of robots. Without a program, the suite
runs on the parser of collyrobots. The exit status is 0 if all cases are passed, 1 if not, and 2 if
the program could not be run to its end. conformance/README.md has the details.`

// runConform runs the command conform.
func runConform(args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("conform", flag.ContinueOnError)
	selection := conform.Selection{}
	flags.StringVar(&selection.Dialect, "dialect", "", "run only the cases of this `dialect`")
	flags.StringVar(&selection.Pattern, "run", "", "run only the cases whose id begins with this `text`, or matches it if it contains *, ? or [")
	asJSON := flags.Bool("json", false, "print one line of JSON for each case and dialect, disputed cases included")
	limit := flags.Duration("timeout", 5*time.Minute, "kill the program after this `time`")
	if status, ok := parseFlags(flags, conformUsage, args, stderr); !ok {
		return status
	}
	results, err := conform.Run(context.Background(), parserOf(flags.Args(), *limit, stderr), conformance.Cases(), selection)
	if results == nil {
		return fail(stderr, "conform", err)
	}
	write := conform.WriteText
	if *asJSON {
		write = conform.WriteJSON
	}
	if err := write(stdout, results); err != nil {
		return fail(stderr, "conform", err)
	}
	switch {
	case err != nil:
		return fail(stderr, "conform", err)
	case !allPassed(results):
		return statusNegative
	}
	return statusOK
}

// parserOf returns the parser that the arguments name: a program, or our own if there are none.
func parserOf(args []string, limit time.Duration, stderr io.Writer) conform.Parser {
	if len(args) == 0 {
		return conform.Own
	}
	program := &conform.Program{Args: args, Stderr: stderr, Limit: limit}
	return program.Ask
}

// allPassed reports whether all cases are passed that are not disputed.
func allPassed(results []conform.Result) bool {
	for _, s := range conform.Scores(results) {
		if s.Passed < s.Cases {
			return false
		}
	}
	return true
}
