package exchange

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// addHeaders adds headers of a page and cookies of a jar to the fetch of its robots.txt. The
// headers for a proxy are always sent, because the request may not find its proxy without them. The
// cookies and the other headers are sent if the site refuses robots.txt without them, as it may
// refuse the page. Both page and jar may be nil. The page may be over before AsPage is called, and
// its program may use the header for another request, so addHeaders copies it.
func addHeaders(f *policy.Fetch, page http.Header, jar http.CookieJar) {
	page = page.Clone()
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

// withCookies adds the cookies to a header that does not have cookies of the same name.
func withCookies(header http.Header, cookies []*http.Cookie) http.Header {
	req := http.Request{Header: header}
	for _, c := range cookies {
		if _, err := req.Cookie(c.Name); err != nil {
			req.AddCookie(c)
		}
	}
	return req.Header
}

// headerFor returns a copy of those headers of a page that pass accepts.
func headerFor(page http.Header, pass func(name string, values []string) bool) http.Header {
	header := make(http.Header)
	for name, values := range page {
		if pass(http.CanonicalHeaderKey(name), values) {
			header[name] = slices.Clone(values)
		}
	}
	return header
}

// isForProxy reports whether a header of a page is for its proxy, or for a function that selects
// the proxy.
func isForProxy(name string, _ []string) bool {
	return strings.Contains(strings.ToLower(name), "proxy")
}

// isOfSite reports whether a header of a page may be sent with the request for another file of the
// same site. User-Agent is excluded, because it is set separately. The Accept header that Colly
// adds to each request has no information, and is excluded as well.
func isOfSite(name string, values []string) bool {
	switch name {
	case "Accept-Encoding", "Connection", "Expect", "Host", "Origin", "Range", "Referer", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "User-Agent", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override":
		return false
	case "Accept":
		return len(values) != 1 || values[0] != "*/*"
	}
	return !strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "If-")
}
