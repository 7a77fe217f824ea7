package collyrobots

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// robots.txt is asked for with what lets the page through for which it is needed. A page may need a
// header to find its proxy, and its cookies to be answered at all.

// addHeaders makes a fetch of robots.txt send headers of a page, nil if there are none, and cookies
// of jar, which may be nil.
func addHeaders(f *policy.Fetch, page http.Header, jar http.CookieJar) {
	f.Header = headerFor(page, isForProxy)
	f.AsPage = func(u *url.URL) http.Header {
		var cookies []*http.Cookie
		if jar != nil {
			cookies = jar.Cookies(u)
		}
		header := headerFor(page, isOfSite)
		if len(cookies) == 0 && len(header) == len(f.Header) {
			return nil
		}
		return withCookies(header, cookies)
	}
}

// withCookies adds to a header the cookies that it does not have.
func withCookies(header http.Header, cookies []*http.Cookie) http.Header {
	req := http.Request{Header: header}
	for _, c := range cookies {
		if _, err := req.Cookie(c.Name); err != nil {
			req.AddCookie(c)
		}
	}
	return req.Header
}

// headerFor returns a copy of those headers of a page that pass.
func headerFor(page http.Header, pass func(name string, values []string) bool) http.Header {
	header := make(http.Header)
	for name, values := range page {
		if pass(http.CanonicalHeaderKey(name), values) {
			header[name] = slices.Clone(values)
		}
	}
	return header
}

// isForProxy reports whether a header of a page is for its proxy, or for a function that chooses
// the proxy: each request for robots.txt has it.
func isForProxy(name string, _ []string) bool {
	return strings.Contains(strings.ToLower(name), "proxy")
}

// isOfSite reports whether a header of a page makes sense in the request for another file of its
// site, where that is refused without it. The user agent is set apart, and Colly adds an Accept
// header that says nothing.
func isOfSite(name string, values []string) bool {
	switch name {
	case "Accept-Encoding", "Connection", "Expect", "Host", "Origin", "Range", "Referer", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override":
		return false
	case "Accept":
		return len(values) != 1 || values[0] != "*/*"
	}
	return !strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "If-")
}
