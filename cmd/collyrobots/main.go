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
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/crawl"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/plan"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/serve"
)

// A command is one of the commands of this program.
type command struct {
	name    string
	summary string // one line for the help
	stops   bool   // the command ends by itself after Ctrl-C or SIGTERM, which end its context

	// run runs the command with the arguments after its name and returns the exit status.
	run func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int)
}

// commands has all commands in the order of the help.
var commands = []command{
	{name: "check", summary: "decide whether a crawler may fetch URLs, and say why", stops: true, run: runCheck},
	{name: "lint", summary: "find faults in robots.txt files", stops: true, run: runLint},
	{name: "diff", summary: "show what changes between two robots.txt files", stops: true, run: runDiff},
	{name: "plan", summary: "estimate how long a crawl will take", stops: true, run: plan.Run},
	{name: "crawl", summary: "crawl sites, obey their robots.txt files, and print a report", stops: true, run: crawl.Run},
	{name: "report", summary: "print the report of a crawl again, from its JSON lines", run: crawl.RunReport},
	{name: "card", summary: "write the card of a crawler and its web page", run: runCard},
	{name: "conform", summary: "run the conformance suite on a parser of robots.txt", run: runConform},
	{name: "serve", summary: "serve turns to crawlers in any language, over HTTP", stops: true, run: serve.Run},
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
		return cli.Failed
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		printHelp(stdout)
		return cli.OK
	}
	for _, c := range commands {
		if c.name == args[0] {
			ctx, stop := c.context()
			defer stop()
			return c.run(ctx, args[1:], stdin, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "collyrobots: unknown command %q; collyrobots help lists the commands\n", args[0])
	return cli.Failed
}

// context returns the context of a command. A second Ctrl-C ends the program at once.
func (c command) context() (ctx context.Context, stop context.CancelFunc) {
	if !c.stops {
		return context.WithCancel(context.Background())
	}
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, "Usage: collyrobots COMMAND [ARGUMENT...]\n\nCommands:\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\nRun collyrobots COMMAND -h for the usage of a command.\n")
}
