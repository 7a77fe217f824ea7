package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/serve"
)

// runServe runs the command serve. A second Ctrl-C ends the program at once.
func runServe(args []string, _ io.Reader, _, stderr io.Writer) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return serve.Run(ctx, args, stderr)
}
