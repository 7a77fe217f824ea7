package backend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// A request is not written to an address that is refused, neither on a new connection nor on one
// that was kept alive. The refusal of one request does not affect others.
func TestPeerRefusesAnAddress(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var written atomic.Int32 // requests that were refused
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/accepted" {
					written.Add(1)
				}
			}))
			server.EnableHTTP2 = http2
			if http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			refused := errors.New("refused")
			guarded := &recorder{guard: func(hostPort string, addr net.Addr) error {
				if hostPort != server.Listener.Addr().String() || addr.String() != hostPort {
					t.Errorf("asked about %s at %s", hostPort, addr)
				}
				return refused
			}}
			send := func(path string, r *recorder) error {
				resp, err := backend.Do(server.Client().Transport, get(t.Context(), t, server.URL+path), 0, trip{r})
				if err != nil {
					return err
				}
				io.Copy(io.Discard, resp.Body)
				return resp.Body.Close()
			}
			for i := range 50 {
				if err := send(fmt.Sprint("/", i), guarded); !errors.Is(err, refused) {
					t.Fatalf("%v, want %v", err, refused)
				}
				if err := send("/accepted", new(recorder)); err != nil {
					t.Fatal(err)
				}
			}
			if peers := guarded.peers.Load(); peers != 50 {
				t.Errorf("asked about %d addresses, want one for each request", peers)
			}
			server.Close() // waits for its requests
			if n := written.Load(); n != 0 {
				t.Errorf("%d requests were written", n)
			}
		})
	}
}

// A lateTrip notes which of its methods are called after Ended. Its deadline comes after lasts, if
// that is not 0.
type lateTrip struct {
	trip
	lasts time.Duration
	late  []string
}

func (l *lateTrip) note(method string) {
	if l.ended.Load() > 0 {
		l.late = append(l.late, method)
	}
}

func (l *lateTrip) Peer(string, net.Addr) error {
	l.note("Peer")
	return nil
}

func (l *lateTrip) Ready() (terms backend.Terms, ok bool) {
	l.note("Ready")
	if l.lasts > 0 {
		terms.Deadline = time.Now().Add(l.lasts)
		terms.Late = context.DeadlineExceeded
	}
	return terms, true
}

func (l *lateTrip) Again(context.Context) error {
	l.note("Again")
	return nil
}

func (l *lateTrip) Sent() { l.note("Sent") }

// A connection may be there just when the time of the request is up. The Trip must not be called
// then, because its owner may use it for another request after Ended.
func TestNoCallAfterEnded(t *testing.T) {
	for name, limits := range map[string]struct{ timeout, lasts time.Duration }{
		"timeout":  {timeout: time.Millisecond},
		"deadline": {lasts: time.Millisecond},
		"both":     {timeout: time.Hour, lasts: time.Millisecond},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			l := &lateTrip{trip: newTrip(), lasts: limits.lasts}
			here, there := net.Pipe()
			defer there.Close()
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(req.Context())
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				<-req.Context().Done()
				if err := req.Context().Err(); err != context.DeadlineExceeded {
					t.Errorf("error of the context: %v, want %v", err, context.DeadlineExceeded)
				}
				late := func() {
					trace.GetConn("a.test:80")
					trace.GotConn(httptrace.GotConnInfo{Conn: here})
					trace.WroteHeaders()
				}
				late()
				time.AfterFunc(time.Second, late)
				return nil, req.Context().Err()
			})
			_, err := backend.Do(rt, get(t.Context(), t, "http://a.test/"), limits.timeout, l)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
			}
			time.Sleep(2 * time.Second)
			if len(l.late) > 0 {
				t.Errorf("called after Ended: %v", l.late)
			}
			if here.SetDeadline(time.Time{}) == nil {
				t.Error("the connection is still open")
			}
		}))
	}
}

func (l *lateTrip) Answered(resp *http.Response) (again bool, report func()) {
	l.note("Answered")
	return false, nil
}

// A transport may return a response although the time of the request is up.
func TestResponseAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := roundTripper(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Minute)
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
		})
		l := &lateTrip{trip: newTrip()}
		resp, err := backend.Do(slow, get(t.Context(), t, "http://a.test/"), time.Second, l)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if ended := l.ended.Load(); ended != 1 || len(l.late) > 0 {
			t.Errorf("ended %d times, called after Ended: %v", ended, l.late)
		}
	})
}

// A transport may attempt to send a request although another attempt has a response, or although
// the context of the request has ended. Then the trip is not asked, and nothing is written.
func TestNoAttemptWhenDone(t *testing.T) {
	first, peer := net.Pipe()
	defer first.Close()
	defer peer.Close()
	attempt := func(ctx context.Context, conn net.Conn) {
		trace := httptrace.ContextClientTrace(ctx)
		trace.GetConn("a.test:80")
		trace.GotConn(httptrace.GotConnInfo{Conn: conn})
	}
	for name, late := range map[string]func(t *testing.T, r *recorder, second net.Conn){
		"response": func(t *testing.T, r *recorder, second net.Conn) {
			var ctx context.Context
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				ctx = req.Context()
				attempt(ctx, first)
				return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
			})
			resp, err := backend.Do(rt, get(t.Context(), t, "http://a.test/"), 0, trip{r})
			if err != nil {
				t.Fatal(err)
			}
			attempt(ctx, second)
			resp.Body.Close()
		},
		"context": func(t *testing.T, r *recorder, second net.Conn) {
			ctx, cancel := context.WithCancel(t.Context())
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				attempt(req.Context(), first)
				cancel()
				attempt(req.Context(), second)
				return nil, context.Cause(req.Context())
			})
			_, err := backend.Do(rt, get(ctx, t, "http://a.test/"), 0, trip{r})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			second, peer := net.Pipe()
			defer peer.Close()
			r := new(recorder)
			late(t, r, second)
			if repeats := r.repeats.Load(); repeats != 0 {
				t.Errorf("Again was called %d times", repeats)
			}
			if first.SetDeadline(time.Time{}) != nil {
				t.Error("the connection of the first attempt is closed")
			}
			if second.SetDeadline(time.Time{}) == nil {
				t.Error("the connection of the second attempt is open")
			}
		})
	}
}

// A leasedTrip has a lease for a minute. When the lease has expired, it needs a second to get
// another.
type leasedTrip struct {
	trip
	until time.Time
	fault string
}

func (l *leasedTrip) Ready() (terms backend.Terms, ok bool) {
	terms = backend.Terms{Deadline: l.until, Late: context.DeadlineExceeded}
	return terms, time.Now().Before(l.until)
}

func (l *leasedTrip) Again(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.ended.Load() > 0 {
		l.fault = "Ended was called while Again was running"
	}
	l.until = time.Now().Add(time.Minute)
	return nil
}

// A connection may be there just when the lease expires. Then either the request ends or it gets a
// new lease.
func TestLeaseExpiresWhileConnecting(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := &leasedTrip{trip: newTrip(), until: time.Now().Add(time.Minute)}
			here, there := net.Pipe()
			defer there.Close()
			defer here.Close()
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(req.Context())
				time.Sleep(time.Until(l.until))
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				return nil, errors.New("no response")
			})
			_, err := backend.Do(rt, get(t.Context(), t, "http://a.test/"), 0, l)
			if err == nil || l.fault != "" {
				t.Fatal(err, l.fault)
			}
		})
	}
}

// A quicConn is what an HTTP/3 transport reports as a connection.
type quicConn struct{ net.Conn }

func (quicConn) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }
func (quicConn) Close() error         { panic("the connection is closed for all requests") }

// A request that has ended must not close an HTTP/3 connection, because other requests use it.
func TestHTTP3ConnectionStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("a.test:443")
			<-req.Context().Done()
			trace.GotConn(httptrace.GotConnInfo{Conn: quicConn{}})
			return nil, req.Context().Err()
		})
		_, err := backend.Do(rt, get(t.Context(), t, "https://a.test/"), time.Second, newTrip())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// A transport with a budget may cancel the collector's context and still send the request. The
// context of the request must be done at once.
func TestContextIsDoneWithItsParent(t *testing.T) {
	for range 300 {
		c := install(t, colly.NewCollector(), new(recorder))
		ctx, cancel := context.WithCancelCause(t.Context())
		spent := errors.New("the budget is spent")
		c.Context = backend.Mark(ctx, new(recorder))
		c.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
			derived, stop := context.WithCancel(req.Context())
			defer stop()
			cancel(spent)
			if req.Context().Err() != context.Canceled || derived.Err() != context.Canceled {
				t.Errorf("the context of the request: %v, a context derived from it: %v; want both %v",
					req.Context().Err(), derived.Err(), context.Canceled)
			}
			return nil, context.Cause(derived)
		}))
		if err := c.Visit("http://a.test/"); !errors.Is(err, spent) || t.Failed() {
			t.Fatalf("Visit: %v, want %v", err, spent)
		}
	}
}

// sleeping is a transport that looks at the deadline of its context and not at Done. Its server
// needs an hour to answer.
func sleeping(req *http.Request) (*http.Response, error) {
	wait := time.Hour
	if deadline, ok := req.Context().Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	time.Sleep(wait)
	return nil, errors.New("timeout")
}

func TestContextHasADeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout time.Duration // of the client
		context time.Duration // the timeout of the collector's context
		lasts   time.Duration // the deadline of the Trip
		want    time.Duration
	}{
		"none":           {want: time.Hour},
		"client":         {timeout: 10 * time.Second, want: 10 * time.Second},
		"context":        {timeout: 10 * time.Second, context: 5 * time.Second, want: 5 * time.Second},
		"context, later": {timeout: 10 * time.Second, context: 15 * time.Second, want: 10 * time.Second},
		"trip":           {timeout: 10 * time.Second, lasts: 3 * time.Second, want: 3 * time.Second},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			ctx := t.Context()
			if tc.context > 0 {
				bounded, cancel := context.WithTimeout(ctx, tc.context)
				defer cancel()
				ctx = bounded
			}
			began := time.Now()
			l := &lateTrip{trip: newTrip(), lasts: tc.lasts}
			_, err := backend.Do(roundTripper(sleeping), get(ctx, t, "http://a.test/"), tc.timeout, l)
			if took := time.Since(began); took != tc.want {
				t.Errorf("%v after %v, want %v", err, took, tc.want)
			}
			synctest.Wait()
		}))
	}
}
