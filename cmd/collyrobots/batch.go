package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/batch"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/usage"
)

const batchUsage = `Usage: collyrobots batch [flags] <RECORDS >DECISIONS

Decides about many URLs, on all processors and in bounded memory. The input is JSON lines or a WARC
file, and may be compressed by gzip. A line has a robots.txt, a crawler, and one or more URLs, which
are absolute or begin with /:

  {"robots": "User-agent: *\nDisallow: /x\n", "agent": "ExampleBot", "url": "https://example.com/x"}
  {"file": "robots/example.com.txt", "agent": "ExampleBot", "urls": ["/x", "/y?z"]}

A robots.txt that is not UTF-8 is in robots_base64. From a WARC file, the command reads the
responses to requests for /robots.txt, and decides about the URLs of -url for the crawlers of -agent.

The output has one line for each decision, in the order of the input. line is the line number of the
rule that decides, or 0 if there is none, and sha256 is the hash of the whole robots.txt:

  {"record":1,"agent":"ExampleBot","url":"https://example.com/x","allowed":false,"line":2,"sha256":"..."}

For a record or URL that cannot be read, the output has a line with an error instead. The exit status
is 0 if there are no such lines and 1 if there are some.

With -purpose, the output says for each site whether the owner allows a use of the page of -url, or /:
by the rules of robots.txt, by its Content-Usage and Content-Signal lines, and by the TDMRep file, the
headers and the HTML of the page, if the input has them. It also names sources that contradict each
other. In JSON lines, these are in tdmrep, header and html:

  {"file": "example.com.txt", "header": {"Content-Usage": ["train-ai=n"]}, "html": "<html>..."}`

// runBatch runs the command batch.
func runBatch(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	var options batch.Options
	name := flags.String("dialect", "rfc9309", "decide in this `dialect`")
	agents := flags.String("agent", "", "the comma-separated `names` of crawlers for records without an agent")
	purpose := flags.String("purpose", "", "say whether the page may be used for this `use`: search, ai-use or train-ai")
	flags.Func("url", "a `URL` or path for records without URLs; may be repeated", func(u string) error {
		options.URLs = append(options.URLs, u)
		return nil
	})
	if status, ok := parseFlags(flags, batchUsage, args, stderr); !ok {
		return status
	}
	if flags.NArg() > 0 {
		return fail(stderr, "batch", fmt.Errorf("unexpected argument %q; the records are read from standard input", flags.Arg(0)))
	}
	if err := options.Dialect.UnmarshalText([]byte(*name)); err != nil {
		return fail(stderr, "batch", err)
	}
	options.Agents = input.Names(*agents)
	if *purpose != "" {
		return runPurpose(options, *purpose, stdin, stdout, stderr)
	}
	out := bufio.NewWriter(stdout)
	summary, err := batch.Run(stdin, out, options)
	if err := errors.Join(err, out.Flush()); err != nil {
		return fail(stderr, "batch", err)
	}
	if summary.Errors > 0 {
		fmt.Fprintf(stderr, "collyrobots batch: %d of %d records or URLs could not be read\n", summary.Errors, summary.Errors+summary.Decisions)
		return statusNegative
	}
	return statusOK
}

// purposes are the values of -purpose.
var purposes = map[string]usage.Purpose{"search": usage.Search, "ai-use": usage.AIUse, "train-ai": usage.TrainAI}

// runPurpose runs the command batch with -purpose.
func runPurpose(options batch.Options, name string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	purpose, known := purposes[name]
	if !known {
		return fail(stderr, "batch", fmt.Errorf("unknown purpose %q; use search, ai-use or train-ai", name))
	}
	out := bufio.NewWriter(stdout)
	summary, err := batch.RunPurpose(stdin, out, options, purpose)
	if err := errors.Join(err, out.Flush()); err != nil {
		return fail(stderr, "batch", err)
	}
	fmt.Fprintf(stderr, "collyrobots batch: %d lines: %d denied, %d disallowed, %d allowed, %d unknown; %d contradict themselves; %d errors\n",
		summary.Lines, summary.Permissions[batch.Denied], summary.Permissions[batch.Disallowed], summary.Permissions[batch.Allowed],
		summary.Permissions[batch.Unknown], summary.Contradictory, summary.Errors)
	if summary.Errors > 0 {
		return statusNegative
	}
	return statusOK
}
