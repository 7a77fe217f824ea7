package usage

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A License is a reference to a license for the content: a License line of a robots.txt (RSL 1.0),
// or a Link header with the relation "license". The package does not read the license.
type License struct {
	URL    string `json:"url"` // absolute, without a password
	Source        // the Hash is that of the file that names the license
}

const (
	maxLicenses   = 16   // the number of licenses that are kept for one page
	maxLicenseURL = 2048 // the length of a URL in bytes
)

// addLicense adds the license at the URL text to list. The URL may be relative to base, unless base
// is nil. addLicense ignores a URL that is malformed or already in list, and all URLs if list is
// full.
func addLicense(list []License, base *url.URL, text string, from Source) []License {
	text = strings.TrimSpace(text)
	if len(list) >= maxLicenses || len(text) > maxLicenseURL {
		return list
	}
	u, err := url.Parse(text)
	if err != nil {
		return list
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return list
	}
	u.User = nil
	l := License{URL: u.String(), Source: from}
	if slices.ContainsFunc(list, func(known License) bool { return known.URL == l.URL }) {
		return list
	}
	return append(list, l)
}

// addLinks adds the licenses that the Link headers of a response name. base is the URL of the
// response. addLinks reads the links in the first maxField bytes.
func addLinks(list []License, base *url.URL, h http.Header) []License {
	left := maxField
	for _, value := range h.Values("Link") {
		cut := len(value) > left
		value = value[:min(len(value), left)]
		left -= len(value)
		for value != "" && len(list) < maxLicenses {
			var text string
			text, value = cutUnquoted(value, ',')
			if cut && value == "" {
				break // the link is not complete
			}
			l, ok := parseLink(text)
			if ok && l.isLicense() && l.isAbout(base) {
				list = addLicense(list, base, l.target, Source{Name: "Link"})
			}
		}
	}
	return list
}

// A link is a link of a Link header.
type link struct {
	target    string
	rel       string // the value of its first parameter rel
	anchor    string // the value of its first parameter anchor
	hasAnchor bool
}

// parseLink parses a link (RFC 8288, section 3). ok is false if it is malformed.
func parseLink(text string) (l link, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimSpace(text), "<")
	if !ok {
		return link{}, false
	}
	target, params, ok := strings.Cut(text, ">")
	if !ok {
		return link{}, false
	}
	l.target = target
	for params != "" {
		var param string
		param, params = cutUnquoted(params, ';')
		name, value, _ := strings.Cut(param, "=")
		value = unquote(strings.TrimSpace(value))
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "rel":
			if l.rel == "" {
				l.rel = value
			}
		case "anchor":
			if !l.hasAnchor {
				l.anchor = value
				l.hasAnchor = true
			}
		}
	}
	return l, true
}

// isLicense reports whether license is one of the relations of l.
func (l *link) isLicense() bool {
	return slices.ContainsFunc(strings.Fields(l.rel), func(r string) bool { return strings.EqualFold(r, "license") })
}

// isAbout reports whether l is a link of the whole page at base. A link with an anchor may be one
// of another page or of a part of this page (RFC 8288, section 3.2).
func (l *link) isAbout(base *url.URL) bool {
	if !l.hasAnchor {
		return true
	}
	page := *base
	page.Fragment = ""
	page.RawFragment = ""
	page.User = nil
	anchor, err := page.Parse(l.anchor)
	return err == nil && anchor.String() == page.String()
}

// cutUnquoted cuts s at the first separator that is neither in a quoted string nor between < and >.
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	inURL := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && !inURL:
			quoted = !quoted
		case quoted:
		case c == '<' || c == '>':
			inURL = c == '<'
		case c == separator && !inURL:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// unquote returns the content of a quoted string, or s if it is not one.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' && i+1 < len(s)-1 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// LicenseRequired reports whether a response asks for a license: its status is 401, and one of the
// challenges in WWW-Authenticate has the scheme License (RSL 1.0).
func LicenseRequired(status int, h http.Header) bool {
	if status != http.StatusUnauthorized {
		return false
	}
	for _, value := range h.Values("Www-Authenticate") {
		for value != "" {
			var part string
			part, value = cutUnquoted(value, ',')
			if strings.EqualFold(schemeOf(part), "License") {
				return true
			}
		}
	}
	return false
}

// schemeOf returns the scheme of a challenge of WWW-Authenticate. It returns "" if part is another
// parameter of the challenge before it, which may have blanks around its equals sign (RFC 9110,
// section 11.6.1).
func schemeOf(part string) string {
	part = strings.TrimSpace(part)
	end := strings.IndexAny(part, " \t")
	if end < 0 {
		return part
	}
	if strings.HasPrefix(strings.TrimLeft(part[end:], " \t"), "=") {
		return ""
	}
	return part[:end]
}
