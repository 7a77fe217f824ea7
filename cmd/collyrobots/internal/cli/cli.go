// Package cli has what all commands share: the exit statuses, the parsing of flags, and the printing of
// errors.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"syscall"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// The exit statuses of all commands.
const (
	OK       = 0
	Negative = 1 // the work was done, and its result is negative
	Failed   = 2 // the work could not be done
)

// Parse parses the flags of a command. If the arguments ask for help, it prints the usage and the flags,
// and returns flag.ErrHelp.
func Parse(flags *flag.FlagSet, usage string, args []string, stderr io.Writer) error {
	flags.SetOutput(io.Discard) // the caller prints the error
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "%s\n\n", usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
	}
	return err
}

// ParseOnly is like Parse for a command that has flags only.
func ParseOnly(flags *flag.FlagSet, usage string, args []string, stderr io.Writer) error {
	err := Parse(flags, usage, args, stderr)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return err
}

// Fail prints an error of a command, with a prefix before each of its lines, and returns the exit
// status. It prints nothing if the reader of the output has closed its end of a pipe, as head does, or
// if the error is flag.ErrHelp, which is no failure.
func Fail(stderr io.Writer, command string, err error) (status int) {
	if errors.Is(err, flag.ErrHelp) {
		return OK
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrClosedPipe) {
		term.Errors(stderr, "collyrobots "+command, err)
	}
	return Failed
}
