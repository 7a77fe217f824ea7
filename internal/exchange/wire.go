package exchange

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/urlstore"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// A Wire is what all requests of one plugin share: the pace of the hosts, and what may be requested.
type Wire struct {
	Hosts    *pace.Hosts
	Report   *reporter.Reporter
	Client   *http.Client // for the plugin's own exchanges; if nil, they use the collector's client
	Networks *netguard.Guard
	Quota    *netguard.Quota // of requests to other sites
	IsShared bool            // other processes share the pace
	ErrLate  error           // of a response that is not finished when the lease ends

	stores     atomic.Pointer[[]urlstore.Store] // get the pace of each host; nil if there are none
	groupings  *groupings
	signatures *signatures  // nil if no request is signed
	licenses   atomic.Int64 // the responses that have asked for a license
	dates      dates        // parses their Date for the events
}

// NewWire returns the wire of a plugin whose hosts share their pace as groupings says. If groupings
// is nil, they share none. The caller sets the fields Client, Networks, Quota and ErrLate.
func NewWire(hosts *pace.Hosts, groupings func(host string) Sharing, r *reporter.Reporter) *Wire {
	return &Wire{Hosts: hosts, Report: r, groupings: newGroupings(groupings)}
}

// Sign makes the wire sign all requests or, if signer.WhenAsked is set, the requests to hosts that
// have asked for it.
func (w *Wire) Sign(signer *webbotauth.Signer) {
	w.signatures = newSignatures(signer, w.Report)
}

// Signs reports whether some requests are signed.
func (w *Wire) Signs() bool { return w.signatures != nil }

// Share makes all hosts ask p for their turns.
func (w *Wire) Share(p pacer.Pacer) {
	w.Hosts.UsePacer(&sharedPace{pacer: p, report: w.Report})
	w.IsShared = true
}

// Close ends all waits for hosts with report.ErrClosed.
func (w *Wire) Close() {
	w.Hosts.Close(report.ErrClosed)
	w.groupings.close()
}

// Statistics returns the counts of signatures, or nil if no request is signed, and the number of
// responses that have asked for a license.
func (w *Wire) Statistics() (signatures *report.SignatureStats, licenses int) {
	return w.signatures.statistics(), int(w.licenses.Load())
}

// hasGroups reports whether some hosts may share their pace.
func (w *Wire) hasGroups() bool { return w.groupings.inUse() }

// Allow returns an error if the plugin must not request u, which is on host, for the reason from.
// guard is the guard of the exchange, because the address may be known only when there is a
// connection.
func (w *Wire) Allow(from Lead, host string, u *url.URL) (guard *report.PrivateNetworkError, err error) {
	if from.Host != "" && from.Host != host {
		err = from.Client.Forbids(u)
		if err != nil {
			return nil, &domainError{from: from.Host, url: u.Redacted(), err: err}
		}
	}
	err = w.Quota.Check(from.Payer, host)
	if err != nil {
		return nil, err
	}
	return w.Guard(from.Host, host, u)
}

// transport returns the transport of the plugin's own requests.
func (w *Wire) transport(s *backend.Seam) http.RoundTripper {
	switch {
	case w.Client != nil:
		return w.Client.Transport
	case s != nil:
		return s.Transport()
	}
	return http.DefaultTransport
}

// backOff returns a function that logs the back-off of a host.
func (w *Wire) backOff(s pace.Stats, host *pace.Host, resp *http.Response) (log func()) {
	length := slog.Duration("delay", s.BackOff.Round(time.Millisecond))
	logged := uint16(reporter.LoggedBackOff)
	if !s.NotBefore.IsZero() {
		length = slog.Time("until", s.NotBefore)
		logged = reporter.LoggedRetryAfter
	}
	host.MarkPace(logged)
	facts := []any{"host", s.Host, "url", resp.Request.URL.Redacted(), "status", resp.StatusCode, length, "count", s.Waiting}
	return func() { w.Report.Log.Warn("host is throttling, slowing down", facts...) }
}

// Guard returns the guard of a request for u on the host to, which the host from leads to. from is
// empty if the program makes the request. A guard is the error with which the request fails if its
// connection shows that to is private. It is nil if the request may go to any address. If to is
// known to be private, Guard returns no guard, and an error.
func (w *Wire) Guard(from, to string, u *url.URL) (*report.PrivateNetworkError, error) {
	guarded, address := w.Networks.Check(from, to)
	if !guarded {
		return nil, nil
	}
	guard := &report.PrivateNetworkError{URL: u.Redacted(), Address: address, From: from}
	if address != "" {
		return nil, guard
	}
	return guard, nil
}

// connected records the address of a connection to a host. It returns an error if a request with
// this guard, which may be nil, must not be sent on the connection.
func (w *Wire) connected(h netguard.Host, addr net.Addr, guard *report.PrivateNetworkError) error {
	from := ""
	if guard != nil {
		from = guard.From
	}
	address := w.Networks.Connected(h, addr, from)
	if address == "" {
		return nil
	}
	err := &report.PrivateNetworkError{Address: address, From: from}
	if guard != nil {
		err.URL = guard.URL
	}
	return err
}

// A domainError is the error of a request to a domain that the user has forbidden.
type domainError struct {
	from string // the host that led to the domain
	url  string
	err  error
}

func (e *domainError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s: %v", e.from, e.url, e.err)
}

func (e *domainError) Unwrap() error { return e.err }

// IsForbidden reports whether a request was not sent because its target must not be requested, or
// not from the site that led to it.
func IsForbidden(err error) bool {
	private := (*report.PrivateNetworkError)(nil)
	domain := (*domainError)(nil)
	excess := (*netguard.QuotaError)(nil)
	return errors.As(err, &private) || errors.As(err, &domain) || errors.As(err, &excess)
}
