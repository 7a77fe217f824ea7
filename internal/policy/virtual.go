package policy

import (
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// VirtualHost returns the authority of a site that the server of another one, at, has under a name
// of its own: what the Host header of its requests says. Its robots.txt is asked for at that
// server, under that name. As the name itself may lead to another server, what the file says is
// known under both: the Host is "name@server".
func VirtualHost(at dialect.Authority, name string) (dialect.Authority, error) {
	site, err := dialect.AuthorityOf(&url.URL{Scheme: at.Scheme, Host: name})
	if err != nil || site.Host == at.Host {
		return at, err
	}
	return dialect.Authority{Scheme: at.Scheme, Host: site.Host + "@" + at.Host}, nil
}

// IsVirtual reports whether an authority is one of [VirtualHost].
func IsVirtual(a dialect.Authority) bool { return strings.Contains(a.Host, "@") }

// Server returns the host that an authority's robots.txt is asked of, and the name in the Host
// header of the request; "": its own.
func Server(a dialect.Authority) (host, name string) {
	if name, host, ok := strings.Cut(a.Host, "@"); ok {
		return host, name
	}
	return a.Host, ""
}
