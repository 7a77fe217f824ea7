package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/batch"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/dialect"
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

With -purpose, the output says for each site whether the owner allows a use of the page of -url, or /.
A line may also have the TDMRep file, the headers and the HTML of the page, in tdmrep, header and html.
docs/tools/command.md has the details.`

// runBatch runs the command batch.
func runBatch(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	var options batch.Options
	flags.TextVar(&options.Dialect, "dialect", dialect.RFC9309(), "decide in this `dialect`")
	agents := flags.String("agent", "", "the comma-separated `names` of crawlers for records without an agent")
	purpose := flags.String("purpose", "", "say whether the page may be used for this `use`: search, ai-use or train-ai")
	flags.Func("url", "a `URL` or path for records without URLs; may be repeated", func(u string) error {
		options.URLs = append(options.URLs, u)
		return nil
	})
	if err := cli.ParseOnly(flags, batchUsage, args, stderr); err != nil {
		return cli.Fail(stderr, "batch", err)
	}
	options.Agents = input.Names(*agents)
	use, err := input.Purpose(*purpose)
	if err != nil {
		return cli.Fail(stderr, "batch", fmt.Errorf("-purpose %w", err))
	}
	if use != 0 {
		return runPurpose(options, use, stdin, stdout, stderr)
	}
	out := bufio.NewWriter(stdout)
	summary, err := batch.Run(stdin, out, options)
	if err := errors.Join(err, out.Flush()); err != nil {
		return cli.Fail(stderr, "batch", err)
	}
	if summary.Errors > 0 {
		fmt.Fprintf(stderr, "collyrobots batch: %d of %d records or URLs could not be read\n", summary.Errors, summary.Errors+summary.Decisions)
		return cli.Negative
	}
	return cli.OK
}

// runPurpose runs the command batch with -purpose.
func runPurpose(options batch.Options, purpose usage.Purpose, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	out := bufio.NewWriter(stdout)
	summary, err := batch.RunPurpose(stdin, out, options, purpose)
	if err := errors.Join(err, out.Flush()); err != nil {
		return cli.Fail(stderr, "batch", err)
	}
	fmt.Fprintf(stderr, "collyrobots batch: %d lines: %d denied, %d disallowed, %d allowed, %d unknown; %d contradict themselves; %d errors\n",
		summary.Lines, summary.Permissions[batch.Denied], summary.Permissions[batch.Disallowed], summary.Permissions[batch.Allowed],
		summary.Permissions[batch.Unknown], summary.Contradictory, summary.Errors)
	if summary.Errors > 0 {
		return cli.Negative
	}
	return cli.OK
}
