package judge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestRetriesOfErrors checks which errors of net/http are repeated without an option, and that final ones
// are never passed to the function of the user.
func TestRetriesOfErrors(t *testing.T) {
	usual := new(Retries)
	usual.SetDefaults()
	asked := 0
	any := &Retries{Errors: func(error) bool { asked++; return true }}
	any.SetDefaults()
	for _, test := range []struct {
		name      string
		err       error
		usual     bool
		isDecided bool // without the function of the user
	}{
		{"reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, true, false},
		{"refused", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true, false},
		{"closed", io.EOF, true, false},
		{"closed by the server", errors.New("http: server closed idle connection"), true, false},
		{"HTTP/2 reset", errors.New("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), true, false},
		{"time limit", context.DeadlineExceeded, true, false},
		{"DNS, time limit", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, true, false},
		{"DNS, temporary", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, true, false},
		{"DNS, no such host", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, false, false},
		{"malformed response", errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response"), false, false},
		{"certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, false, true},
		{"no TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false, true},
		{"TLS alert", tls.AlertError(40), false, true},
		{"canceled", context.Canceled, false, true},
	} {
		for _, err := range []error{test.err, &url.Error{Op: "Get", URL: "http://a.test/", Err: test.err}, fmt.Errorf("wrapped: %w", test.err)} {
			if got := usual.FailsWith(http.MethodGet, err); got != test.usual {
				t.Errorf("%s: %T is repeated: %v", test.name, err, got)
			}
			before := asked
			if got := any.FailsWith(http.MethodGet, err); got == test.isDecided || asked == before != test.isDecided {
				t.Errorf("%s: %T is repeated with Errors: %v", test.name, err, got)
			}
		}
	}
	if (*Retries)(nil).FailsWith("GET", io.EOF) || ThrottledRetries(1).FailsWith("GET", io.EOF) || ThrottledRetries(0) != nil {
		t.Error("an error is repeated without Retry")
	}
}

// TestRetriesOfMethods checks which methods are repeated.
func TestRetriesOfMethods(t *testing.T) {
	r := new(Retries)
	r.SetDefaults()
	for method, want := range map[string]bool{"": true, "GET": true, "HEAD": true, "PUT": true, "DELETE": true, "POST": false, "PATCH": false, "CONNECT": false, "get": false} {
		if got := r.AnswersTo(method, 500); got != want {
			t.Errorf("%q is repeated: %v", method, got)
		}
	}
	if !ThrottledRetries(1).AnswersTo("POST", 429) || ThrottledRetries(1).AnswersTo("GET", 500) {
		t.Error("RetryThrottled repeats other requests than before")
	}
}

// TestBackOff checks that the back-off doubles up to its limit, with a share of up to a half.
func TestBackOff(t *testing.T) {
	r := &Retries{Wait: 10 * time.Second}
	for n, least := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		least *= time.Second
		for range 100 {
			if got := r.BackOff(n); got < least || got > least+least/2 {
				t.Fatalf("after %d repetitions: %v, want %v and up to a half more", n, got, least)
			}
		}
	}
	if got := r.BackOff(1 << 20); got > longestBackOff+longestBackOff/2 {
		t.Errorf("after a million repetitions: %v", got)
	}
	if got := (&Retries{Wait: time.Hour}).BackOff(3); got < time.Hour {
		t.Errorf("a Wait of an hour becomes %v", got)
	}
	if ThrottledRetries(3).BackOff(2) != 0 {
		t.Error("RetryThrottled has a back-off of its own")
	}
}
