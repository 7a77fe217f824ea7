package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// ErrClosed is returned by Get after the cache is closed.
var ErrClosed = errors.New("the cache is closed")

// ErrForbidden is wrapped by the error of a [Doer] that must not send a request to its destination.
// The request is not repeated. A redirect to such a destination is one that must not be followed.
var ErrForbidden = errors.New("request forbidden")

// ErrUnsent is wrapped by the error of a [Doer] that has sent nothing, for a reason that is not the
// site's. The request is not repeated, nothing is concluded about the site, and Get returns the
// error.
var ErrUnsent = errors.New("request not sent")

// A StatusError means that the response to GET /robots.txt has a status that leaves the content of
// the file unknown.
type StatusError struct {
	Status int
	// Proxy is the "host:port" of a proxy if the status is 5xx and the response came through that
	// proxy, which may have sent it in place of the site. Otherwise it is empty.
	Proxy string
}

func (e *StatusError) Error() string {
	if e.Proxy != "" {
		return fmt.Sprintf("robots.txt answered with status %d through the proxy %s", e.Status, redact.Text(e.Proxy))
	}
	return fmt.Sprintf("robots.txt answered with status %d", e.Status)
}

// A RedirectError means that robots.txt redirects more often than the dialect follows, or to a
// location that must not be followed.
type RedirectError struct {
	Status   int    // of the redirect that was not followed
	TooMany  bool   // the dialect follows no more redirects
	Location string // of the redirect, as written; empty if it has none or is one too many
	Followed int    // the number of redirects before it
}

func (e *RedirectError) Error() string {
	switch {
	case e.TooMany:
		return fmt.Sprintf("more than %d redirects", e.Followed)
	case e.Location == "":
		return fmt.Sprintf("redirect %d has no Location", e.Followed+1)
	}
	return fmt.Sprintf("redirect %d leads to %q, which must not be followed", e.Followed+1, redact.Text(e.Location))
}

// IsUnanswered reports whether err, the error of a robots.txt, says that the site has not answered:
// there was no response, or one that a proxy may have sent.
func IsUnanswered(err error) bool {
	noResponse := (*NoResponseError)(nil)
	status := (*StatusError)(nil)
	return errors.As(err, &noResponse) || errors.As(err, &status) && status.Proxy != ""
}

// A NoResponseError means that no complete response arrived, for example because of the name
// look-up, the connection, TLS, a time limit or a truncated body. Err is the reason.
type NoResponseError struct{ Err error }

func (e *NoResponseError) Error() string {
	return "no response: " + redact.Text(e.Err.Error())
}
func (e *NoResponseError) Unwrap() error { return e.Err }

// A CodingError means that robots.txt has a content coding that cannot be decoded.
type CodingError struct {
	Coding string // such as "br"; several are joined, such as "br, gzip"
	Err    error  // why decoding failed; nil if the coding is not supported
}

func (e *CodingError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("unknown content coding %q", e.Coding)
	}
	return fmt.Sprintf("content coding %q: %v", e.Coding, e.Err)
}

func (e *CodingError) Unwrap() error { return e.Err }

// A PanicError means that the fetch or the parsing of the file panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// errTimeLimit returns the error of a fetch that has used up its limit.
func errTimeLimit(limit time.Duration) error {
	return fmt.Errorf("no complete response within %v: %w", limit, context.DeadlineExceeded)
}
