package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
)

const versionUsage = `Usage: collyrobots version

Prints the version of this program, the revision that it was built from, and the version of Go.`

// runVersion runs the command version.
func runVersion(_ context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("version", flag.ContinueOnError)
	err := cli.ParseOnly(flags, versionUsage, args, stderr)
	if err == nil {
		_, err = fmt.Fprintln(stdout, versionText(debug.ReadBuildInfo()))
	}
	if err != nil {
		return cli.Fail(stderr, "version", err)
	}
	return cli.OK
}

// versionText returns the line that the command version prints.
func versionText(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "collyrobots, unknown version"
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	text := "collyrobots " + version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			text += " " + setting.Value
		}
	}
	return text + " " + info.GoVersion
}
