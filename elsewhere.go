package collyrobots

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// What one site may cause at sites of other registrable domains in a day, by sitemaps and by
// redirects of robots.txt and of sitemaps.
const (
	maxElsewhere = 200 // requests
	maxDomains   = 10  // domains
)

// elsewhere counts what each site causes at other sites.
type elsewhere struct {
	mu    sync.Mutex
	sites map[string]*caused // by host
}

// caused is what a site has caused since a time.
type caused struct {
	since    time.Time
	requests int
	domains  []string // the other registrable domains
}

// maxCausers bounds the number of sites that are remembered.
const maxCausers = 1 << 15

// An elsewhereError says that a site may not cause a request to another site.
type elsewhereError struct {
	site string // that leads there
	host string // where it leads
	max  string
}

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s, but may cause only %s in a day: %v", e.site, e.host, e.max, feed.ErrElsewhere)
}

// Unwrap returns feed.ErrElsewhere.
func (e *elsewhereError) Unwrap() error { return feed.ErrElsewhere }

// A notForSite is an error because of the site that led to a request.
type notForSite string

func (e notForSite) Error() string { return string(e) }

// Is reports whether target is feed.ErrNotForSite.
func (e notForSite) Is(target error) bool { return target == feed.ErrNotForSite }

// isElsewhere reports whether two hosts belong to different registrable domains.
func isElsewhere(site, host string) bool {
	return site != host && feed.Registrable(strings.ToLower(site)) != feed.Registrable(strings.ToLower(host))
}

// check returns an *elsewhereError if site may not cause one more request to host, which belongs to
// another site.
func (e *elsewhere) check(site, host string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.look(site, host)
	return err
}

// charge is like check, and also counts the request.
func (e *elsewhere) charge(site, host string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, err := e.look(site, host)
	if err != nil {
		return err
	}
	c.requests++
	if domain := feed.Registrable(host); !slices.Contains(c.domains, domain) {
		c.domains = append(c.domains, strings.Clone(domain))
	}
	return nil
}

// look returns what site has caused. e.mu is held.
func (e *elsewhere) look(site, host string) (*caused, error) {
	now := time.Now()
	c := e.sites[site]
	if c == nil || now.Sub(c.since) >= 24*time.Hour {
		c = e.add(site, now)
	}
	switch {
	case c.requests >= maxElsewhere:
		return nil, &elsewhereError{site: site, host: host, max: fmt.Sprintf("%d requests", maxElsewhere)}
	case len(c.domains) >= maxDomains && !slices.Contains(c.domains, feed.Registrable(host)):
		return nil, &elsewhereError{site: site, host: host, max: fmt.Sprintf("requests to %d domains", maxDomains)}
	}
	return c, nil
}

// add begins to count for a site. e.mu is held.
func (e *elsewhere) add(site string, now time.Time) *caused {
	if e.sites == nil || len(e.sites) >= maxCausers {
		e.sites = make(map[string]*caused)
	}
	c := &caused{since: now}
	e.sites[strings.Clone(site)] = c
	return c
}
