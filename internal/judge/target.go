package judge

import (
	"net/http"
	"net/url"

	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/usage"
)

// A Target is what a request asks for, as far as robots.txt is concerned.
type Target struct {
	URL        *url.URL
	HostHeader string        // the Host header that the user has set; "" if the header is the host of URL
	UserAgent  string        // the User-Agent header
	Purpose    usage.Purpose // of WithPurpose; 0 if there is none
	LinkedFrom string        // the page whose link must not be followed; "" if it may be
	IsFile     bool          // a file that the plugin reads, so usage preferences and MaxPagesPerHost do not apply
}

// TargetOf returns the target of a request with these properties. host is the Host header that will
// be sent. It counts only if the user has set it, so it must also be among the headers. Otherwise
// Colly has taken it from the URL, and if it differs from u, a callback has changed the URL since.
func TargetOf(u *url.URL, host string, header http.Header) Target {
	t := Target{URL: u, UserAgent: UserAgentOf(header)}
	if host == u.Host || host == "" {
		return t
	}
	if set := header["Host"]; len(set) > 0 && set[0] == host {
		t.HostHeader = host
	}
	return t
}

// UserAgentOf returns the user agent in the headers of a request.
func UserAgentOf(header http.Header) string {
	if values := header["User-Agent"]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// HasRobots reports whether robots.txt applies to u. It applies to ftp URLs because the collector's
// transport may speak ftp (RFC 9309, section 2.3). If it does not, robots.txt cannot be read, and
// the request is denied instead of failing in the transport.
func HasRobots(u *url.URL) bool { return weburl.IsWeb(u) || u.Scheme == "ftp" }
