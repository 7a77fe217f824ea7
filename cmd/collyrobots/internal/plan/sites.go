package plan

import (
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/dialect"
)

// A site is a host of the plan.
type site struct {
	host string     // in normal form
	urls []*url.URL // the URLs to try, in this order

	waiting int // the number of its pages that wait in the frontier; 0 if the site is not from a frontier
}

// readSites reads the sites from the command line and from a list. It omits a host that was given
// before, and returns all faults.
func (j *job) readSites(args []string, from string, stdin io.Reader) error {
	args, err := input.Sites(args, from, stdin)
	if err != nil {
		return err
	}
	var faults []error
	seen := make(map[string]bool)
	for _, arg := range args {
		s, err := parseSite(arg)
		if err != nil {
			faults = append(faults, err)
		} else if !seen[s.host] {
			seen[s.host] = true
			j.sites = append(j.sites, s)
		}
	}
	return errors.Join(faults...)
}

// parseSite parses a host or a URL. For a host, https is tried before http.
func parseSite(text string) (s site, err error) {
	full, err := input.URL(text)
	if err != nil {
		return s, err
	}
	u, err := input.WebURL(full)
	if err != nil {
		return s, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	a, err := dialect.AuthorityOf(u)
	s = site{host: a.Host, urls: []*url.URL{u}}
	if !strings.Contains(text, "://") {
		plain := *u
		plain.Scheme = "http"
		s.urls = append(s.urls, &plain)
	}
	return s, err
}
