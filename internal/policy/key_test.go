package policy

import (
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestKeyOf(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com/x?y#z":        "http://example.com",
		"HTTPS://EXAMPLE.com":             "https://example.com",
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
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		k, err := keyOf(u)
		if err != nil || strings.TrimSuffix(robotsURL(k, nil), robotsPath) != want {
			t.Errorf("%s: %v, %v, want %q", raw, k, err, want)
		}
	}
}

// FuzzKey: the short cut for normal hosts never differs from the long way.
func FuzzKey(f *testing.F) {
	for _, host := range []string{"example.com", "example.com:8080", "example.com:80", "a.b:00080", "1.2.3.4", "1.2.3", "0x7f.1",
		"a..b", ".a", "a.", "-a.b", "a-.b", "a--b.c", "xn--a.b", "a_b.c", "A.b", "[::1]", "a.1", "1.a", "a:65536", "a:99999", ""} {
		f.Add("http", host)
		f.Add("https", host)
	}
	f.Fuzz(func(t *testing.T, scheme, host string) {
		k, err := keyOf(&url.URL{Scheme: scheme, Host: host, Path: "/x"})
		robots, locateErr := dialect.Locate(&url.URL{Scheme: scheme, Host: host, Path: "/x"})
		if (err == nil) != (locateErr == nil) {
			t.Fatalf("%q %q: %v, but Locate says %v", scheme, host, err, locateErr)
		}
		if err != nil {
			return
		}
		if keyIn(robotsURL(k, nil)) != k {
			t.Fatalf("%v is not in %q", k, robotsURL(k, nil))
		}
		if want := (key{robots.Scheme, robots.Host}); k != want {
			t.Fatalf("%q %q: %v, but Locate says %v", scheme, host, k, want)
		}
	})
}
