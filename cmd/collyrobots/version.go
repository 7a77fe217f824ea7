package main

import (
	"flag"
	"fmt"
	"io"
	"runtime/debug"
)

const versionUsage = `Usage: collyrobots version

Prints the version of this program, the revision that it was built from, and the version of Go.`

// runVersion runs the command version.
func runVersion(args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	flags := flag.NewFlagSet("version", flag.ContinueOnError)
	if status, ok := parseFlags(flags, versionUsage, args, stderr); !ok {
		return status
	}
	if flags.NArg() > 0 {
		return fail(stderr, "version", fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if _, err := fmt.Fprintln(stdout, versionText(debug.ReadBuildInfo())); err != nil {
		return fail(stderr, "version", err)
	}
	return statusOK
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
