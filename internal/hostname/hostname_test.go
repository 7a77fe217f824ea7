package hostname

import "testing"

// TestIsServer checks which connections lead to a host itself, and not to a proxy.
func TestIsServer(t *testing.T) {
	for _, test := range []struct {
		host, target string
		want         bool
	}{
		{"a.test", "a.test:80", true},
		{"a.test", "a.test:443", true},
		{"a.test", "A.test:443", true},
		{"a.test", "a.test:8080", false},
		{"a.test:8080", "a.test:8080", true},
		{"a.test", "b.test:80", false},
		{"[::1]", "[::1]:80", true},
		{"xn--bcher-kva.test", "bücher.test:80", true},
		{"a.test", "", false},
	} {
		if got := IsServer(test.host, test.target); got != test.want {
			t.Errorf("IsServer(%q, %q) = %v, want %v", test.host, test.target, got, test.want)
		}
	}
}

// TestNames checks the names of hosts without ports, and their registered domains.
func TestNames(t *testing.T) {
	for _, test := range []struct{ host, normal, registrable string }{
		{"Shop.A.co.uk:8080", "shop.a.co.uk", "A.co.uk"},
		{"a.test", "a.test", "a.test"},
		{"[::1]:80", "[::1]", "::1"},
		{"10.0.0.1:8080", "10.0.0.1", "10.0.0.1"},
		{"com", "com", "com"},
	} {
		if got := Normal(test.host); got != test.normal {
			t.Errorf("Normal(%q) = %q, want %q", test.host, got, test.normal)
		}
		if got := Registrable(test.host); got != test.registrable {
			t.Errorf("Registrable(%q) = %q, want %q", test.host, got, test.registrable)
		}
	}
}
