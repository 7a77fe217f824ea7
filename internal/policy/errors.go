package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// ErrClosed is what Get returns once the cache is closed.
var ErrClosed = errors.New("policy: cache closed")

// ErrForbidden is what the error of a [Doer] wraps that must not send a request, because of where
// it would go. There is no other try then; after a redirect it is one that may not be followed.
var ErrForbidden = errors.New("policy: request forbidden")

// ErrUnsent is what the error of a [Doer] wraps that has sent nothing for a reason which is not the
// site's. There is no other try then, nothing is concluded, and Get returns that error.
var ErrUnsent = errors.New("policy: request not sent")

// A StatusError says that robots.txt was answered with a status that leaves its content unknown.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("robots.txt answered with status %d", e.Status)
}

// A RedirectError says that robots.txt redirects more often than the dialect follows, or to where
// it may not be followed.
type RedirectError struct {
	Status   int    // of the redirect that was not followed
	Location string // where it led, as written; empty when it was one too many
	Hops     int    // redirects followed before it
}

func (e *RedirectError) Error() string {
	if e.Location == "" {
		return fmt.Sprintf("robots.txt: redirect number %d leads too far, or nowhere", e.Hops+1)
	}
	return fmt.Sprintf("robots.txt: redirect number %d, to %q, may not be followed", e.Hops+1, redact.Text(e.Location))
}

// A NoResponseError says that no complete response arrived: name look-up, connection, TLS, time
// limit, cut body. It unwraps to the error that says why.
type NoResponseError struct{ Err error }

func (e *NoResponseError) Error() string {
	return "robots.txt: no response: " + redact.Text(e.Err.Error())
}
func (e *NoResponseError) Unwrap() error { return e.Err }

// A CodingError says that robots.txt is in a content coding that cannot be undone.
type CodingError struct {
	Coding string // "br"; several as "br, gzip"
	Err    error  // what is wrong with the body; nil: nobody here reads that coding
}

func (e *CodingError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("robots.txt: unknown content coding %q", e.Coding)
	}
	return fmt.Sprintf("robots.txt: content coding %q: %v", e.Coding, e.Err)
}

func (e *CodingError) Unwrap() error { return e.Err }

// A PanicError says that the fetch or the reading of the file panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("robots.txt: panic: %v", e.Value) }

// errTimeLimit is why a fetch ends that has used up its limit.
func errTimeLimit(limit time.Duration) error {
	return fmt.Errorf("no complete response within %v: %w", limit, context.DeadlineExceeded)
}
