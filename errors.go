package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/report"
)

// prefix begins the text of each error that a caller can get from this package. Errors that are
// only parts of such errors do not have it.
const prefix = "collyrobots: "

var (
	// ErrAttached is returned by Attach for a collector that has another plugin, which is not
	// closed. With two plugins, each robots.txt would be fetched twice and each request would wait
	// twice.
	ErrAttached = errors.New("collyrobots: the collector is already attached to another Plugin")

	// ErrNilCollector is returned by WithRobots and Attach for a nil collector.
	ErrNilCollector = errors.New("collyrobots: the collector is nil")

	// ErrUnsupportedColly is wrapped by the error of WithRobots and Attach for a collector that lacks
	// one of the unexported fields that the plugin reads. The text of the error names the field. Either
	// the version of Colly is not supported, or colly.NewCollector has not made the collector.
	ErrUnsupportedColly = backend.ErrUnsupported

	// ErrNilRequest is returned by Acquire, and by the result of Transport, for a request that is
	// nil or has no URL.
	ErrNilRequest = errors.New("collyrobots: the request is nil or has no URL")

	// ErrNotSent is for Turn.Failed: the program has not sent the request, or there was no
	// connection. An error that wraps it says the same.
	ErrNotSent = exchange.ErrNotSent

	// ErrClosed is the error of requests and calls after Close.
	ErrClosed = report.ErrClosed

	// ErrRedirectWait reports that a redirect of a collector was not followed because its host has asked
	// for a pause, by a Retry-After or a Visit-time, that is longer than two delays and a minute.
	ErrRedirectWait = gate.ErrRedirectWait

	// ErrRedirectLoop reports that a page of a collector failed because its redirects lead back to one of
	// their URLs.
	ErrRedirectLoop = backend.ErrRedirectLoop

	// ErrLeaseEnded reports that a request under SharedPace failed because its response was not
	// finished at the Deadline of its Lease. errors.Is(err, context.DeadlineExceeded) holds.
	ErrLeaseEnded = fmt.Errorf("collyrobots: response not finished before the Pacer's lease expired: %w", context.DeadlineExceeded)
)

var (
	errZero = errors.New("collyrobots: the Plugin is a zero value; use New")

	// errBubble is the error of a Plugin that is used in a bubble of testing/synctest and was made
	// outside of it, or the other way round. Its timers and channels would then never wake the
	// goroutines on the other side.
	errBubble = errors.New("collyrobots: the Plugin was made in another synctest bubble than it is used in, or outside of one; call New inside the bubble")
)

// An OptionError describes a fault of one option. New returns all faults, joined by errors.Join;
// errors.As finds the first one.
type OptionError struct {
	Option string // the name of the function that returned the option, such as "MinDelay"
	Reason string // what is wrong with it
	Err    error  // in ForHosts, the *OptionError of the inner option; otherwise nil
}

// Error returns the name of the option and the reason.
func (e *OptionError) Error() string { return prefix + e.Option + ": " + e.Reason }

// Unwrap returns Err.
func (e *OptionError) Unwrap() error { return e.Err }

// A DeniedError reports that a request was not sent because of robots.txt, of what the site says
// about its use or its links, or of a limit such as MaxPagesPerHost. Decision.Reason says which.
// errors.Is(err, colly.ErrRobotsTxtBlocked) holds only if robots.txt is the cause: a rule denies the
// page, the file cannot be read, or its site does not answer.
type DeniedError struct {
	Decision Decision

	denied *judge.Denied // the error of the gate; nil if the program has made this one
}

// Error returns the decision in one line.
func (e *DeniedError) Error() string { return prefix + e.Decision.String() }

// Unwrap returns colly.ErrRobotsTxtBlocked if robots.txt is the cause and, if robots.txt could not be
// read, the reason.
func (e *DeniedError) Unwrap() []error {
	var errs []error
	switch e.Decision.Reason {
	case report.ReasonRule, report.ReasonUnreachable, report.ReasonSiteDown:
		errs = append(errs, colly.ErrRobotsTxtBlocked)
	}
	if e.Decision.Err != nil {
		errs = append(errs, e.Decision.Err)
	}
	return errs
}

// Timeout reports whether robots.txt could not be read because of a timeout. It is the method of
// net.Error.
func (e *DeniedError) Timeout() bool {
	var err interface{ Timeout() bool }
	return errors.As(e.Decision.Err, &err) && err.Timeout()
}

// The errors of requests that are declared in other packages. A request of a collector or an
// http.Client, or a call of Acquire, that the plugin does not let through fails with one of these
// errors, with a *DeniedError, or with ErrRedirectWait, ErrRedirectLoop, ErrLeaseEnded, ErrNilRequest
// or ErrClosed. Colly and net/http wrap it, so use errors.As and errors.Is.
type (
	// A PrivateNetworkError reports that a request would have gone to a private address.
	PrivateNetworkError = report.PrivateNetworkError

	// A ShardError reports that the host of a request belongs to another process.
	ShardError = report.ShardError

	// A PaceError reports that the Pacer of the option SharedPace has failed.
	PaceError = report.PaceError

	// A URLError reports that no request can be sent to a URL, because of its host or its port.
	URLError = dialect.URLError
)

// public returns err, an error of the gate or the judge, as the program gets it.
func public(err error) error {
	d, ok := err.(*judge.Denied)
	if !ok {
		return err
	}
	return &DeniedError{Decision: d.Decision, denied: d}
}

// A prefixedError is an error whose text begins with the prefix, and does not repeat it after that.
type prefixedError struct{ error }

func (e prefixedError) Error() string {
	return prefix + strings.Replace(e.error.Error(), prefix, "", 1)
}

func (e prefixedError) Unwrap() error { return e.error }
