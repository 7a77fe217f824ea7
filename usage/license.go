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
// response.
func addLinks(list []License, base *url.URL, h http.Header) []License {
	for _, value := range h.Values("Link") {
		for value != "" && len(list) < maxLicenses {
			var target, rel string
			target, rel, value = cutLink(value)
			if slices.ContainsFunc(strings.Fields(rel), func(r string) bool { return strings.EqualFold(r, "license") }) {
				list = addLicense(list, base, target, Source{Name: "Link"})
			}
		}
	}
	return list
}

// cutLink cuts the first link off the value of a Link header (RFC 8288, section 3). rel is the
// value of its first parameter rel. target is "" if the link is malformed.
func cutLink(value string) (target, rel, rest string) {
	link, rest := cutUnquoted(value, ',')
	link, ok := strings.CutPrefix(strings.TrimSpace(link), "<")
	if !ok {
		return "", "", rest
	}
	target, params, ok := strings.Cut(link, ">")
	if !ok {
		return "", "", rest
	}
	for params != "" && rel == "" {
		var param string
		param, params = cutUnquoted(params, ';')
		name, text, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") {
			rel = unquote(strings.TrimSpace(text))
		}
	}
	return target, rel, rest
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
			scheme, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			if strings.EqualFold(scheme, "License") {
				return true
			}
		}
	}
	return false
}
