package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/track"
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

	// ErrNilRequest is returned by Acquire, and by the result of Transport, for a request that is
	// nil or has no URL.
	ErrNilRequest = errors.New("collyrobots: the request is nil or has no URL")

	// ErrNotSent is for Turn.Failed: the program has not sent the request, or there was no
	// connection. An error that wraps it says the same.
	ErrNotSent = errors.New("collyrobots: the request was not sent")

	// ErrClosed is the error of requests and calls after Close.
	ErrClosed = report.ErrClosed

	// ErrRedirectWait reports that a redirect of a collector was not followed because it would have
	// waited for its host longer than two delays of the host and a minute.
	ErrRedirectWait = errors.New("collyrobots: the redirect would wait too long for its host")

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

// A DisallowedError reports that a request was not sent because of robots.txt. As for Colly's
// built-in check, errors.Is(err, colly.ErrRobotsTxtBlocked) holds.
type DisallowedError struct {
	Decision Decision

	first    bool // whether it is the first one of its host
	redirect bool // whether it denies the target of a redirect; the page itself was fetched
}

// Error returns the decision in one line.
func (e *DisallowedError) Error() string { return prefix + e.Decision.String() }

// Unwrap returns colly.ErrRobotsTxtBlocked and, if robots.txt could not be read, the reason.
func (e *DisallowedError) Unwrap() []error {
	if e.Decision.Err == nil {
		return []error{colly.ErrRobotsTxtBlocked}
	}
	return []error{colly.ErrRobotsTxtBlocked, e.Decision.Err}
}

// Timeout reports whether robots.txt could not be read because of a timeout. It is the method of
// net.Error.
func (e *DisallowedError) Timeout() bool {
	var err interface{ Timeout() bool }
	return errors.As(e.Decision.Err, &err) && err.Timeout()
}

// A PrivateNetworkError reports that a public site has led the crawler to an address that is not
// public, for example a private, loopback or link-local address. The request was not sent. For a
// redirect, or a page that a sitemap lists, the error is wrapped in the error of OnError and Visit.
// For robots.txt and sitemaps it is in the log. See AllowPrivateNetworks.
type PrivateNetworkError struct {
	URL     string // the URL that was not requested, without its password
	Address string // the address that the request would have gone to
	From    string // the host that led there
}

// Error returns a text with the URL, its address and the host that led there.
func (e *PrivateNetworkError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s, a private address (%s); use AllowPrivateNetworks to allow it", e.From, e.URL, e.Address)
}

// Unwrap returns an error that is the same for all PrivateNetworkErrors.
func (e *PrivateNetworkError) Unwrap() error { return feed.ErrNotForSite }

// A ShardError reports that a request was not sent under ShardByHost, because its host belongs to
// another process. The program can pass the URL on to that process.
type ShardError struct {
	URL   string // without its password
	Shard int    // the shard of the host
	Of    int    // the number of shards
}

// Error returns the URL and the shard of its host.
func (e *ShardError) Error() string {
	return fmt.Sprintf("collyrobots: the host of %s belongs to shard %d of %d", e.URL, e.Shard, e.Of)
}

// A PaceError reports that a request was not sent under SharedPace because the Pacer failed. The
// time of the last request of another process to the host is then not known. Later requests ask the
// Pacer again.
type PaceError struct {
	Host  string
	Since time.Time // the time of the first failure, for any host, after the last success
	Err   error     // the error of the Pacer
}

// Error returns the host, the time of the first failure, and the error of the Pacer.
func (e *PaceError) Error() string {
	return fmt.Sprintf("collyrobots: no shared pace for %s since %s: %v", e.Host, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *PaceError) Unwrap() error { return e.Err }

// A prefixedError is an error whose text begins with the prefix, and does not repeat it after that.
type prefixedError struct{ error }

func (e prefixedError) Error() string {
	return prefix + strings.Replace(e.error.Error(), prefix, "", 1)
}

func (e prefixedError) Unwrap() error { return e.error }

// The rest of this file says why a request was not sent.

// A refusedError is the error of a request that the plugin refuses. net/http puts it into a
// *url.Error.
type refusedError struct {
	cause error
	url   string // of the request; "" if the request has not reached the controller
}

// Error returns the text of the cause. If that begins with the URL of the request, the URL is left
// out, because the *url.Error has it.
func (e *refusedError) Error() string {
	return strings.Replace(e.cause.Error(), e.url+" denied: ", "denied: ", 1)
}

func (e *refusedError) Unwrap() error { return e.cause }

// Timeout reports whether the cause is a timeout. (*url.Error).Timeout calls it.
func (e *refusedError) Timeout() bool {
	timeout := interface{ Timeout() bool }(nil)
	return errors.As(e.cause, &timeout) && timeout.Timeout()
}

// whyUnsent returns why the plugin has refused a request that failed with err. It returns nil if
// the request was sent, or failed for another reason.
func whyUnsent(err error) error {
	refused := (*refusedError)(nil)
	if errors.As(err, &refused) {
		return refused.cause
	}
	denied := (*DisallowedError)(nil)
	if errors.As(err, &denied) {
		return denied
	}
	private := (*PrivateNetworkError)(nil)
	foreign := (*ShardError)(nil)
	unpaced := (*PaceError)(nil)
	if errors.Is(err, ErrClosed) || errors.As(err, &private) || errors.As(err, &foreign) || errors.As(err, &unpaced) {
		return err // the plugin has refused a second attempt, or the address of the connection
	}
	return nil
}

// isUnsent reports whether err, the error of a Turn, says that the request was not sent: the program
// says so, or there was no connection.
func isUnsent(err error) bool {
	noName := (*net.DNSError)(nil)
	dial := (*net.OpError)(nil)
	return errors.Is(err, ErrNotSent) || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &noName) ||
		errors.As(err, &dial) && dial.Op == "dial"
}

// isTemporary reports whether a page that is denied with err may soon be allowed: its robots.txt
// could not be read, or the Pacer has failed.
func isTemporary(err error) bool {
	denied := (*DisallowedError)(nil)
	if errors.As(err, &denied) {
		return isUnread(&denied.Decision)
	}
	unpaced := (*PaceError)(nil)
	return errors.As(err, &unpaced)
}

// isLimit reports whether err denies a page because of StopRefused or MaxPages. The page may then
// be fetched by a later run.
func isLimit(err error) bool {
	denied := (*DisallowedError)(nil)
	return errors.As(err, &denied) && isLimitDenial(&denied.Decision)
}

// isSilence reports whether err denies a request because its host does not respond, so that its
// robots.txt is not known and none of its pages can be fetched.
func isSilence(err error) bool {
	denied := (*DisallowedError)(nil)
	return errors.As(err, &denied) && isUnread(&denied.Decision) && isUnanswered(denied.Decision.Err)
}

// isUnanswered reports whether err, the error of a robots.txt, says that the site has not answered:
// there was no response, or one that a proxy may have sent.
func isUnanswered(err error) bool {
	noResponse := (*policy.NoResponseError)(nil)
	status := (*policy.StatusError)(nil)
	return errors.As(err, &noResponse) || errors.As(err, &status) && status.Proxy != ""
}

// denialOf returns the reason of err, the error of a denied request.
func denialOf(err error) track.Denial {
	unpaced := (*PaceError)(nil)
	d := track.Denial{Temporary: errors.As(err, &unpaced)}
	denied := (*DisallowedError)(nil)
	if !errors.As(err, &denied) {
		d.Later = isForbidden(err) || errors.Is(err, ErrRedirectWait)
		return d
	}
	d.Later = denied.redirect
	switch {
	case isLimitDenial(&denied.Decision):
		d.Version = denied.Decision.NextTry
	case !isSilence(err): // otherwise each attempt may have requested the file again
		d.Version = denied.Decision.Expires
	}
	return d
}

// isLimitDenial reports whether d denies a URL because of StopRefused or MaxPages.
func isLimitDenial(d *Decision) bool {
	return d.Reason == report.ReasonRefused || d.Reason == report.ReasonBudget
}

// isUnread reports whether d denies a URL because its robots.txt cannot be read now. A denial by
// WhenForbidden is not such a denial: like that of a rule, it holds as long as the response may be
// cached.
func isUnread(d *Decision) bool {
	return d.Option != policy.OptionWhenForbidden && (d.Reason == report.ReasonUnreachable || d.Reason == report.ReasonSiteDown)
}
