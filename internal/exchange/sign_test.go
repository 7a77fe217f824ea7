package exchange

import (
	"fmt"
	"testing"
)

// TestAskedHostsAreBounded checks how many hosts that have asked for signatures are remembered, and
// that the newest one is among them.
func TestAskedHostsAreBounded(t *testing.T) {
	s := &signatures{whenAsked: true, hosts: make(map[string]string)}
	for i := range 2 * maxAskedHosts {
		host := fmt.Sprint(i, ".test")
		s.ask(host, "")
		s.ask(host, "n")
		nonce, signs := s.next(host)
		if !signs || nonce != "n" {
			t.Fatalf("%s: nonce %q, signed %v", host, nonce, signs)
		}
		if len(s.hosts) > maxAskedHosts {
			t.Fatalf("%d hosts", len(s.hosts))
		}
	}
	if len(s.hosts) != maxAskedHosts {
		t.Errorf("%d hosts, want %d", len(s.hosts), maxAskedHosts)
	}
}
