package view

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// policy is the page's Content-Security-Policy: files of this handler, and nothing else. No script
// may turn a text into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// header sets what every answer has, refusals included.
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

// refusal returns why a request is not answered; 0: it is.
func refusal(r *http.Request) (status int, why string) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "this page is read-only"
	case !isLocal(r.Host):
		return http.StatusMisdirectedRequest, "this page answers only to localhost and to IP addresses, since any web site can let its own name point here. " +
			"A reverse proxy has to set the Host header to localhost, in nginx: proxy_set_header Host localhost"
	case crossSite(r):
		return http.StatusForbidden, "this page answers to itself, and not to other web sites"
	}
	return 0, ""
}

// isLocal reports whether a Host header is one that no web site can make its visitors send to
// somebody else's address: localhost, or an IP address.
func isLocal(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// crossSite reports whether a request was caused by a page of another origin. A link to the page
// itself may be followed: what comes of it no other page can read.
func crossSite(r *http.Request) bool {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "same-origin", "none":
		return false
	case "": // no browser, or an old one
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin != "" && (err != nil || u.Host != r.Host)
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" || !strings.HasSuffix(r.URL.Path, "/")
}
