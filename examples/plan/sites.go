package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A site is a host that is to be planned.
type site struct {
	host string     // in normal form
	urls []*url.URL // where it may be found, to be tried in this order
}

// A skippedLine names no host.
type skippedLine struct {
	Line int    `json:"line"` // of the file, from 1
	Text string `json:"text"`
}

// readSites reads the sites of the command line, or of a file.
func (j *job) readSites(args []string, file string, stdin io.Reader) error {
	switch {
	case file == "" && len(args) == 0:
		return errors.New("which site? (plan -h tells more)")
	case file != "" && len(args) > 0:
		return fmt.Errorf("%s: with -hosts all sites are in the file", term.Safe(args[0]))
	case file != "":
		return j.readFile(file, stdin)
	}
	seen := make(map[string]bool)
	for _, arg := range args {
		s, ok := parseSite(arg)
		switch {
		case strings.HasPrefix(arg, "-"):
			return fmt.Errorf("%s: flags come before the sites", term.Safe(arg))
		case !ok:
			return fmt.Errorf("%s is no host and no URL of a web page, such as example.com or https://example.com/", term.Safe(arg))
		}
		j.add(s, seen)
	}
	return nil
}

func (j *job) readFile(file string, stdin io.Reader) error {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		stdin = f
	} else {
		file = "standard input"
	}
	seen := make(map[string]bool)
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\ufeff"), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if s, ok := parseSite(line); ok {
			j.add(s, seen)
		} else {
			j.skipped = append(j.skipped, skippedLine{n, line})
		}
	}
	switch {
	case lines.Err() != nil:
		return fmt.Errorf("%s: %w", file, lines.Err())
	case len(j.sites) == 0 && len(j.skipped) > 0:
		return fmt.Errorf("%s names no host: line %d is %s", file, j.skipped[0].Line, shortened(j.skipped[0].Text))
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

// parseSite returns the site that a text names: a host, for which https is tried before http, or a
// URL.
func parseSite(text string) (s site, ok bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) || strings.HasPrefix(text, "-") {
		return s, false
	}
	schemes := []string{"https://", "http://"}
	if strings.Contains(text, "://") {
		schemes = []string{""}
	} else if strings.Contains(text, "@") {
		return s, false // an address of mail
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
		s.host, s.urls = a.Host, append(s.urls, u)
	}
	return s, true
}

// tellSkipped says which lines of the file are left out.
func (j *job) tellSkipped(w io.Writer) {
	for i, l := range j.skipped {
		if i == 5 {
			term.Fprintf(w, "plan: and %s more that name no host\n", term.Number(len(j.skipped)-i, "line"))
			break
		}
		term.Fprintf(w, "plan: line %d names no host and is left out: %s\n", l.Line, shortened(l.Text))
	}
	if j.repeats > 0 {
		term.Fprintf(w, "plan: %s named more than once, which counts once\n", term.Number(j.repeats, "host"))
	}
}

// shortened returns what of a text is worth reading.
func shortened(text string) string {
	if line := []rune(text); len(line) > 60 {
		return string(line[:59]) + "…"
	}
	return text
}
