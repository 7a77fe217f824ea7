package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/plan"
)

// runPlan runs the command plan. A second Ctrl-C ends the program at once.
func runPlan(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return plan.Run(ctx, args, stdin, stdout, stderr)
}
