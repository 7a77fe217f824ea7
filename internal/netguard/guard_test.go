package netguard

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

var (
	publicAddr  = &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}
	privateAddr = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}
)

// A host implements Host.
type host struct {
	name string
	bits uint16
}

func (h *host) Name() string { return h.name }

func (h *host) HasMark(bit uint16) bool { return h.bits&bit != 0 }

func (h *host) Mark(bit uint16) bool {
	first := !h.HasMark(bit)
	h.bits |= bit
	return first
}

// hosts are the hosts of one test, by name.
type hosts map[string]*host

func (hs hosts) at(name string) Host {
	if hs[name] == nil {
		hs[name] = &host{name: name}
	}
	return hs[name]
}

func TestPrivateNames(t *testing.T) {
	g := New(make(hosts).at, GuardLeads)
	for name, want := range map[string]bool{
		"10.0.0.1": true, "192.168.1.1:8080": true, "[::1]": true, "[::1]:8080": true, "[::ffff:10.0.0.1]": true, "[64:ff9b::a00:1]": true,
		"[2002:a00:1::]": true, "[::127.0.0.1]": true, "localhost:6379": true, "db.localhost": true, "0.0.0.0": true, "[fe80::1]": true,
		"93.184.216.34": false, "[64:ff9b::5db8:d822]": false, "[2606:2800:220:1::1]": false, "localhost.test": false, "a.test:80": false,
	} {
		if got := g.Private(name); got != want {
			t.Errorf("Private(%q) = %v, want %v", name, got, want)
		}
		guarded, address := g.Check("a.test", name)
		if !guarded || want != (address != "") {
			t.Errorf("Check(a.test, %q) = %v, %q", name, guarded, address)
		}
	}
}

func TestRequestsThatAreNotGuarded(t *testing.T) {
	for name, test := range map[string]struct {
		from   string
		access Access
	}{
		"made by the program":      {from: ""},
		"led to by a private host": {from: "10.0.0.2"},
		"everything is allowed":    {from: "a.test", access: AllowAll},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(make(hosts).at, test.access)
			if guarded, address := g.Check(test.from, "10.0.0.1"); guarded || address != "" {
				t.Errorf("Check = %v, %q", guarded, address)
			}
		})
	}
}

// A refused host is refused for a minute without another connection.
func TestRefusalsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make(hosts)
		g := New(hosts.at, GuardLeads)
		if guarded, address := g.Check("a.test", "inner.test"); !guarded || address != "" {
			t.Errorf("at first: %v, %q", guarded, address)
		}
		if address := g.Connected(hosts.at("inner.test"), privateAddr, "a.test"); address != "10.0.0.1" {
			t.Errorf("Connected = %q", address)
		}
		if g.Private("inner.test") {
			t.Error("a guarded request has made the host private")
		}
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "10.0.0.1"}, {refusalTime - 1, "10.0.0.1"}, {1, ""}} {
			time.Sleep(step.wait)
			if guarded, address := g.Check("b.test", "inner.test"); !guarded || address != step.want {
				t.Errorf("%v later: %v, %q, want %q", step.wait, guarded, address, step.want)
			}
		}
	})
}

func TestPublicHostsStayPublic(t *testing.T) {
	hosts := make(hosts)
	g := New(hosts.at, GuardLeads)
	h := hosts.at("a.test")
	g.Connected(h, publicAddr, "")
	g.Connected(h, privateAddr, "") // the name has moved
	if g.Private("a.test") {
		t.Error("the host is private")
	}
	if address := g.Connected(h, privateAddr, "a.test"); address == "" {
		t.Error("the host has led to itself at a private address")
	}
}

func TestPrivateHostsLeadToThemselves(t *testing.T) {
	hosts := make(hosts)
	g := New(hosts.at, GuardLeads)
	if address := g.Connected(hosts.at("inner.test:8080"), privateAddr, "inner.test"); address != "" {
		t.Errorf("another port is refused at %s", address)
	}
	if !g.Private("inner.test:8080") {
		t.Error("the host is not private")
	}
	if address := g.Connected(hosts.at("other.test"), privateAddr, "inner.test:8080"); address != "" {
		t.Errorf("another host is refused at %s", address)
	}
}

// A connection that does not report an IP address, such as a net.Pipe, counts as public.
func TestOtherAddresses(t *testing.T) {
	hosts := make(hosts)
	g := New(hosts.at, GuardLeads)
	pipe, _ := net.Pipe()
	if address := g.Connected(hosts.at("b.test"), pipe.RemoteAddr(), "a.test"); address != "" || g.Private("b.test") {
		t.Errorf("refused at %q, private = %v", address, g.Private("b.test"))
	}
}
