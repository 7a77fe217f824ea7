package policy

import (
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// VirtualHost returns the authority of a site that is requested from the server of another one, at,
// by its name in the Host header. Its robots.txt is requested from that server with that Host
// header. The name alone may resolve to another server, so the authority contains both: its Host is
// "name@server".
func VirtualHost(at dialect.Authority, name string) (dialect.Authority, error) {
	site, err := dialect.AuthorityOf(&url.URL{Scheme: at.Scheme, Host: name})
	if err != nil || site.Host == at.Host {
		return at, err
	}
	return dialect.Authority{Scheme: at.Scheme, Host: site.Host + "@" + at.Host}, nil
}

// IsVirtual reports whether an authority is the result of [VirtualHost] for another name.
func IsVirtual(a dialect.Authority) bool { return strings.Contains(a.Host, "@") }

// Server returns the host that gets the request for an authority's robots.txt, and the name in the
// Host header of the request. The name is "" if it is the host's own.
func Server(a dialect.Authority) (host, name string) {
	if name, host, ok := strings.Cut(a.Host, "@"); ok {
		return host, name
	}
	return a.Host, ""
}
