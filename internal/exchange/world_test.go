package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A world is the wire of a plugin in a bubble, with a server in memory, which is the RoundTripper of
// the plugin's own requests.
type world struct {
	*Wire
	t     *testing.T
	start time.Time
	rules pace.Rules
	log   bytes.Buffer
	// answer returns the response to a request. If nil, each response has status 200.
	answer func(*http.Request) *http.Response
	// peer makes the server report a connection to this address before it answers.
	peer net.Addr

	mu       sync.Mutex
	requests []string        // "1s GET a.test/page"
	events   []*report.Event // set by listener.Deliver
	listener *fanout.Listener[*report.Event]
}

// inBubble runs a test with a world whose hosts have a delay.
func inBubble(t *testing.T, delay time.Duration, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &world{t: t, start: time.Now(), rules: pace.Rules{MinDelay: delay}}
		hosts := pace.New(func(string) *pace.Rules { return &w.rules })
		options := &slog.HandlerOptions{ReplaceAttr: withoutTime}
		r := reporter.New(slog.New(slog.NewTextHandler(&w.log, options)))
		w.Wire = NewWire(hosts, func(host string) Sharing { return sharingOf(host) }, r)
		w.Client = &http.Client{Transport: w}
		w.allow(netguard.AllowAll)
		w.Quota = netguard.NewQuota(hostname.Registrable, errors.New("elsewhere"))
		w.listener = r.Events.ListenOnDemand(func(e *report.Event) { w.events = append(w.events, e) })
		test(w)
		w.Wire.Close()
		r.Events.Close()
	})
}

// allow sets which addresses of private networks may be requested.
func (w *world) allow(access netguard.Access) {
	w.Networks = netguard.New(func(name string) netguard.Host { return w.host(name) }, access)
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// sharingOf returns how the hosts of the tests share their pace, if their rules let them.
func sharingOf(host string) Sharing {
	if strings.HasPrefix(host, "domain.") {
		return withDomain
	}
	return withAddress
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	if w.peer != nil {
		hostPort := req.URL.Host + ":80"
		if strings.Contains(req.URL.Path, "proxied") {
			hostPort = "proxy.test:3128"
		}
		trace.GetConn(hostPort)
		trace.GotConn(httptrace.GotConnInfo{Conn: conn{peer: w.peer}})
	}
	if err := req.Context().Err(); err != nil {
		return nil, context.Cause(req.Context())
	}
	if w.peer != nil {
		trace.WroteHeaders()
	}
	w.mu.Lock()
	w.requests = append(w.requests, fmt.Sprintf("%v %s %s%s", time.Since(w.start), req.Method, req.URL.Host, req.URL.RequestURI()))
	w.mu.Unlock()
	resp := respond(http.StatusOK, nil)
	if w.answer != nil {
		resp = w.answer(req)
	}
	if resp == nil {
		return nil, errors.New("broken")
	}
	resp.Request = req
	return resp, nil
}

// respond returns a response with a short body. header has names and values in turn.
func respond(status int, header http.Header) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("body"))}
}

// A conn is a connection with an address that is only reported.
type conn struct {
	net.Conn
	peer net.Addr
}

func (c conn) RemoteAddr() net.Addr { return c.peer }
func (c conn) Close() error         { return nil }

// address returns a TCP address.
func address(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 80} }

// get sends a request with x and reads its body. The result is its status or its error.
func (w *world) get(x *Exchange, rawURL string, from Lead) string {
	x.Wire = w.Wire
	req, err := http.NewRequest(http.MethodGet, rawURL, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if from.Client == nil {
		from.Client = SeamClient{}
	}
	resp, _, err := x.Send(req, nil, 0, from)
	if err != nil {
		return err.Error()
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

// host returns the host with a name.
func (w *world) host(name string) *pace.Host { return w.Hosts.At(time.Now(), name) }

// wantRequests checks the requests that the server got.
func (w *world) wantRequests(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	wantLines(w.t, "requests", w.requests, want)
}

// eventLines returns the events so far, as eventLine describes them.
func (w *world) eventLines() (lines []string) {
	w.listener.Deliver()
	for _, e := range w.events {
		lines = append(lines, eventLine(e, w.start))
	}
	return lines
}

// wantEvents checks the events so far.
func (w *world) wantEvents(want ...string) {
	w.t.Helper()
	wantLines(w.t, "events", w.eventLines(), want)
}

// must ends the test if there is an error.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// wantLog checks that the log is empty, or that it contains text exactly once.
func (w *world) wantLog(text string) {
	w.t.Helper()
	log := w.log.String()
	if text == "" && log != "" || text != "" && strings.Count(log, text) != 1 {
		w.t.Errorf("log: got %q, want %q once", log, text)
	}
}

func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// eventLine describes an event: its time, kind and host, and those of its other fields that are set.
func eventLine(e *report.Event, start time.Time) string {
	line := fmt.Sprintf("%v %s %s", e.Time.Sub(start), e.Kind, e.Host)
	add := func(name string, value any) {
		switch value {
		case nil, 0, false, "", time.Duration(0):
		default:
			line += fmt.Sprintf(" %s=%v", name, value)
		}
	}
	add("for", string(e.RequestKind))
	add("status", e.Status)
	add("gap", e.Gap)
	add("delay", e.Delay)
	add("source", string(e.Source))
	add("waited", e.Waited)
	add("took", e.Took)
	add("remote", e.Remote)
	add("signed", e.Signed)
	add("more", e.More)
	add("failed", e.Failed)
	if !e.Until.IsZero() {
		add("until", e.Until.Sub(start))
	}
	add("err", e.Err)
	return line
}

// mustParse returns a URL.
func mustParse(rawURL string) *url.URL {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(err)
	}
	return u
}
