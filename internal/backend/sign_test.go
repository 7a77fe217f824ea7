package backend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// A numbering signs requests with numbers, from 1.
type numbering struct {
	mu sync.Mutex
	n  int
}

func (n *numbering) sign(req *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n++
	req.Header.Set("Signature", fmt.Sprint(n.n))
}

// signaturesOf returns a server, and a function that returns the signatures that it has received.
// It drops requests for /drop that have one of the signatures in dropped.
func signaturesOf(t *testing.T, dropped string) (*httptest.Server, func() string) {
	t.Helper()
	var mu sync.Mutex
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		signature := r.Header.Get("Signature")
		received = append(received, signature)
		if r.URL.Path == "/drop" && strings.Contains(dropped, signature) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(received, " ")
	}
}

// A sender sends a request of a recorder, with a transport.
type sender func(r *recorder, rt http.RoundTripper, req *http.Request) (*http.Response, error)

var senders = map[string]sender{
	"Do": func(r *recorder, rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		return backend.Do(rt, req, time.Minute, trip{r})
	},
	"Seam": func(r *recorder, rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		return backend.NewSeam(rt, r).RoundTrip(req)
	},
}

// TestSign checks that each request has one signature of its own on the wire, that a request that
// an http.Transport repeats is signed again, and that the header of the caller does not change.
func TestSign(t *testing.T) {
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			server, received := signaturesOf(t, "2 3")
			n := new(numbering)
			r := &recorder{sign: n.sign}
			rt := server.Client().Transport
			for _, path := range []string{"/", "/drop", "/"} {
				req := get(t.Context(), t, strings.Replace(server.URL, "://", "://user:pass@", 1)+path)
				req.Header.Set("X", "y")
				resp, err := send(r, rt, req)
				if path == "/drop" && err != nil {
					continue // the server has also dropped the repeated request
				}
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				seen := name == "Seam" && resp.Request.Header.Get("Signature") != "" // Do has no other caller than the plugin
				if len(req.Header) != 1 || seen {
					t.Errorf("header of the request %v, of the response's request %v", req.Header, resp.Request.Header)
				}
			}
			if got := received(); got != "1 2 3 4" {
				t.Errorf("the server has received the signatures %s", got)
			}
		})
	}
}

// TestSignWithoutHeader checks a request whose Header is nil.
func TestSignWithoutHeader(t *testing.T) {
	server, received := signaturesOf(t, "")
	r := &recorder{sign: new(numbering).sign}
	req := get(t.Context(), t, server.URL)
	req.Header = nil
	resp, err := senders["Seam"](r, server.Client().Transport, req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if received() != "1" {
		t.Errorf("received %s", received())
	}
}

// TestRefusedAddressIsNotSigned checks that neither Sign nor Sent is called for a request whose address
// Peer refuses, if the transport is an http.Transport.
func TestRefusedAddressIsNotSigned(t *testing.T) {
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			server, received := signaturesOf(t, "")
			n := new(numbering)
			refusal := errors.New("refused")
			r := &recorder{sign: n.sign, guard: func(string, net.Addr) error { return refusal }}
			_, err := send(r, server.Client().Transport, get(t.Context(), t, server.URL))
			if !errors.Is(err, refusal) {
				t.Errorf("error %v", err)
			}
			if n.n != 0 || received() != "" {
				t.Errorf("%d signatures, received %q", n.n, received())
			}
			if sent := r.sent.Load(); sent != 0 {
				t.Errorf("Sent was called %d times", sent)
			}
		})
	}
}

// TestOtherTransportIsSignedBefore checks that a transport that is not an http.Transport gets a
// signed copy.
func TestOtherTransportIsSignedBefore(t *testing.T) {
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			r := &recorder{sign: new(numbering).sign}
			got := ""
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				got = req.Header.Get("Signature")
				return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
			})
			req := get(context.Background(), t, "http://a.test/")
			resp, err := send(r, rt, req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got != "1" || len(req.Header) != 0 {
				t.Errorf("the transport got the signature %q, header of the request %v", got, req.Header)
			}
		})
	}
}

// A repeater is a Trip that asks for one repetition.
type repeater struct {
	trip
	repeated bool
}

func (r *repeater) Answered(resp *http.Response) (again bool, report func()) {
	r.trip.Answered(resp)
	again = !r.repeated
	r.repeated = true
	return again, nil
}

// TestDoSendsAgain checks that Do repeats a request if its Trip asks for that, and ends the Trip
// once.
func TestDoSendsAgain(t *testing.T) {
	server, received := signaturesOf(t, "")
	r := &recorder{sign: new(numbering).sign}
	resp, err := backend.Do(server.Client().Transport, get(t.Context(), t, server.URL), time.Minute, &repeater{trip: trip{r}})
	if err != nil {
		t.Fatal(err)
	}
	if r.ended.Load() != 0 {
		t.Error("the Trip has ended before the body was closed")
	}
	resp.Body.Close()
	if received() != "1 2" || r.ended.Load() != 1 || r.answered.Load() != 2 || r.repeats.Load() != 1 {
		t.Errorf("received %q; ended %d, answered %d, repeated %d times", received(), r.ended.Load(), r.answered.Load(), r.repeats.Load())
	}
}
