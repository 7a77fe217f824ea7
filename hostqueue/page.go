package hostqueue

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// mostURL is the length of the longest URL that is recorded, in bytes. RFC 9110, section 4.1,
// recommends that all implementations support at least 8,000 bytes.
const mostURL = 8000

// A page is a page of the crawl.
type page struct {
	url      string // without a fragment
	host     string // as in report.HostStats
	key      string // identifies the page among those of its host; empty after parsePage
	depth    int    // as in colly.Request, 1 for a page of Add
	attempts int    // the number of attempts that have failed
}

// newPage returns the page at a URL.
func newPage(raw string, depth int) (page, error) {
	if len(raw) > mostURL {
		return page{}, fmt.Errorf(prefix+"a URL of %d bytes is longer than %d bytes", len(raw), mostURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return page{}, fmt.Errorf(prefix+"%w", withoutPassword(raw, err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return page{}, fmt.Errorf(prefix+"%q is not an http or https URL", u.Redacted())
	}
	u = u.ResolveReference(u) // removes dot segments
	u.Fragment = ""
	u.RawFragment = ""
	_, err = dialect.AuthorityOf(u)
	if err != nil {
		return page{}, fmt.Errorf(prefix+"%w", err)
	}
	normal, host, err := urlstore.Normalize(u.String())
	if err != nil {
		return page{}, fmt.Errorf(prefix+"%w", err)
	}
	return page{url: u.String(), host: host, key: keyOf(normal), depth: depth}, nil
}

// keyOf returns the key of the page with this URL in normal form: its path and query. The key of a
// page at an http URL begins with "http:", and all other keys begin with a slash.
func keyOf(normal string) string {
	scheme, rest, _ := strings.Cut(normal, "://")
	target := rest[strings.IndexByte(rest, '/'):]
	if scheme == "http" {
		return "http:" + target
	}
	return target
}

// withoutPassword returns err, an error of url.Parse. If raw may contain a password, the result is an
// error without the URL.
func withoutPassword(raw string, err error) error {
	if strings.Contains(raw, "@") {
		return errors.New("invalid URL")
	}
	return err
}

// parsedURL returns the URL of the page.
func (p page) parsedURL() (*url.URL, error) { return url.Parse(p.url) }

// redacted returns the URL without its password.
func (p page) redacted() string {
	u, err := p.parsedURL()
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// text returns the page as it is stored while it waits or is in progress.
func (p page) text() string { return fmt.Sprintf("%d %d %s", p.attempts, p.depth, p.url) }

// parsePage parses the text of a page of a host.
func parsePage(host, text string) (page, error) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return page{}, fmt.Errorf("%q is not the text of a page", text)
	}
	attempts, err := strconv.Atoi(parts[0])
	if err != nil {
		return page{}, fmt.Errorf("%q is not the text of a page: %w", text, err)
	}
	depth, err := strconv.Atoi(parts[1])
	if err != nil {
		return page{}, fmt.Errorf("%q is not the text of a page: %w", text, err)
	}
	return page{url: parts[2], host: host, depth: depth, attempts: attempts}, nil
}
