package backend_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// A brief trip notes whether it is told of anything after its end. With a lease that lasts, that is
// its deadline.
type brief struct {
	trip
	lasts time.Duration
	late  []string // of which it was told then
}

func (b *brief) note(what string) {
	if b.ended.Load() > 0 {
		b.late = append(b.late, what)
	}
}

func (b *brief) Peer(string, net.Addr) error { b.note("Peer"); return nil }
func (b *brief) Ready() bool                 { b.note("Ready"); return true }
func (b *brief) Again(context.Context) error { b.note("Again"); return nil }
func (b *brief) Sent()                       { b.note("Sent") }
func (b *brief) Deadline() (by time.Time, late error) {
	b.note("Deadline")
	if b.lasts > 0 {
		by = time.Now().Add(b.lasts)
	}
	return by, context.DeadlineExceeded
}

// A connection may be there just when the time of the exchange is up: whoever made the request may
// have another one in its place by then.
func TestATripIsToldNothingAfterItsEnd(t *testing.T) {
	for name, limits := range map[string]struct{ timeout, lasts time.Duration }{
		"timeout": {timeout: time.Millisecond}, "deadline": {lasts: time.Millisecond}, "deadline within the timeout": {time.Hour, time.Millisecond},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			b := &brief{trip: trip{new(watcher)}, lasts: limits.lasts}
			here, there := net.Pipe()
			defer there.Close()
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(req.Context())
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				<-req.Context().Done()
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				trace.WroteHeaders()
				return nil, req.Context().Err()
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = backend.Do(rt, req, limits.timeout, b); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
			}
			if len(b.late) > 0 {
				t.Errorf("after its end the trip was told of %v", b.late)
			}
			if here.SetDeadline(time.Time{}) == nil {
				t.Error("the connection is still open")
			}
		}))
	}
}

// A lapsed trip has a lease for a minute, which cannot be sent with when that is over, and takes a
// second to get another.
type lapsed struct {
	trip
	until time.Time
	fault string
}

func (l *lapsed) Ready() bool                          { return time.Now().Before(l.until) }
func (l *lapsed) Deadline() (by time.Time, late error) { return l.until, context.DeadlineExceeded }

func (l *lapsed) Again(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.ended.Load() > 0 {
		l.fault = "it was asked for a new lease, and ended meanwhile"
	}
	l.until = time.Now().Add(time.Minute)
	return nil
}

// A connection may be there just when the lease ends: whichever comes first, it is either the end, or
// there is a new lease.
func TestALeaseEndsWhenTheConnectionIsThere(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := &lapsed{trip: trip{new(watcher)}, until: time.Now().Add(time.Minute)}
			here, there := net.Pipe()
			defer there.Close()
			defer here.Close()
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(req.Context())
				time.Sleep(time.Until(l.until))
				trace.GetConn("a.test:80")
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				return nil, errors.New("that is all")
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = backend.Do(rt, req, 0, l); err == nil || l.fault != "" {
				t.Fatal(err, l.fault)
			}
		})
	}
}

func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// A quicConn is what RoundTrippers that speak HTTP/3 tell of in place of a connection, which is no
// net.Conn: there is no closing it.
type quicConn struct{ net.Conn }

func (quicConn) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }
func (quicConn) Close() error         { panic("the connection is closed for all requests") }

// What has ended when there is a connection of HTTP/3 leaves that alone: requests share it.
func TestAConnectionOfHTTP3IsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("a.test:443")
			<-req.Context().Done()
			trace.GotConn(httptrace.GotConnInfo{Conn: quicConn{}})
			return nil, req.Context().Err()
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = backend.Do(rt, req, time.Second, trip{new(watcher)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
