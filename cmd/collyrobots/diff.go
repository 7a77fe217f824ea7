package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

const diffUsage = `Usage: collyrobots diff [flags] OLD NEW

Shows what changes for crawlers between two robots.txt files: rules, crawl delays and sitemaps, by
group. Comments, blank lines and the order of lines do not count. A file may be - for standard input,
or a host or URL whose robots.txt is fetched. With -urls or -sitemaps, it also shows which URLs are
decided about differently.

The exit status is 0 if nothing changes, 1 if something does, and 2 if a file could not be read.`

// A comparison has the arguments of the command diff.
type comparison struct {
	dialect  dialect.Dialect
	tokens   []string
	urls     string // the name of a list of URLs
	sitemaps bool   // compare the decisions about the URLs of the sitemaps
	json     bool
	timeout  time.Duration
	width    int
	paint    term.Painter

	old, new robotsText
}

// A change is a difference between two robots.txt files.
type change struct {
	Kind    string `json:"kind"`              // "rule", "delay", "sitemap" or "verdict"
	Crawler string `json:"crawler,omitempty"` // the name of the group, of a rule or a delay
	URL     string `json:"url,omitempty"`     // of a verdict
	Old     string `json:"old,omitempty"`     // "" if it was added
	OldLine int    `json:"old_line,omitempty"`
	New     string `json:"new,omitempty"` // "" if it was removed
	NewLine int    `json:"new_line,omitempty"`
}

// runDiff runs the command diff.
func runDiff(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	c := &comparison{width: term.Width(stdout), paint: term.NewPainter(stdout)}
	flags := flag.NewFlagSet("diff", flag.ContinueOnError)
	flags.TextVar(&c.dialect, "dialect", dialect.RFC9309(), "read the files in this `dialect`: "+term.List(dialect.All()))
	token := flags.String("token", "ExampleBot", "comma-separated `names` of the crawler for -urls and -sitemaps")
	flags.StringVar(&c.urls, "urls", "", "compare the decisions about the URLs or paths in this `file`, one in a line; - is standard input")
	flags.BoolVar(&c.sitemaps, "sitemaps", false, "compare the decisions about the URLs in the sitemaps that the files list")
	flags.BoolVar(&c.json, "json", false, "print one line of JSON for each change")
	flags.DurationVar(&c.timeout, "timeout", 20*time.Second, "give up a host that has not answered after this `time`")
	if err := cli.Parse(flags, diffUsage, args, stderr); err != nil {
		return cli.Fail(stderr, "diff", err)
	}
	c.tokens = input.Names(*token)
	changes, err := c.run(ctx, flags.Args(), stdin, stderr)
	if err != nil {
		return cli.Fail(stderr, "diff", err)
	}
	w := bufio.NewWriter(stdout)
	c.write(w, changes)
	err = w.Flush()
	switch {
	case err != nil:
		return cli.Fail(stderr, "diff", err)
	case len(changes) > 0:
		return cli.Negative
	}
	return cli.OK
}

// run reads the files and returns the changes.
func (c *comparison) run(ctx context.Context, args []string, stdin io.Reader, stderr io.Writer) ([]change, error) {
	args, err := input.Arguments(args, "", nil)
	switch {
	case err != nil:
		return nil, err
	case len(args) != 2:
		return nil, errors.New("two files or URLs are needed; collyrobots diff -h prints the usage")
	case c.urls == "-" && slices.Contains(args, "-"):
		return nil, errors.New("standard input can be a file or the list of -urls, but not both")
	}
	for i, text := range []*robotsText{&c.old, &c.new} {
		texts, err := readRobots(ctx, args[i:i+1], stdin, c.timeout, stderr)
		if err != nil {
			return nil, err
		}
		*text = texts[0]
	}
	changes := append(c.groups(), c.sitemapLines()...)
	verdicts, err := c.verdicts(ctx, stdin, stderr)
	return append(changes, verdicts...), err
}

// groups returns the changes of rules and delays. Each pair of groups is compared once.
func (c *comparison) groups() (changes []change) {
	before := c.dialect.Parse(c.old.body)
	after := c.dialect.Parse(c.new.body)
	seen := make(map[[2]string]bool)
	names := append([]string{"*"}, lint.Crawlers(c.old.body)...)
	for _, name := range append(names, lint.Crawlers(c.new.body)...) {
		tokens := []string{name}
		if name == "*" {
			tokens = nil
		}
		a := before.Group(tokens...)
		b := after.Group(tokens...)
		pair := [2]string{strings.ToLower(a.Name()), strings.ToLower(b.Name())}
		if seen[pair] {
			continue
		}
		seen[pair] = true
		changes = append(changes, compareRules(name, a.Rules(), b.Rules())...)
		oldDelay, _ := a.CrawlDelay()
		newDelay, _ := b.CrawlDelay()
		if oldDelay != newDelay {
			changes = append(changes, change{Kind: "delay", Crawler: name, Old: term.Delay(oldDelay), OldLine: a.DelayLine(), New: term.Delay(newDelay), NewLine: b.DelayLine()})
		}
	}
	return changes
}

// compareRules returns the rules that only one of two groups has, in the order of the lines.
func compareRules(crawler string, before, after []dialect.Rule) (changes []change) {
	equal := func(a, b dialect.Rule) bool { return a.Allow == b.Allow && a.Pattern == b.Pattern }
	for _, r := range without(before, after, equal) {
		changes = append(changes, change{Kind: "rule", Crawler: crawler, Old: r.String(), OldLine: r.Line})
	}
	for _, r := range without(after, before, equal) {
		changes = append(changes, change{Kind: "rule", Crawler: crawler, New: r.String(), NewLine: r.Line})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.OldLine+a.NewLine, b.OldLine+b.NewLine) })
	return slices.CompactFunc(changes, func(a, b change) bool { // a dialect may read a line in several forms
		return a.OldLine == b.OldLine && a.NewLine == b.NewLine
	})
}

// without returns the values that are equal to none of the others.
func without[T any](values, others []T, equal func(a, b T) bool) []T {
	return slices.DeleteFunc(slices.Clone(values), func(v T) bool {
		return slices.ContainsFunc(others, func(other T) bool { return equal(v, other) })
	})
}

// sitemapLines returns the sitemaps that only one of the files lists.
func (c *comparison) sitemapLines() (changes []change) {
	before := c.dialect.Parse(c.old.body).Sitemaps()
	after := c.dialect.Parse(c.new.body).Sitemaps()
	equal := func(a, b string) bool { return a == b }
	for _, u := range without(before, after, equal) {
		changes = append(changes, change{Kind: "sitemap", Old: u})
	}
	for _, u := range without(after, before, equal) {
		changes = append(changes, change{Kind: "sitemap", New: u})
	}
	return changes
}

// write writes the changes and a line with their numbers.
func (c *comparison) write(w io.Writer, changes []change) {
	if c.json {
		for _, change := range changes {
			term.JSONLine(w, change)
		}
		return
	}
	counts := make(map[string]int)
	head := ""
	for _, change := range changes {
		counts[change.Kind]++
		if h := change.head(); h != head {
			head = h
			term.Fprintf(w, "%s\n", h)
		}
		c.printChange(w, change)
	}
	if len(changes) == 0 {
		term.Fprintf(w, "No changes between %s and %s\n", c.old.name, c.new.name)
		return
	}
	term.Paragraph(w, fmt.Sprintf("Changes: %s, %s, %s, %s", term.Number(counts["rule"], "rule"), term.Number(counts["delay"], "delay"),
		term.Number(counts["sitemap"], "sitemap"), term.Number(counts["verdict"], "verdict")), 4, c.width)
}

// head returns the line above changes of this kind.
func (c change) head() string {
	switch c.Kind {
	case "sitemap":
		return "Sitemaps:"
	case "verdict":
		return "Verdicts:"
	}
	return "User-agent: " + c.Crawler
}

// printChange prints one or two lines about a change.
func (c *comparison) printChange(w io.Writer, change change) {
	prefix := ""
	switch change.Kind {
	case "verdict":
		color := term.Red
		if change.New == verdict(true) {
			color = term.Green
		}
		c.printLine(w, "! ", color, fmt.Sprintf("%s: %s, was %s", change.URL, change.New+lineText(change.NewLine), change.Old+lineText(change.OldLine)))
		return
	case "delay":
		prefix = "Crawl-delay "
	}
	if change.Old != "" {
		c.printLine(w, "- ", term.Red, prefix+change.Old+lineText(change.OldLine))
	}
	if change.New != "" {
		c.printLine(w, "+ ", term.Green, prefix+change.New+lineText(change.NewLine))
	}
}

// printLine prints a text with a colored mark before it.
func (c *comparison) printLine(w io.Writer, mark string, color term.Color, text string) {
	term.PaintedParagraph(w, "  "+mark+term.Safe(text), 6, c.width, mark, c.paint.Paint(color, mark))
}

// lineText returns a line number in parentheses, or "" if there is none.
func lineText(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line)
}
