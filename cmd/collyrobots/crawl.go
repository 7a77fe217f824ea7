package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/crawl"
)

// runCrawl runs the command crawl. A second Ctrl-C ends the program at once.
func runCrawl(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return crawl.Run(ctx, args, stdin, stdout, stderr)
}

// runReport runs the command report.
func runReport(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	return crawl.RunReport(args, stdin, stdout, stderr)
}
