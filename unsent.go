package collyrobots

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/report"
)

// This file says why a request was not sent.

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
