package policy

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestVirtualHost(t *testing.T) {
	at := dialect.Authority{Scheme: "https", Host: "10.0.0.1:8443"}
	for _, test := range []struct{ name, want, server, header string }{
		{"shop.test", "shop.test@10.0.0.1:8443", "10.0.0.1:8443", "shop.test"},
		{"SHOP.test.:443", "shop.test@10.0.0.1:8443", "10.0.0.1:8443", "shop.test"},
		{"[::1]:80", "[::1]:80@10.0.0.1:8443", "10.0.0.1:8443", "[::1]:80"},
		{"10.0.0.1:8443", "10.0.0.1:8443", "10.0.0.1:8443", ""},
		{"a b", "", "", ""},
		{"x@y", "", "", ""},
		{"", "", "", ""},
	} {
		a, err := VirtualHost(at, test.name)
		if (err != nil) != (test.want == "") {
			t.Errorf("%q: got error %v, want authority %q", test.name, err, test.want)
		}
		if err != nil {
			continue
		}
		host, name := Server(a)
		if a.Scheme != "https" || a.Host != test.want || host != test.server || name != test.header || IsVirtual(a) != (name != "") {
			t.Errorf("%q: got %v, requested from %q with Host header %q; want %s, %s, %q", test.name, a, host, name, test.want, test.server, test.header)
		}
	}
}
