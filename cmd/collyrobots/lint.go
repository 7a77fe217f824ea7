package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

const lintUsage = `Usage: collyrobots lint [flags] FILE|URL|-...

Finds the parts of robots.txt files that probably do not do what their author wants. An argument is a
file, - for standard input, or a host or URL whose robots.txt is fetched. docs/reference/findings.md lists the
findings.

The exit status is 0 if there are no errors and warnings, 1 if there are some, and 2 if a file could
not be read. Notes do not count.`

// A linter has the arguments of the command lint.
type linter struct {
	options lint.Options
	args    []string
	site    string // the URL of the site of files
	quiet   bool   // omit notes
	format  string // "", "json", "sarif" or "github"
	timeout time.Duration
	width   int
	paint   term.Painter
}

// A listing has the findings in one robots.txt.
type listing struct {
	name     string
	findings []lint.Finding
}

// runLint runs the command lint.
func runLint(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	l := &linter{width: term.Width(stdout), paint: term.NewPainter(stdout)}
	if err := l.parse(args, stdin, stderr); err != nil {
		return cli.Fail(stderr, "lint", err)
	}
	texts, err := readRobots(ctx, l.args, stdin, l.timeout, stderr)
	var reports []listing
	for _, text := range texts {
		reports = append(reports, l.lint(text))
	}
	err = errors.Join(l.write(stdout, reports), err)
	if err != nil {
		return cli.Fail(stderr, "lint", err)
	}
	if errors, warnings, _ := count(reports); errors+warnings > 0 {
		return cli.Negative
	}
	return cli.OK
}

// parse parses the arguments.
func (l *linter) parse(args []string, stdin io.Reader, stderr io.Writer) error {
	flags := flag.NewFlagSet("lint", flag.ContinueOnError)
	names := flags.String("dialect", term.List(lint.DefaultDialects()), "comma-separated `dialects` to read the file in, or all")
	ignore := flags.String("ignore", "", "comma-separated `ids` of findings that are not reported")
	from := flags.String("from", "", "read more arguments from this `file`, one in a line; - is standard input")
	flags.StringVar(&l.site, "site", "", "the `URL` of the site that files belong to")
	flags.BoolVar(&l.quiet, "quiet", false, "do not report notes")
	flags.DurationVar(&l.timeout, "timeout", 20*time.Second, "give up a host that has not answered after this `time`")
	for name, usage := range map[string]string{
		"json":   "print one line of JSON for each finding",
		"sarif":  "print a SARIF 2.1.0 log",
		"github": "print commands that annotate files in GitHub Actions",
	} {
		flags.BoolFunc(name, usage, func(string) error {
			l.format = name
			return nil
		})
	}
	if err := cli.Parse(flags, lintUsage, args, stderr); err != nil {
		return err
	}
	args, err := input.Arguments(flags.Args(), *from, stdin)
	if err == nil && len(args) == 0 {
		err = errors.New("no file or URL given; collyrobots lint -h prints the usage")
	}
	l.args = args
	return errors.Join(err, l.set(*names, *ignore))
}

// set sets the options from lists of names.
func (l *linter) set(names, ignore string) error {
	if names == "all" {
		l.options.Dialects = dialect.All()
		names = ""
	}
	for _, name := range input.Names(names) {
		d, ok := dialect.ByName(name)
		if !ok {
			return fmt.Errorf("-dialect %s: unknown dialect; use all or some of %s", term.Safe(name), term.List(dialect.All()))
		}
		l.options.Dialects = append(l.options.Dialects, d)
	}
	l.options.Ignore = input.Names(ignore)
	for _, id := range l.options.Ignore {
		if !lint.Known(id) {
			return fmt.Errorf("-ignore %s: there is no such finding; docs/reference/findings.md lists them", term.Safe(id))
		}
	}
	if l.site == "" {
		return nil
	}
	site, err := input.URL(l.site)
	l.site = site
	return err
}

// lint returns the findings in a robots.txt.
func (l *linter) lint(text robotsText) listing {
	options := l.options
	options.URL = text.url
	if options.URL == "" {
		options.URL = l.site
	}
	r := listing{name: text.name}
	for _, f := range lint.Lint(text.body, options) {
		if !l.quiet || f.Severity != lint.Note {
			r.findings = append(r.findings, f)
		}
	}
	return r
}

// count returns the number of findings of each severity.
func count(reports []listing) (errors, warnings, notes int) {
	n := make(map[lint.Severity]int)
	for _, r := range reports {
		for _, f := range r.findings {
			n[f.Severity]++
		}
	}
	return n[lint.Error], n[lint.Warning], n[lint.Note]
}

// write writes the reports in the format of the flags.
func (l *linter) write(stdout io.Writer, reports []listing) error {
	w := bufio.NewWriter(stdout)
	switch l.format {
	case "sarif":
		term.JSON(w, sarifOf(reports))
	case "json":
		for _, r := range reports {
			for _, f := range r.findings {
				term.JSONLine(w, struct {
					File string `json:"file"`
					lint.Finding
				}{r.name, f})
			}
		}
	case "github":
		for _, r := range reports {
			annotate(w, r)
		}
	default:
		l.print(w, reports)
	}
	return w.Flush()
}

var colors = map[lint.Severity]term.Color{lint.Error: term.Red, lint.Warning: term.Yellow, lint.Note: term.Blue}

// print prints a line for each finding in the format of compiler messages, and a line with their
// numbers.
func (l *linter) print(w io.Writer, reports []listing) {
	for _, r := range reports {
		for _, f := range r.findings {
			place := term.Safe(r.name) + ":"
			if f.Line > 0 {
				place += fmt.Sprintf("%d:", f.Line)
			}
			line := fmt.Sprintf("%s %s: %s [%s]", place, f.Severity, term.Safe(f.Text), f.ID)
			if len(f.Dialects) < len(l.options.Dialects) {
				line += " (" + term.List(f.Dialects) + ")"
			}
			word := f.Severity.String() + ":"
			term.PaintedParagraph(w, line, 4, l.width, word, l.paint.Paint(colors[f.Severity], word))
		}
	}
	if len(reports) == 0 {
		return
	}
	errors, warnings, notes := count(reports)
	term.Paragraph(w, fmt.Sprintf("%s: %s, %s, %s", term.Number(len(reports), "file"),
		term.Number(errors, "error"), term.Number(warnings, "warning"), term.Number(notes, "note")), 4, l.width)
}
