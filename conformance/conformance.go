// Package conformance is a suite of cases for programs that read robots.txt. Each case is a file, a
// crawler, a URL, and the decision that follows from a published text. The cases are data, so that
// a parser in any language can run them; see README.md. A parser in Go can also import this
// package:
//
//	for _, c := range conformance.Cases() {
//		for _, q := range c.Questions() {
//			faults := c.Check(myParser(q))
//			// ...
//		}
//	}
//
// The cases are in the public domain (CC0); see LICENSE.
package conformance

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

//go:generate go run ./maketable

// Schema is the JSON schema of the cases, of the fetch cases and of the protocol.
//
//go:embed schema.json
var Schema []byte

//go:embed *.jsonl
var files embed.FS

// caseFiles are the files with the cases that Cases returns, in this order.
var caseFiles = []string{"rfc9309", "google", "coccoc", "original1994", "yandex", "seznam"}

// A Source is the passage of a text that a case follows from.
type Source struct {
	Title   string `json:"title"`
	Section string `json:"section"`
	URL     string `json:"url"`
}

// A Case is a file, a question about it, and the answer that follows from a text.
type Case struct {
	// ID is the permanent name of the case. It begins with the name of the text and the section,
	// as in "rfc9309/2.2.1/token-case".
	ID string `json:"id"`

	// About says in one sentence what the case shows.
	About string `json:"about"`

	Source Source `json:"source"`

	// Dialects are the names of the dialects that the answer holds in, as in package dialect.
	Dialects []string `json:"dialects"`

	// Robots is the file.
	Robots []byte `json:"-"`

	// Agent is the product token of the crawler, as in "ExampleBot".
	Agent string `json:"agent"`

	// URL is the absolute URL that the crawler wants to fetch, on the site of the file.
	URL string `json:"url"`

	// Expect is "allowed" or "denied".
	Expect Verdict `json:"expect"`

	// Line is the line number of the rule that decides, starting at 1, or 0 if no rule matches. If
	// it is nil, the text leaves open which rule decides, or the case does not ask.
	Line *int `json:"line,omitempty"`

	// Delay is the crawl delay of the crawler in seconds, or 0 if there is none. If it is nil, the
	// case does not ask.
	Delay *float64 `json:"delay,omitempty"`

	// Sitemaps are the values of the Sitemap lines in the order of the file. If it is nil, the case
	// does not ask.
	Sitemaps *[]string `json:"sitemaps,omitempty"`

	// Clean is the URL without the query parameters that Clean-param lines name. If it is empty,
	// the case does not ask.
	Clean string `json:"clean,omitempty"`

	// Time is the time for which Interval and Open ask. It is set if, and only if, one of them is.
	Time time.Time `json:"time,omitzero"`

	// Interval is the number of seconds for each document by the Request-rate that is in force at
	// Time, or 0 if there is none. If it is nil, the case does not ask.
	Interval *float64 `json:"interval,omitempty"`

	// Open says whether requests may be sent at Time: a Visit-time line may forbid it. If it is nil,
	// the case does not ask.
	Open *bool `json:"open,omitempty"`

	// Disputed says that the text can be read in another way or does not define the answer; Reason
	// says which. Such a case is not scored.
	Disputed bool   `json:"disputed,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// A Verdict is the answer that a case expects.
type Verdict string

const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied"
)

// Cases returns all cases, in a constant order. The caller may change the result.
func Cases() []Case {
	var all []Case
	for _, name := range caseFiles {
		for line := range linesOf(name) {
			c, err := ParseCase(line)
			if err != nil {
				panic(fmt.Sprintf("conformance: %s.jsonl: %v", name, err)) // the tests read all files
			}
			all = append(all, c)
		}
	}
	return all
}

// linesOf returns the lines of an embedded file.
func linesOf(name string) iter.Seq[[]byte] {
	data, err := files.ReadFile(name + ".jsonl")
	if err != nil {
		panic(fmt.Sprintf("conformance: %v", err)) // the file is embedded
	}
	return func(yield func([]byte) bool) {
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !yield(lines.Bytes()) {
				return
			}
		}
	}
}

// caseJSON is a case with the three forms of its file. Exactly one form is set.
type caseJSON struct {
	Case
	Robots       *string `json:"robots,omitempty"`
	RobotsBase64 *string `json:"robots_base64,omitempty"`
	RobotsParts  []part  `json:"robots_parts,omitempty"`
}

// A part is a text that is repeated.
type part struct {
	Text  string `json:"text"`
	Times int    `json:"times"`
}

// maxRobots is the maximum size of a file in bytes.
const maxRobots = 4 << 20

// ParseCase parses one line of a file with cases. It returns an error if the line does not have the
// form that README.md describes.
func ParseCase(line []byte) (Case, error) {
	var raw caseJSON
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&raw); err != nil {
		return Case{}, fmt.Errorf("conformance: %w", err)
	}
	body, err := raw.body()
	if err != nil {
		return Case{}, fmt.Errorf("conformance: %s: %w", raw.ID, err)
	}
	c := raw.Case
	c.Robots = body
	if err := c.validate(); err != nil {
		return Case{}, fmt.Errorf("conformance: %s: %w", c.ID, err)
	}
	return c, nil
}

// body returns the file of a case.
func (c *caseJSON) body() ([]byte, error) {
	forms := 0
	for _, set := range []bool{c.Robots != nil, c.RobotsBase64 != nil, c.RobotsParts != nil} {
		if set {
			forms++
		}
	}
	switch {
	case forms != 1:
		return nil, fmt.Errorf("%d of robots, robots_base64 and robots_parts are set, want 1", forms)
	case c.Robots != nil:
		return []byte(*c.Robots), nil
	case c.RobotsBase64 != nil:
		return base64.StdEncoding.DecodeString(*c.RobotsBase64)
	}
	return joinParts(c.RobotsParts)
}

func joinParts(parts []part) ([]byte, error) {
	var body []byte
	for _, p := range parts {
		if p.Times < 1 || p.Times > maxRobots || len(body)+p.Times*len(p.Text) > maxRobots {
			return nil, fmt.Errorf("%d times %d bytes: robots_parts make at most %d bytes", p.Times, len(p.Text), maxRobots)
		}
		body = append(body, bytes.Repeat([]byte(p.Text), p.Times)...)
	}
	return body, nil
}

// validate returns an error if a field has a value that it cannot have.
func (c *Case) validate() error {
	switch {
	case strings.Count(c.ID, "/") < 2 || strings.ContainsAny(c.ID, " \t"):
		return fmt.Errorf("the id must have the form text/section/name")
	case c.About == "" || c.Agent == "" || c.URL == "":
		return fmt.Errorf("about, agent and url must not be empty")
	case c.Source.Title == "" || c.Source.Section == "" || c.Source.URL == "":
		return fmt.Errorf("the source must have a title, a section and a URL")
	case len(c.Dialects) == 0:
		return fmt.Errorf("there are no dialects")
	case c.Expect != Allowed && c.Expect != Denied:
		return fmt.Errorf("expect is %q, want %q or %q", c.Expect, Allowed, Denied)
	case c.Time.IsZero() != (c.Interval == nil && c.Open == nil):
		return fmt.Errorf("a case has a time if, and only if, it has an interval or says whether it is open")
	case c.Disputed != (c.Reason != ""):
		return fmt.Errorf("a case has a reason if, and only if, it is disputed")
	}
	return nil
}

// Has reports whether the case holds in a dialect.
func (c *Case) Has(dialect string) bool { return slices.Contains(c.Dialects, dialect) }
