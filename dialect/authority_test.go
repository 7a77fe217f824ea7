package dialect_test

import (
	"net/url"
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

// FuzzAuthority: an authority is in normal form, so its own robots.txt has the same.
func FuzzAuthority(f *testing.F) {
	for _, host := range []string{"example.com", "example.com:8080", "example.com:80", "a.b:00080", "1.2.3.4", "1.2.3", "0x7f.1",
		"a..b", ".a", "a.", "a..", "-a.b", "a-.b", "a--b.c", "xn--a.b", "a_b.c", "A.b", "[::1]", "a.1", "1.a", "a:65536", "a:99999", ""} {
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
