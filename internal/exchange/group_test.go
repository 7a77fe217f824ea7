package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// failures are the errors of TestFailures.
var failures = []struct {
	err  error
	want Failure
}{
	{},
	{err: errors.New("x")},
	{err: (*net.DNSError)(nil)},
	{err: fmt.Errorf("x: %w", report.ErrClosed), want: Failure{Closed: true}},
	{err: ErrNotSent, want: Failure{Unsent: true}},
	{err: syscall.ECONNREFUSED, want: Failure{Unsent: true}},
	{err: &net.DNSError{}, want: Failure{Unsent: true}},
	{err: &net.OpError{Op: "dial", Err: errors.New("x")}, want: Failure{Unsent: true}},
	{err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, want: Failure{Reset: true}},
	{err: context.Canceled, want: Failure{Canceled: true}},
	{err: context.DeadlineExceeded},
	{err: alike{context.Canceled}, want: Failure{Canceled: true}},
	{err: alike{syscall.ECONNRESET}, want: Failure{Reset: true}},
	{err: alike{ErrNotSent}, want: Failure{Unsent: true}},
	{err: errors.Join(syscall.ECONNRESET, fmt.Errorf("x: %w", context.Canceled)), want: Failure{Reset: true, Canceled: true}},
}

// alike is an error that Is another one.
type alike struct{ other error }

func (alike) Error() string          { return "alike" }
func (a alike) Is(target error) bool { return target == a.other }

// withoutResolver makes the lookups of names fail during a test.
func withoutResolver(t *testing.T) {
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial:     func(context.Context, string, string) (net.Conn, error) { return nil, errRefused },
	}
}

// TestJoin checks which group a host joins before its first request, and for how long.
func TestJoin(t *testing.T) {
	withoutResolver(t)
	direct := new(http.Transport)
	proxied := &http.Transport{Proxy: http.ProxyURL(mustParse("http://proxy.test"))}
	tests := []struct {
		host    string
		through http.RoundTripper // if nil, direct
		group   string
		until   time.Duration
	}{
		{host: "domain.a.co.uk", group: "a.co.uk", until: always},
		{host: "192.88.0.1:8080", group: "192.88.0.1", until: always},
		{host: "[::ffff:192.88.0.1]", group: "192.88.0.1", until: always},
		{host: "a.test", through: proxied, until: addressTime},
		{host: "nowhere.test", until: failureTime},
	}
	for _, test := range tests {
		t.Run(test.host, func(t *testing.T) {
			inBubble(t, 0, func(w *world) {
				w.rules.Shares = true
				h := w.host(test.host)
				for range 2 {
					w.Join(w.t.Context(), h, cmp.Or[http.RoundTripper](test.through, direct), mustParse("http://"+test.host+"/"))
				}
				a := h.Assignment()
				if a.Name != test.group || a.Until.Sub(w.start) != test.until {
					t.Errorf("group %q for %v, want %q for %v", a.Name, a.Until.Sub(w.start), test.group, test.until)
				}
				if test.until == failureTime {
					w.wantLog("the address of a host could not be found")
				}
			})
		})
	}
}

// TestJoinEnds checks that a host keeps its group if the lookup ends with its context, or if the
// plugin is closed, and that hosts without shared pace have none.
func TestJoinEnds(t *testing.T) {
	withoutResolver(t)
	inBubble(t, 0, func(w *world) {
		w.rules.Shares = true
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel()
		h := w.host("a.test")
		for range maxLookups {
			w.groupings.slots <- struct{}{}
		}
		w.Join(ctx, h, new(http.Transport), mustParse("http://a.test/"))
		if a := h.Assignment(); !a.Until.IsZero() {
			t.Errorf("assigned until %v", a.Until)
		}
		w.Close()
		if _, err := w.groupings.find(w.t.Context(), "a.test"); err != report.ErrClosed {
			t.Errorf("after Close: %v", err)
		}
	})
	inBubble(t, 0, func(w *world) {
		h := w.host("192.88.0.1")
		w.Join(w.t.Context(), h, nil, mustParse("http://192.88.0.1/"))
		w.met(h, "192.88.0.1:80", address("192.88.0.1"))
		if a := h.Assignment(); a.Name != "" || !a.Until.IsZero() {
			t.Errorf("a host that is paced alone is in %q", a.Name)
		}
	})
}

// TestMet checks how connections change the group of a host.
func TestMet(t *testing.T) {
	const server = "a.test:80"
	first := groupAt([]netip.Addr{netip.MustParseAddr("192.88.0.2"), netip.MustParseAddr("192.88.0.1")}, addressTime)
	tests := []struct {
		name   string
		known  pace.Assignment
		target string
		addr   net.Addr
		group  string
	}{
		{name: "nothing was known", target: server, addr: address("192.88.0.3"), group: "192.88.0.3"},
		{name: "an address that was looked up", known: first, target: server, addr: address("192.88.0.2"), group: "192.88.0.1"},
		{name: "another address", known: first, target: server, addr: address("192.88.0.3"), group: "192.88.0.3"},
		{name: "a proxy", known: first, target: "proxy.test:3128", addr: address("192.88.0.3")},
		{name: "a proxy, and nothing was known", target: "proxy.test:3128", addr: address("192.88.0.3")},
		{name: "no TCP", known: first, target: server, addr: &net.UnixAddr{}, group: "192.88.0.1"},
	}
	for _, test := range tests {
		inBubble(t, 0, func(w *world) {
			w.rules.Shares = true
			h := w.host("a.test")
			h.Join(test.known)
			w.met(h, test.target, test.addr)
			if got := h.Assignment().Name; got != test.group {
				t.Errorf("%s: group %q, want %q", test.name, got, test.group)
			}
			if test.group == "192.88.0.3" {
				w.met(h, test.target, address("192.88.0.4"))
				if got := h.Assignment().Name; got != test.group {
					t.Errorf("%s: a second connection moves the host to %q", test.name, got)
				}
			}
		})
	}
}

// A fakeStore is a urlstore.Store with pages of every host, which records the pace.
type fakeStore struct {
	urlstore.Store
	paces []string
}

func (s *fakeStore) Waiting(string) int { return 3 }

func (s *fakeStore) Pace(host string, next time.Time, alone bool) {
	wait := "now"
	if !next.IsZero() {
		wait = time.Until(next).String()
	}
	s.paces = append(s.paces, fmt.Sprint(host, " ", wait, " ", alone))
}

// TestStores checks that each store gets the pace of hosts once, and counts their pages.
func TestStores(t *testing.T) {
	inBubble(t, time.Minute, func(w *world) {
		w.rules.Shares = true
		h := w.host("domain.a.test")
		w.Join(w.t.Context(), h, nil, mustParse("http://domain.a.test/"))
		w.TellNextStart(h)
		w.TellReturn(h)
		if w.OnDisk(h) != 0 || w.GroupsOnDisk(time.Now()) != nil {
			t.Error("pages on disk without a store")
		}
		s := new(fakeStore)
		other := new(fakeStore)
		w.AddStore(s)
		w.AddStore(other)
		w.AddStore(s)
		w.get(new(Exchange), "http://domain.a.test/", Lead{})
		w.TellNextStart(nil)
		w.TellNextStart(h)
		w.TellReturn(h)
		want := []string{"domain.a.test 1m0s true", "domain.a.test 1m0s true"}
		wantLines(t, "pace", s.paces, want)
		wantLines(t, "pace of the other store", other.paces, want)
		if w.OnDisk(h) != 6 || w.GroupsOnDisk(time.Now())["a.test"] != 6 {
			t.Errorf("%d pages on disk, groups %v; want 6", w.OnDisk(h), w.GroupsOnDisk(time.Now()))
		}
	})
}
