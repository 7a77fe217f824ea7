package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// A robotsText is a robots.txt that a command has read.
type robotsText struct {
	name string // as the argument names it, or its URL
	url  string // its URL; "" if it is from a file
	body []byte
}

// readRobots reads the robots.txt files that arguments name: files, - for standard input, and hosts
// or URLs of sites. The files are in the order of the arguments. It may return files and an error,
// if only some of them could be read.
func readRobots(ctx context.Context, args []string, stdin io.Reader, timeout time.Duration, stderr io.Writer) ([]robotsText, error) {
	var faults []error
	texts := make([]robotsText, len(args))
	q := &question{
		dialects:  []dialect.Dialect{dialect.RFC9309()},
		tokens:    []string{"ExampleBot"},
		timeout:   timeout,
		transport: http.DefaultTransport,
		progress:  term.NewDisplay(stderr),
	}
	var sites []int // the indexes of the arguments that are URLs
	for i, arg := range args {
		var err error
		switch {
		case arg == "-":
			texts[i] = robotsText{name: "standard input"}
			texts[i].body, err = readFile(arg, stdin)
		case input.IsFile(arg):
			texts[i] = robotsText{name: arg}
			texts[i].body, err = readFile(arg, stdin)
		default:
			var u string
			u, err = input.URL(arg)
			if err == nil {
				q.urls = append(q.urls, u)
				q.written = append(q.written, arg)
				sites = append(sites, i)
			}
		}
		if err != nil {
			texts[i] = robotsText{}
			faults = append(faults, err)
		}
	}
	faults = append(faults, q.readSites(ctx, texts, sites))
	return compact(texts), errors.Join(faults...)
}

// maxRobots is the number of bytes that are read from a file or from standard input. It is larger than
// what any dialect reads.
const maxRobots = 4 * dialect.SizeLimit

// readFile returns the first bytes of a robots.txt, at most maxRobots.
func readFile(name string, stdin io.Reader) ([]byte, error) {
	f, err := input.Open(name, stdin)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRobots))
}

// readSites reads the robots.txt files of the URLs of q. The i-th URL belongs to texts[sites[i]].
func (q *question) readSites(ctx context.Context, texts []robotsText, sites []int) error {
	if len(sites) == 0 {
		return nil
	}
	files := robotsfile.New(q.transport)
	answers, err := q.askWeb(ctx, files)
	q.progress.Close()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	faults := []error{err}
	seen := make(map[string]bool)
	for i, a := range answers {
		body, ok := files.Text(a.Robots)
		switch {
		case a.Error != "":
			faults = append(faults, fmt.Errorf("cannot ask %s: %s", a.URL, a.Error))
		case seen[a.Robots]:
		case !ok || a.Status < 200 || a.Status > 299:
			faults = append(faults, fmt.Errorf("cannot read %s: status %d", a.Robots, a.Status))
		default:
			texts[sites[i]] = robotsText{name: a.Robots, url: a.Robots, body: body}
		}
		seen[a.Robots] = true
	}
	return errors.Join(faults...)
}

// compact returns the texts that were read.
func compact(texts []robotsText) (read []robotsText) {
	for _, text := range texts {
		if text.name != "" {
			read = append(read, text)
		}
	}
	return read
}
