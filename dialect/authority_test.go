package dialect_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestAuthorityOf(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/x?y#z":        "http://example.com",
		"HTTPS://EXAMPLE.com":             "https://example.com",
		"http://example.com./":            "http://example.com",
		"http://example.com.:8080/":       "http://example.com:8080",
		"https://example.com:443/":        "https://example.com",
		"https://example.com:80/":         "https://example.com:80",
		"http://example.com:080/":         "http://example.com",
		"http://example.com:/":            "http://example.com",
		"https://www.exämple.com/":        "https://www.xn--exmple-cua.com",
		"https://www.xn--exmple-cua.com/": "https://www.xn--exmple-cua.com",
		"http://127.0.0.1:8080/":          "http://127.0.0.1:8080",
		"http://[::1]:80/":                "http://[::1]",
		"http://[fe80::1%25eth0]:80/":     "http://[fe80::1%25eth0]",
		"http://u:p@example.com/":         "http://example.com",
		"ftp://example.com:21/":           "ftp://example.com",
	} {
		u := parseURL(t, raw)
		a, err := dialect.AuthorityOf(u)
		if err != nil || a.String() != want || a.RobotsURL() != want+"/robots.txt" {
			t.Errorf("%s: %v, %v, want %q", raw, a, err, want)
		}
	}
}

func TestAuthorityOfANormalHostDoesNotAllocate(t *testing.T) {
	for _, raw := range []string{"http://www.example-1.com/x", "https://example.com:8443/", "http://127.0.0.1:8080/"} {
		u := parseURL(t, raw)
		if n := testing.AllocsPerRun(100, func() { dialect.AuthorityOf(u) }); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

// FuzzAuthority checks that an authority is in normal form: the URL of its robots.txt has the same
// authority.
func FuzzAuthority(f *testing.F) {
	for _, host := range []string{"example.com", "example.com:8080", "example.com:80", "a.b:00080", "1.2.3.4", "1.2.3", "0x7f.1",
		"a..b", ".a", "a.", "a..", "-a.b", "a-.b", "a--b.c", "xn--a.b", "a_b.c", "A.b", "[::1]", "a.1", "1.a", "a:65536", "a:99999", "}", "a`b", "[::%0]", "\u037e", ""} {
		f.Add("http", host)
		f.Add("https", host)
	}
	f.Fuzz(func(t *testing.T, scheme, host string) {
		a, err := dialect.AuthorityOf(&url.URL{Scheme: scheme, Host: host, Path: "/x"})
		if err != nil {
			return
		}
		u, err := url.Parse(a.RobotsURL())
		if err != nil {
			t.Fatalf("%q %q: %v", scheme, host, err)
		}
		if again, err := dialect.AuthorityOf(u); err != nil || again != a {
			t.Fatalf("%q %q: %v, and then %v, %v", scheme, host, a, again, err)
		}
	})
}

// TestLocate follows Google, "Examples of valid robots.txt URLs". If want is "", Locate must return
// an error.
func TestLocate(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"https://example.com/folder/file", "https://example.com/robots.txt"},
		{"http://example.com", "http://example.com/robots.txt"},
		{"HTTP://WWW.Example.COM/A?b#c", "http://www.example.com/robots.txt"},
		{"https://www.ex\u00E4mple.com/", "https://www.xn--exmple-cua.com/robots.txt"},
		{"https://WWW.XN--exmple-cua.com/", "https://www.xn--exmple-cua.com/robots.txt"},
		{"https://\u30C6\u30B9\u30C8\u3002\u65E5\u672C/", "https://xn--zckzah.xn--wgv71a/robots.txt"},
		{"http://my_host.example/", "http://my_host.example/robots.txt"},
		{"http://R3---sn-a-.example/", "http://r3---sn-a-.example/robots.txt"},
		{"ftp://example.com/pub/", "ftp://example.com/robots.txt"},
		{"ftp://example.com:21/pub/", "ftp://example.com/robots.txt"},
		{"https://212.96.82.21/", "https://212.96.82.21/robots.txt"},
		{"https://example.com:443/", "https://example.com/robots.txt"},
		{"http://example.com:080/", "http://example.com/robots.txt"},
		{"http://example.com:/", "http://example.com/robots.txt"},
		{"http://example.com:443/", "http://example.com:443/robots.txt"},
		{"https://example.com:8181/", "https://example.com:8181/robots.txt"},
		{"http://user:secret@example.com/", "http://example.com/robots.txt"},
		{"http://[2001:DB8:0::1]:80/x", "http://[2001:db8::1]/robots.txt"},
		{"http://[2001:db8::1]:81/x", "http://[2001:db8::1]:81/robots.txt"},
		{"http://[fe80::1%25en0]/", "http://[fe80::1%25en0]/robots.txt"},
		{"http://example.com./", "http://example.com/robots.txt"}, // one host, with and without the dot
		{"mailto:a@example.com", ""},
		{"data:text/plain,x", ""},
		{"file:///etc/passwd", ""},
		{"javascript:alert(1)", ""},
		{"//example.com/", ""},
		{"/path", ""},
		{"", ""},
		{"http:///path", ""},
		{"http://:80/", ""},
		{"http://example.com:99999/", ""},
		{"http://xn--a.example/", ""},
	} {
		got, err := dialect.Locate(parseURL(t, test.url))
		switch {
		case err != nil && test.want != "":
			t.Errorf("%s: %v", test.url, err)
		case err == nil && got.String() != test.want:
			t.Errorf("%s: %s, want %q", test.url, got, test.want)
		}
	}
}

// TestLocateHost checks that Locate rejects hosts that url.Parse does not accept.
func TestLocateHost(t *testing.T) {
	for _, host := range []string{"a b", "a/b", "a?b", "a@b", "a#b", "\x00", "a\x7f", "[", "a:b:c", ";", "%", ".", "..", "[::%25\xff]", "[::%25a b]"} {
		if got, err := dialect.Locate(&url.URL{Scheme: "http", Host: host}); err == nil {
			t.Errorf("%q: %s", host, got)
		}
	}
}

// TestLocateError checks that errors contain the URL but no password.
func TestLocateError(t *testing.T) {
	for raw, want := range map[string]string{
		"gopher://user:secret@a.test/": "gopher://user:xxxxx@a.test/: the scheme is not http, https or ftp",
		"http://a.test:65536/":         "http://a.test:65536/: the port 65536 is above 65535",
		"http://.../":                  "http://.../: the host is empty",
		"http://xn--a/":                "http://xn--a/: the host is not a valid name (", // the rest is that of idna or of a browser
	} {
		_, err := dialect.Locate(parseURL(t, raw))
		var unusable *dialect.URLError
		if !errors.As(err, &unusable) || !strings.HasPrefix(err.Error(), "dialect: no request can be sent to "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLongHosts checks that Locate rejects a host that is too long for DNS.
func TestLongHosts(t *testing.T) {
	for n, ok := range map[int]bool{300: true, 10_000: false} {
		u := &url.URL{Scheme: "http", Host: strings.Repeat("\u00e9.", n/3)}
		if _, err := dialect.Locate(u); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func parseURL(tb testing.TB, s string) *url.URL {
	tb.Helper()
	u, err := url.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}
