package sitemap

import (
	"errors"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// A Severity says how much of a sitemap is lost because of an [Error].
type Severity string

const (
	SeverityNotice Severity = "notice" // nothing is lost; the file violates the protocol
	SeverityField  Severity = "field"  // a field is lost; its entry is still returned
	SeverityEntry  Severity = "entry"  // one entry is lost
	SeverityFile   Severity = "file"   // the file or the rest of it is lost
)

// An [Error] wraps one of these errors, a [*LimitError], [io.ErrUnexpectedEOF] if the document ends
// before the end tag of its root, or an error of a decompressor, the source or an [Opener].
var (
	// ErrNotSitemap means that the document has no known format. It is HTML, JSON or empty, for
	// example.
	ErrNotSitemap = errors.New("not a sitemap")

	// ErrNoLoc means that an entry has no location.
	ErrNoLoc = errors.New("entry without a location")

	// ErrBadLoc means that a location has another scheme than http or https, no valid host, or
	// invalid bytes.
	ErrBadLoc = errors.New("location is not a valid http or https URL")

	// ErrBadValue means that a field other than the location, such as lastmod, changefreq or
	// priority, cannot be parsed.
	ErrBadValue = errors.New("invalid value")

	// ErrOversize means that a file has more entries or bytes than the protocol allows. All its
	// entries are returned anyway, within the [Limits].
	ErrOversize = errors.New("more than 50,000 entries or 50 MiB")

	// ErrVisited means that an index names, or that a URL redirects to, a sitemap that the walk has
	// already read. The sitemap is not read again.
	ErrVisited = errors.New("sitemap was already read in this walk")
)

// An Error is a fault of a sitemap. Its Severity says how much is lost because of it. Reading
// continues with the rest.
type Error struct {
	Severity Severity
	URL      string // URL of the sitemap, or "" if it is not known
	Offset   int64  // position in the decompressed document, in bytes of its UTF-8 form
	Field    string // name of the field, or "" if the error belongs to no field
	Text     string // text of the field, or "" if it was not kept
	Err      error  // the cause
}

// Error returns the error in one line, with the URL, the offset, the cause, the field and the
// beginning of its text. Passwords in URLs are replaced.
func (e *Error) Error() string {
	s := "sitemap: "
	if e.URL != "" {
		s += redact.Text(e.URL) + ": "
	}
	s += fmt.Sprintf("offset %d: %v", e.Offset, e.Err)
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Text != "" {
		s += fmt.Sprintf(" %.128q", redact.Text(e.Text))
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A LimitError reports that a limit was exceeded. Limit is the name of a field of [Limits], and Max
// is its value, in nanoseconds for Time. Limit is "Layers" for a file that was compressed more than
// three times.
type LimitError struct {
	Limit string
	Max   int64
}

// Error returns the limit's name and value.
func (e *LimitError) Error() string {
	if e.Limit == "Time" {
		return fmt.Sprintf("limit exceeded: Time %v", time.Duration(e.Max))
	}
	return fmt.Sprintf("limit exceeded: %s %d", e.Limit, e.Max)
}
