package batch

import (
	"fmt"
	"net/url"
	"regexp"
)

// stray matches control characters, and percent signs with the two digits after them if they begin
// an escape.
var stray = regexp.MustCompile(`[\x00-\x1f\x7f]|%([0-9A-Fa-f]{2})?`)

// parseAsCrawler is like url.Parse but accepts control characters and percent signs that do not
// begin an escape, because crawlers can visit URLs with them. If url.Parse rejects raw, they are
// percent-encoded. If that does not help, the error is that of the first attempt.
func parseAsCrawler(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil {
		return u, nil
	}
	escaped := stray.ReplaceAllStringFunc(raw, func(s string) string {
		if len(s) > 1 {
			return s
		}
		return fmt.Sprintf("%%%02X", s[0])
	})
	if u, again := url.Parse(escaped); again == nil {
		return u, nil
	}
	return nil, err
}
