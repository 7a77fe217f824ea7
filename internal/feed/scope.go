package feed

import (
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/hostname"
)

// A Scope says on which hosts a sitemap may list pages, compared with the hosts of the sitemap.
// These are the host that serves the sitemap, the hosts of redirects from it, and the host of the
// site whose robots.txt names it (sitemaps.org, "Sitemaps & Cross Submits"). The files that an
// index names have the hosts of the index. Pages under http and https are on the same host.
type Scope uint8

// Each scope contains the one before it.
const (
	ScopeHost Scope = iota // pages on the hosts of the sitemap
	ScopeWWW               // also on these hosts with or without "www."
	ScopeSite              // also on all hosts of the same registrable domain
	ScopeAny               // pages on all hosts
)

// String returns the name of the constant.
func (s Scope) String() string {
	switch s {
	case ScopeHost:
		return "ScopeHost"
	case ScopeWWW:
		return "ScopeWWW"
	case ScopeSite:
		return "ScopeSite"
	}
	return "ScopeAny"
}

// of returns the name of a host under s. Hosts that s does not distinguish have the same name.
func (s Scope) of(host string) string {
	switch s {
	case ScopeHost:
		return host
	case ScopeWWW:
		return strings.TrimPrefix(host, "www.")
	case ScopeSite:
		return hostname.Registrable(strings.TrimPrefix(host, "www."))
	}
	return ""
}

// A scope says which pages the files of one root may list.
type scope struct {
	kind  Scope
	hosts []string // the hosts of the root
	names []string // the names of hosts under kind
}

func newScope(kind Scope, hosts ...string) *scope {
	s := &scope{kind: kind}
	for _, h := range hosts {
		s.add(h)
	}
	return s
}

// add adds a host to the scope.
func (s *scope) add(host string) {
	if slices.Contains(s.hosts, host) {
		return
	}
	s.hosts = append(s.hosts, strings.Clone(host))
	if name := s.kind.of(host); !slices.Contains(s.names, name) {
		s.names = append(s.names, strings.Clone(name))
	}
}

// addURL adds the host of a URL to the scope.
func (s *scope) addURL(raw string) {
	if u, err := url.Parse(raw); err == nil {
		if a, err := dialect.AuthorityOf(u); err == nil {
			s.add(a.Host)
		}
	}
}

// has reports whether the pages of host are in scope.
func (s *scope) has(host string) bool { return slices.Contains(s.names, s.kind.of(host)) }

// needs returns the narrowest kind of scope that includes host.
func (s *scope) needs(host string) Scope {
	for kind := s.kind; kind < ScopeAny; kind++ {
		name := kind.of(host)
		if slices.ContainsFunc(s.hosts, func(h string) bool { return kind.of(h) == name }) {
			return kind
		}
	}
	return ScopeAny
}
