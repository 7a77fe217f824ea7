package judge

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Retries are the settings of the options Retry and RetryThrottled. They are not changed.
type Retries struct {
	Max       int
	Statuses  []int
	Errors    func(error) bool // nil for those of RetryThrottled
	Wait      time.Duration    // the back-off before the first repetition; 0 for RetryThrottled, which leaves it to the host
	AnyMethod bool
}

// ThrottledRetries returns the settings of RetryThrottled, or nil if n is 0.
func ThrottledRetries(n int) *Retries {
	if n <= 0 {
		return nil
	}
	return &Retries{
		Max:       n,
		Statuses:  []int{http.StatusTooManyRequests, http.StatusServiceUnavailable},
		AnyMethod: true,
	}
}

// SetDefaults replaces the zero values of the option Retry.
func (r *Retries) SetDefaults() {
	if r.Max == 0 {
		r.Max = 3
	}
	if r.Statuses == nil {
		r.Statuses = []int{
			http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}
	}
	if r.Errors == nil {
		r.Errors = canPass
	}
	if r.Wait == 0 {
		r.Wait = time.Second
	}
}

// HasRetry reports whether the option Retry is set.
func (s *HostSettings) HasRetry() bool { return s.Retries != nil && s.Retries.Wait > 0 }

// AnswersTo reports whether a response with this status to a request with this method is repeated.
func (r *Retries) AnswersTo(method string, status int) bool {
	return r != nil && slices.Contains(r.Statuses, status) && r.repeats(method)
}

// FailsWith reports whether a request with this method that has failed with err is repeated.
func (r *Retries) FailsWith(method string, err error) bool {
	return r != nil && r.Errors != nil && r.repeats(method) && !isFinal(err) && r.Errors(err)
}

// repeats reports whether a request with this method may be sent twice.
func (r *Retries) repeats(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.AnyMethod
}

// longestBackOff is the longest back-off that doubling leads to.
const longestBackOff = 5 * time.Minute

// BackOff returns the time before the next repetition of a request that was repeated n times.
func (r *Retries) BackOff(n int) time.Duration {
	d := r.Wait
	for ; n > 0 && d < longestBackOff; n-- {
		d = min(2*d, longestBackOff)
	}
	return d + time.Duration(rand.Float64()*float64(d)/2)
}

// isFinal reports whether err is one that no repetition can mend: the end of a context, or an error of
// TLS.
func isFinal(err error) bool {
	certificate := (*tls.CertificateVerificationError)(nil)
	record := tls.RecordHeaderError{}
	alert := tls.AlertError(0)
	return errors.Is(err, context.Canceled) || errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert)
}

// passing are the errors of connections that can pass.
var passing = []error{
	syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
}

// closedByServer are texts of errors of net/http that have no value or type.
var closedByServer = []string{"server closed idle connection", "http2: server sent GOAWAY", "stream error: "}

// canPass reports whether err is that of a failure which can pass.
func canPass(err error) bool {
	unknown := (*net.DNSError)(nil)
	if errors.As(err, &unknown) {
		return unknown.IsTimeout || unknown.IsTemporary
	}
	timeout := net.Error(nil)
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	if slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
		return true
	}
	return slices.ContainsFunc(closedByServer, func(text string) bool { return strings.Contains(err.Error(), text) })
}
