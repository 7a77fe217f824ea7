package plan

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// A site is a host of the plan.
type site struct {
	host string     // in normal form
	urls []*url.URL // the URLs to try, in this order

	waiting int // the number of its pages that wait in the frontier; 0 if the site is not from a frontier
}

// A skippedLine is a line of the file that is not a host or a URL.
type skippedLine struct {
	Line int    `json:"line"` // the number of the line, from 1
	Text string `json:"text"`
}

// readSites reads the sites from the command line or from a file. The argument - alone stands for
// standard input.
func (j *job) readSites(args []string, file string, stdin io.Reader) error {
	if file == "" && len(args) == 1 && args[0] == "-" {
		file = "-"
		args = nil
	}
	switch {
	case file == "" && len(args) == 0:
		return errors.New("no site given; collyrobots plan -h prints the usage")
	case file != "" && len(args) > 0:
		return fmt.Errorf("-from takes all sites from the file; remove the argument %s", term.Safe(args[0]))
	case file != "":
		return j.readFile(file, stdin)
	}
	seen := make(map[string]bool)
	for _, arg := range args {
		s, ok := parseSite(arg)
		switch {
		case strings.HasPrefix(arg, "-"):
			return fmt.Errorf("%s: flags must come before the sites", term.Safe(arg))
		case !ok:
			return fmt.Errorf("%s is not a host or a URL of a web page, such as example.com or https://example.com/", shortened(term.Safe(arg)))
		}
		j.add(s, seen)
	}
	return nil
}

// readFile reads the sites from a file, or from standard input if the name is "-".
func (j *job) readFile(file string, stdin io.Reader) error {
	seen := make(map[string]bool)
	err := input.Lines(file, stdin, func(number int, text string) {
		text, _, _ = strings.Cut(text, "#")
		text = strings.TrimSpace(text)
		if s, ok := parseSite(text); ok {
			j.add(s, seen)
		} else {
			j.skipped = append(j.skipped, skippedLine{Line: number, Text: text})
		}
	})
	if file == "-" {
		file = "standard input"
	}
	switch {
	case err != nil:
		return err
	case len(j.sites) == 0 && len(j.skipped) > 0:
		return fmt.Errorf("%s contains no host: line %d is %s", file, j.skipped[0].Line, shortened(j.skipped[0].Text))
	case len(j.sites) == 0:
		return fmt.Errorf("%s is empty", file)
	}
	return nil
}

func (j *job) add(s site, seen map[string]bool) {
	if seen[s.host] {
		j.repeats++
		return
	}
	seen[s.host] = true
	j.sites = append(j.sites, s)
}

// parseSite parses a host or a URL. For a host, https is tried before http.
func parseSite(text string) (s site, ok bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) || strings.HasPrefix(text, "-") {
		return s, false
	}
	schemes := []string{"https://", "http://"}
	if strings.Contains(text, "://") {
		schemes = []string{""}
	} else if strings.Contains(text, "@") {
		return s, false // an email address
	}
	for _, scheme := range schemes {
		u, err := url.Parse(scheme + text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Hostname(), ".") == "" || strings.Contains(u.Hostname(), "..") {
			return s, false
		}
		a, err := dialect.AuthorityOf(u)
		if err != nil || strings.ContainsAny(u.Hostname(), `,;"'<>()!?*`) {
			return s, false
		}
		if u.Path == "" {
			u.Path = "/"
		}
		s.host = a.Host
		s.urls = append(s.urls, u)
	}
	return s, true
}

// printSkipped prints which lines of the file were skipped.
func (j *job) printSkipped(w io.Writer) {
	for i, l := range j.skipped {
		if i == 5 {
			term.Fprintf(w, "collyrobots plan: skipped %s\n", term.Number(len(j.skipped)-i, "more line"))
			break
		}
		term.Fprintf(w, "collyrobots plan: skipped line %d, which is not a host or a URL: %s\n", l.Line, shortened(l.Text))
	}
	if j.repeats > 0 {
		term.Fprintf(w, "collyrobots plan: ignored %s\n", term.Number(j.repeats, "duplicate host"))
	}
}

// shortened cuts a text to at most 60 characters.
func shortened(text string) string {
	if line := []rune(text); len(line) > 60 {
		return string(line[:59]) + "…"
	}
	return text
}
