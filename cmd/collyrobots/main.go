// Command collyrobots has tools for robots.txt files and for the programs that read them.
//
//	collyrobots COMMAND [ARGUMENT...]
//
// The command help lists the commands. Each command prints its usage if its first argument is -h.
//
// The exit status is 0 if the command has succeeded, 1 if its result is negative, for example
// because a parser has failed a case, and 2 if the command could not do its work.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// The exit statuses of all commands.
const (
	statusOK       = 0
	statusNegative = 1 // the work was done, and its result is negative
	statusFailed   = 2 // the work could not be done
)

// A command is one of the commands of this program.
type command struct {
	name    string
	summary string // one line for the help

	// run runs the command with the arguments after its name and returns the exit status.
	run func(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int)
}

// commands has all commands in the order of the help.
var commands = []command{
	{name: "check", summary: "decide whether a crawler may fetch URLs, and say why", run: runCheck},
	{name: "lint", summary: "find faults in robots.txt files", run: runLint},
	{name: "diff", summary: "show what changes between two robots.txt files", run: runDiff},
	{name: "plan", summary: "estimate how long a crawl will take", run: runPlan},
	{name: "crawl", summary: "crawl sites, obey their robots.txt files, and print a report", run: runCrawl},
	{name: "report", summary: "print the report of a crawl again, from its JSON lines", run: runReport},
	{name: "card", summary: "write the card of a crawler and its web page", run: runCard},
	{name: "conform", summary: "run the conformance suite on a parser of robots.txt", run: runConform},
	{name: "serve", summary: "serve turns to crawlers in any language, over HTTP", run: runServe},
	{name: "batch", summary: "decide about many URLs, on all processors", run: runBatch},
	{name: "audit", summary: "verify the log of a crawl, and show what it did", run: runAudit},
	{name: "version", summary: "print the version of this program", run: runVersion},
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command that args names and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	if len(args) == 0 {
		printHelp(stderr)
		return statusFailed
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		printHelp(stdout)
		return statusOK
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:], stdin, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "collyrobots: unknown command %q; collyrobots help lists the commands\n", args[0])
	return statusFailed
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, "Usage: collyrobots COMMAND [ARGUMENT...]\n\nCommands:\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nRun collyrobots COMMAND -h for the usage of a command.\n")
}

// parseFlags parses the flags of a command. The usage is the text above the list of the flags. If
// ok is false, parseFlags has printed the usage or an error, and the command must return the
// status.
func parseFlags(flags *flag.FlagSet, usage string, args []string, stderr io.Writer) (status int, ok bool) {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stderr, "%s\n", usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return statusOK, false
	case err != nil:
		return fail(stderr, flags.Name(), err), false
	}
	return statusOK, true
}

// fail prints an error of a command, with a prefix before each of its lines, and returns the exit
// status. If the reader of the output has closed its end of a pipe, as head does, fail prints
// nothing.
func fail(stderr io.Writer, name string, err error) (status int) {
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		term.Errors(stderr, "collyrobots "+name, err)
	}
	return statusFailed
}
