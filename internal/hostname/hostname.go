// Package hostname has the names of hosts as the plugin compares them: in lower-case ASCII, without
// the default port.
package hostname

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/collyrobots/collyrobots/dialect"
)

// Of returns the name under which the host of u is known, or "" if it has none.
func Of(u *url.URL) string {
	a, _ := dialect.AuthorityOf(u)
	return a.Host
}

// Normal returns the name of a host without its port, in the form that all spellings of the
// name have in common.
func Normal(host string) string {
	a, err := dialect.AuthorityOf(&url.URL{Scheme: "http", Host: host})
	if err != nil {
		return strings.ToLower(host)
	}
	return WithoutPort(a.Host)
}

// WithoutPort returns a host without its port.
func WithoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// IsServer reports whether a connection to target, "host:port", is a connection to the host itself
// and not to a proxy.
func IsServer(host, target string) bool {
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

// Registrable returns the registered domain of host, which may have a port. For an IP address, and
// for a name that is itself a public suffix, it returns the host without its port.
func Registrable(host string) string {
	name := (&url.URL{Host: host}).Hostname()
	if _, err := netip.ParseAddr(name); err == nil {
		return name
	}
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return domain
	}
	return name
}
