package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A FetchCase is a script for the server of a site, and the requests that a crawler may then send.
// It is about what surrounds the parsing of robots.txt: statuses, redirects, encodings, sizes.
type FetchCase struct {
	ID       string   `json:"id"`
	About    string   `json:"about"`
	Source   Source   `json:"source"`
	Dialects []string `json:"dialects"`
	Agent    string   `json:"agent"` // the product token of the crawler

	// Site and Other are two sites on different ports.
	Site  Script `json:"site"`
	Other Script `json:"other,omitempty"`

	// Fetch has the URLs that the crawler wants to fetch, in this order. Each begins with {site} or
	// {other}.
	Fetch []string `json:"fetch"`

	// Requested has the URLs that the crawler has to request: those of Fetch that are allowed, and
	// what they redirect to. Optional has URLs that it may request. It must not request any other
	// URL, except the targets of redirects of robots.txt.
	Requested []string `json:"requested"`
	Optional  []string `json:"optional,omitempty"`

	// RobotsOnce says that the robots.txt of Site has to be requested once.
	RobotsOnce bool `json:"robots_once,omitempty"`

	Disputed bool   `json:"disputed,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// A Script has the replies of a server by the path of the request. If a path has several replies,
// the first request gets the first reply, and so on, and the last reply is repeated. A path without
// replies has a page, and a Script without /robots.txt answers that request with 404.
type Script map[string][]Reply

// A Reply is a response of a server. The zero value is 200 OK with an empty body.
type Reply struct {
	Status int               `json:"status,omitempty"` // 200 if it is 0
	Header map[string]string `json:"header,omitempty"` // {site} and {other} stand for the URLs of the sites
	Body   string            `json:"body,omitempty"`
	Parts  []part            `json:"parts,omitempty"` // of a long body
	Gzip   bool              `json:"gzip,omitempty"`  // the body is compressed, with its Content-Encoding

	// Drop closes the connection instead of sending a response.
	Drop bool `json:"drop,omitempty"`

	// Missing is the difference in bytes between the Content-Length and the shorter body.
	Missing int `json:"missing,omitempty"`
}

func (r *Reply) validate() error {
	if r.Status != 0 && (r.Status < 200 || r.Status > 999) || r.Missing < 0 {
		return fmt.Errorf("a reply has the status %d and %d missing bytes", r.Status, r.Missing)
	}
	_, err := r.Content()
	return err
}

// Content returns the body of a reply before it is compressed.
func (r *Reply) Content() ([]byte, error) {
	if r.Parts != nil {
		return joinParts(r.Parts)
	}
	return []byte(r.Body), nil
}

// A FetchQuestion is one line that a crawler reads from its standard input: the site of a fetch
// case, and the URLs that it wants to fetch, in this order.
type FetchQuestion struct {
	ID      string   `json:"id"`
	Dialect string   `json:"dialect"`
	Agent   string   `json:"agent"`
	Site    string   `json:"site"` // as in http://127.0.0.1:8080
	Fetch   []string `json:"fetch"`
}

// A FetchAnswer is one line that a crawler writes to its standard output when it has fetched the
// URLs that are allowed. Error says why it could not try.
type FetchAnswer struct {
	Error string `json:"error,omitempty"`
}

// FetchCases returns all fetch cases, in a constant order. The caller may change the result.
func FetchCases() []FetchCase {
	var all []FetchCase
	for line := range linesOf("fetch") {
		c, err := ParseFetchCase(line)
		if err != nil {
			panic(fmt.Sprintf("conformance: fetch.jsonl: %v", err)) // the tests read the file
		}
		all = append(all, c)
	}
	return all
}

// ParseFetchCase parses one line of fetch.jsonl. It returns an error if the line does not have the
// form that README.md describes.
func ParseFetchCase(line []byte) (FetchCase, error) {
	var c FetchCase
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return FetchCase{}, fmt.Errorf("conformance: %w", err)
	}
	if err := c.validate(); err != nil {
		return FetchCase{}, fmt.Errorf("conformance: %s: %w", c.ID, err)
	}
	return c, nil
}

func (c *FetchCase) validate() error {
	shared := Case{
		ID:       c.ID,
		About:    c.About,
		Source:   c.Source,
		Dialects: c.Dialects,
		Agent:    c.Agent,
		URL:      "none",
		Expect:   Allowed,
		Disputed: c.Disputed,
		Reason:   c.Reason,
	}
	if err := shared.validate(); err != nil {
		return err
	}
	if len(c.Fetch) == 0 {
		return fmt.Errorf("there is nothing to fetch")
	}
	for _, u := range slices.Concat(c.Fetch, c.Requested, c.Optional) {
		if !strings.HasPrefix(u, "{site}/") && !strings.HasPrefix(u, "{other}/") {
			return fmt.Errorf("%q does not begin with {site}/ or {other}/", u)
		}
	}
	for _, script := range []Script{c.Site, c.Other} {
		for path, replies := range script {
			if len(replies) == 0 || !strings.HasPrefix(path, "/") {
				return fmt.Errorf("path %q has no replies or does not begin with a slash", path)
			}
			for i := range replies {
				if err := replies[i].validate(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Has reports whether the case holds in a dialect.
func (c *FetchCase) Has(dialect string) bool { return slices.Contains(c.Dialects, dialect) }

// Check returns the faults of the requests that a crawler has sent, or nil if there are none. The
// requests have the form "GET {site}/path" and are in the order of their arrival at the servers.
func (c *FetchCase) Check(requests []string) (faults []string) {
	robots := map[string]int{"{site}": 0, "{other}": 0}
	helpers := c.targetsOfRobots()
	var got []string
	for _, r := range requests {
		method, u, _ := strings.Cut(r, " ")
		site := u[:strings.IndexByte(u, '}')+1]
		switch {
		case u == site+"/robots.txt":
			robots[site]++
			if method != "GET" {
				faults = append(faults, fmt.Sprintf("%s, want GET", r))
			}
		case slices.Contains(helpers, u):
		case robots[site] == 0:
			faults = append(faults, fmt.Sprintf("%s was requested before robots.txt", u))
			got = append(got, u)
		default:
			got = append(got, u)
		}
	}
	for _, u := range got {
		if !slices.Contains(c.Requested, u) && !slices.Contains(c.Optional, u) {
			faults = append(faults, fmt.Sprintf("%s was requested", u))
		}
	}
	for _, u := range c.Requested {
		if !slices.Contains(got, u) {
			faults = append(faults, fmt.Sprintf("%s was not requested", u))
		}
	}
	if c.RobotsOnce && robots["{site}"] != 1 {
		faults = append(faults, fmt.Sprintf("robots.txt was requested %d times, want once", robots["{site}"]))
	}
	return faults
}

// targetsOfRobots returns the targets of the redirects of robots.txt.
func (c *FetchCase) targetsOfRobots() []string {
	var targets []string
	next := []string{"{site}/robots.txt", "{other}/robots.txt"}
	for len(next) > 0 {
		u := next[0]
		next = next[1:]
		for _, r := range c.replies(u) {
			to := resolve(u, r.Header["Location"])
			if to != "" && !slices.Contains(targets, to) {
				targets = append(targets, to)
				next = append(next, to)
			}
		}
	}
	return targets
}

// resolve returns the URL that a Location header of a reply to a request for u means, or "" if
// there is no such header.
func resolve(u, location string) string {
	if location == "" || strings.HasPrefix(location, "{") {
		return location
	}
	at := strings.IndexByte(u, '}') + 1
	base, err := url.Parse(u[at:])
	if err != nil {
		return ""
	}
	target, err := base.Parse(location)
	if err != nil {
		return ""
	}
	return u[:at] + target.RequestURI()
}

// replies returns the replies to requests for a URL.
func (c *FetchCase) replies(u string) []Reply {
	if path, ok := strings.CutPrefix(u, "{other}"); ok {
		return c.Other[path]
	}
	return c.Site[strings.TrimPrefix(u, "{site}")]
}
