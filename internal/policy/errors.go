package policy

import (
	"context"
	"errors"
	"fmt"
)

// ErrClosed is what Get returns once the cache is closed.
var ErrClosed = errors.New("policy: cache closed")

// A StatusError says that robots.txt was answered with a status that leaves its content unknown.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("robots.txt answered with status %d", e.Status)
}

// A RedirectError says that robots.txt redirects more often than the dialect follows, or to where it may not be
// followed.
type RedirectError struct {
	Status   int    // of the redirect that was not followed
	Location string // where it led, as written; empty when it was one too many
	Hops     int    // redirects followed before it
}

func (e *RedirectError) Error() string {
	if e.Location == "" {
		return fmt.Sprintf("robots.txt: redirect number %d leads too far, or nowhere", e.Hops+1)
	}
	return fmt.Sprintf("robots.txt: redirect number %d, to %q, may not be followed", e.Hops+1, e.Location)
}

// A NoAnswerError says that no complete response arrived: name look-up, connection, TLS, time limit, cut body.
type NoAnswerError struct{ Err error }

func (e *NoAnswerError) Error() string { return "robots.txt: no answer: " + e.Err.Error() }
func (e *NoAnswerError) Unwrap() error { return e.Err }

// A PanicError says that the fetch or the reading of the file panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("robots.txt: panic: %v", e.Value) }

// errTimeLimit ends a fetch that has used up FetchLimit.
var errTimeLimit = fmt.Errorf("no complete answer within %v: %w", FetchLimit, context.DeadlineExceeded)
