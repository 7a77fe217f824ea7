package view

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// policy is the Content-Security-Policy of the page. It allows only files of this handler, and does
// not allow scripts to turn text into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// header sets the headers that all responses have, including rejections.
func header(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// refusal returns the status and the message for a request that must be rejected. It returns 0 for
// other requests. acts says that the request pauses or resumes a host.
func refusal(r *http.Request, acts bool) (status int, why string) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !acts:
		return http.StatusMethodNotAllowed, "this page is read-only"
	case !isLocal(r.Host):
		return http.StatusMisdirectedRequest, "this page can only be reached as localhost or by an IP address, because any web site can point its own name here. " +
			"A reverse proxy must set the Host header to localhost, in nginx: proxy_set_header Host localhost"
	case crossSite(r):
		return http.StatusForbidden, "requests from other web sites are not allowed"
	}
	return 0, ""
}

// isLocal reports whether a Host header is localhost, a name below localhost, or an IP address. No
// web site can make a browser send such a header to an address of its choice, because none controls
// these names.
func isLocal(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// crossSite reports whether a page of another origin has caused the request. Following a link to
// the page itself is allowed, because the other page cannot read the response.
func crossSite(r *http.Request) bool {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "same-origin", "none":
		return false
	case "": // not a browser, or an old one
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || u.Host != r.Host)
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" || !strings.HasSuffix(r.URL.Path, "/")
}
