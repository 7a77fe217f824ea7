// Command picture draws the picture in README.md. It crawls three sites on this machine twice, with
// bare Colly and with collyrobots, and draws when each request arrived.
//
//	picture [-o FILE]
//
// The picture is made only from the access logs of the sites, which package robotstest provides.
// Without -o it is written to standard output. The command takes about nine seconds, because the
// crawl keeps the delays of the sites.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/collyrobots/collyrobots/robotstest"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("picture", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("o", "", "write to this `file` instead of standard output")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "picture: unexpected argument %s; to write to a file, use -o FILE\n", flags.Arg(0))
		return 2
	}
	picture, err := take()
	if err == nil && *file != "" {
		err = os.WriteFile(*file, []byte(picture), 0o644)
	} else if err == nil {
		_, err = io.WriteString(stdout, picture)
	}
	if err != nil {
		fmt.Fprintln(stderr, "picture:", err)
		return 1
	}
	return 0
}

// take runs both crawls and returns the picture.
func take() (string, error) {
	panels := []panel{{title: "Colly alone"}, {title: "The same spider after collyrobots.WithRobots(c)"}}
	for i := range panels {
		web, err := robotstest.Open(sites())
		if err != nil {
			return "", err
		}
		defer web.Close()
		panels[i].log, err = crawl(web, i == 1)
		if err != nil {
			return "", err
		}
	}
	return draw(panels), nil
}
