//go:build !js

package dialect

import "golang.org/x/net/idna"

// hosts converts names to ASCII like browsers do. It accepts underscores, and hyphens at any
// position.
var hosts = idna.New(
	idna.MapForLookup(), idna.BidiRule(),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false),
)

// toASCII returns a host name in lower-case punycode.
func toASCII(name string) (string, error) { return hosts.ToASCII(name) }
