package sitemap

import (
	"errors"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// A Scope says how much of a sitemap an [Error] has cost.
type Scope int

const (
	ScopeNotice Scope = iota // nothing: the file departs from the protocol
	ScopeField               // a field of an entry; its location is still given
	ScopeEntry               // one entry
	ScopeFile                // the file, or what was left of it
)

// String returns "notice", "field", "entry" or "file".
func (s Scope) String() string {
	switch s {
	case ScopeNotice:
		return "notice"
	case ScopeField:
		return "field"
	case ScopeEntry:
		return "entry"
	}
	return "file"
}

// These are the errors that [Error] wraps, besides [*LimitError],
// [io.ErrUnexpectedEOF] for a document that ends before its root does, and
// what a decompressor, the source or an [Opener] reported.
var (
	ErrNotSitemap = errors.New("not a sitemap")                             // no known format: HTML, JSON, nothing at all
	ErrNoLoc      = errors.New("entry without a location")                  // nothing to visit
	ErrBadLoc     = errors.New("location is no http or https URL")          // another scheme, no host, invalid octets
	ErrBadValue   = errors.New("value cannot be read")                      // lastmod, changefreq or priority
	ErrOversize   = errors.New("more than 50,000 entries or 50 MiB")        // beyond the protocol, within our limits
	ErrVisited    = errors.New("sitemap has been read in this walk before") // a loop or a repetition
)

// An Error is what was wrong with a sitemap. Reading goes on after it with what
// its Scope leaves.
type Error struct {
	Scope  Scope
	URL    string // of the sitemap, "" if not known
	Offset int64  // in octets of the decompressed document, as UTF-8
	Field  string // name of the field, "" if it is not about one
	Text   string // of the field, "" if it could not be kept
	Err    error  // the cause
}

// Error returns one line with all that is known of the error.
func (e *Error) Error() string {
	s := "sitemap"
	if e.URL != "" {
		s += " " + redact.Text(e.URL)
	}
	s += fmt.Sprintf(": offset %d: %v", e.Offset, e.Err)
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

// A LimitError reports that a limit was met. Limit is the name of a field of
// [Limits] and Max its value, in nanoseconds for Time; or Limit is "Layers",
// for a file compressed more than three times.
type LimitError struct {
	Limit string
	Max   int64
}

// Error returns the limit's name and value.
func (e *LimitError) Error() string {
	if e.Limit == "Time" {
		return fmt.Sprintf("limit met: Time %v", time.Duration(e.Max))
	}
	return fmt.Sprintf("limit met: %s %d", e.Limit, e.Max)
}
