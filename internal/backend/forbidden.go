package backend

import (
	"net/url"
	"slices"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/hostname"
)

// Forbids returns colly.ErrForbiddenDomain if the DisallowedDomains of c contain the domain of u, with
// any port.
func Forbids(c *colly.Collector, u *url.URL) error {
	if len(c.DisallowedDomains) == 0 {
		return nil
	}
	name := hostname.Normal(u.Host)
	isSame := func(domain string) bool { return domain == u.Hostname() || hostname.Normal(domain) == name }
	if slices.ContainsFunc(c.DisallowedDomains, isSame) {
		return colly.ErrForbiddenDomain
	}
	return nil
}

// Forbids returns an error if one of the collectors that use the Seam forbids the domain of u. Any of
// them may have made the request.
func (s *Seam) Forbids(u *url.URL) error {
	for _, c := range s.Collectors() {
		err := Forbids(c, u)
		if err != nil {
			return err
		}
	}
	return nil
}
