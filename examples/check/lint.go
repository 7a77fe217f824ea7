package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/robotsfile"
)

// lintFile returns the issues in a file.
func (q *question) lintFile() (*result, error) {
	text, err := os.ReadFile(q.robots)
	if err != nil {
		return nil, err
	}
	r := q.result(nil, issuesOf(q.robots, q.dialects[0], text))
	r.read = []string{q.robots}
	return r, nil
}

// lintWeb returns the issues in the robots.txt files of sites. It may return issues and an error,
// if only some of the files could be read.
func (q *question) lintWeb(ctx context.Context) (*result, error) {
	files := robotsfile.New(q.transport)
	answers, err := q.askDialects(ctx, files, q.dialects[:1])
	if err != nil {
		return nil, err
	}
	r := q.result(nil, nil)
	var faults []error
	seen := make(map[string]bool)
	for _, a := range answers {
		text, ok := files.Text(a.Robots)
		switch {
		case seen[a.Robots]:
		case !ok || a.Status < 200 || a.Status > 299:
			faults = append(faults, fmt.Errorf("cannot check %s: %s", a.Robots, a.Readings[0].Because))
		default:
			r.read = append(r.read, a.Robots)
			r.Issues = append(r.Issues, issuesOf(a.Robots, q.dialects[0], text)...)
		}
		seen[a.Robots] = true
	}
	return r, errors.Join(faults...)
}

// issuesOf returns the issues that a dialect finds in a robots.txt.
func issuesOf(robots string, d dialect.Dialect, text []byte) (issues []issue) {
	for _, i := range d.Lint(text) {
		message := i.Problem.String()
		if i.Detail != "" {
			message += ": " + strings.TrimSpace(i.Detail)
		}
		issues = append(issues, issue{Robots: robots, Line: i.Line, Text: message})
	}
	return issues
}
