package collyrobots

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/netguard"
)

// guard returns the guard of a request for u on the host to, which the host from leads to. from is
// empty if the program makes the request. The guard is nil if the request may go to any address.
// Otherwise it is the error of the request if its connection shows that to is private. If that is
// already known, guard returns an error.
func (l *limiter) guard(from, to string, u *url.URL) (*PrivateNetworkError, error) {
	guarded, address := l.networks.Check(from, to)
	if !guarded {
		return nil, nil
	}
	guard := &PrivateNetworkError{URL: u.Redacted(), Address: address, From: from}
	if address != "" {
		return nil, guard
	}
	return guard, nil
}

// connected records the address of a connection to a host. It returns an error if a request with
// this guard, which may be nil, must not be sent on the connection.
func (l *limiter) connected(h netguard.Host, addr net.Addr, guard *PrivateNetworkError) error {
	from := ""
	if guard != nil {
		from = guard.From
	}
	address := l.networks.Connected(h, addr, from)
	if address == "" {
		return nil
	}
	return &PrivateNetworkError{URL: guard.URL, Address: address, From: from}
}

// isForbidden reports whether a request was not sent because its target must not be requested, or
// not from the site that led to it.
func isForbidden(err error) bool {
	private := (*PrivateNetworkError)(nil)
	return errors.As(err, &private) || errors.Is(err, colly.ErrForbiddenDomain) || errors.Is(err, feed.ErrElsewhere)
}

// forbidden reports whether u is on one of domains, which are names without a port.
func forbidden(domains []string, u *url.URL) bool {
	if len(domains) == 0 {
		return false
	}
	name := normalName(u.Host)
	return slices.ContainsFunc(domains, func(d string) bool { return d == u.Hostname() || normalName(d) == name })
}

// normalName returns the name of a host without its port, in the form that all spellings of the
// name have in common.
func normalName(host string) string {
	a, err := dialect.AuthorityOf(&url.URL{Scheme: "http", Host: host})
	if err != nil {
		return strings.ToLower(host)
	}
	return nameOf(a.Host)
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// isServer reports whether a connection to target, "host:port", is a connection to the host itself
// and not to a proxy.
func isServer(host, target string) bool {
	if port, ok := strings.CutPrefix(target, host); ok && (port == "" || port == ":80" || port == ":443") {
		return true
	}
	for _, scheme := range [...]string{"https", "http"} {
		a, err := dialect.AuthorityOf(&url.URL{Scheme: scheme, Host: target})
		if err == nil && a.Host == host {
			return true
		}
	}
	return false
}
