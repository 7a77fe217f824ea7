package urlstore_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

func TestNormalForm(t *testing.T) {
	for raw, want := range map[string]string{
		"http://a.test":                   "http://a.test/",
		"http://a.test/":                  "http://a.test/",
		"HTTP://A.Test:80/#top":           "http://a.test/",
		"https://a.test:443":              "https://a.test/",
		"https://a.test:80/":              "https://a.test:80/",
		"http://a.test./":                 "http://a.test/",
		"http://bücher.test/":             "http://xn--bcher-kva.test/",
		"http://BÜCHER.test/":             "http://xn--bcher-kva.test/",
		"http://[2001:DB8:0::1]/":         "http://[2001:db8::1]/",
		"http://[fe80::1%25en0]/":         "http://[fe80::1%25en0]/",
		"http://a.test/%7euser/%41%2d%2E": "http://a.test/~user/A-.",
		"http://a.test/%2f%3f%3F":         "http://a.test/%2F%3F%3F",
		"http://a.test/a%2fb":             "http://a.test/a%2Fb",
		"http://a.test/a/b":               "http://a.test/a/b",
		"http://a.test/%2541":             "http://a.test/%2541",
		"http://a.test/50%":               "http://a.test/50%25",
		"http://a.test/%zz":               "http://a.test/%25zz",
		"http://a.test/ü":                 "http://a.test/%C3%BC",
		"http://a.test/%c3%bc":            "http://a.test/%C3%BC",
		"http://a.test?q=%41":             "http://a.test/?q=A",
		"http://a.test/?":                 "http://a.test/?",
		"http://a.test/?a=1&b=2":          "http://a.test/?a=1&b=2",
		"http://a.test/?b=2&a=1":          "http://a.test/?b=2&a=1",
		"http://a.test/?q=a%20b+c%2fd%3F": "http://a.test/?q=a%20b+c%2Fd%3F",
		"http://a.test/?q=ü d":            "http://a.test/?q=%C3%BC%20d",
		"http://a.test/a//b/../c":         "http://a.test/a//b/../c",
		"http://user:pw@a.test/":          "http://user:pw@a.test/",
		"http://a.test/!$&'()*+,;=:@":     "http://a.test/!$&'()*+,;=:@",
		"http://a.test/%21%24":            "http://a.test/%21%24",
		"ftp://a.test:21/x#y":             "ftp://a.test/x",
		"data:text/html,x#y":              "data:text/html,x",
		"http://a.test/\x00\n":            "http://a.test/%00%0A",
		"http://a.test/" + "x#a#b":        "http://a.test/x",
	} {
		key, _, err := urlstore.Normalize(raw)
		if err != nil || key != want {
			t.Errorf("%q: got %q, %v, want %q", raw, key, err, want)
		}
	}
	for raw, want := range map[string]string{
		"http://A.test:80/": "a.test", "https://a.test:8443/": "a.test:8443", "http://[::1]:81/": "[::1]:81", "data:x": "",
	} {
		if _, host, err := urlstore.Normalize(raw); err != nil || host != want {
			t.Errorf("%q: got the host %q, %v, want %q", raw, host, err, want)
		}
	}
	for _, raw := range []string{"http://[::1", "http://a.test:port/", "%", "http://user:secret@a.test:port/"} {
		key, _, err := urlstore.Normalize(raw)
		if raw != "%" && (err == nil || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: got %q, %v", raw, key, err)
		}
	}
}

// FuzzNormalize checks that the normal form of a URL is its own normal form, and that it causes the
// same request.
func FuzzNormalize(f *testing.F) {
	for _, raw := range []string{"http://a.test/%41?q=%zz#f", "HTTP://user@Ü.test:80", "http://a.test;p/x", "x:y", "//h/p", "http://[::1%25a]:81/"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		key, host, err := urlstore.Normalize(raw)
		if err != nil {
			return
		}
		again, hostAgain, err := urlstore.Normalize(key)
		if err != nil || again != key || hostAgain != host {
			t.Fatalf("%q has the normal form %q (%q), whose normal form is %q (%q), %v", raw, key, host, again, hostAgain, err)
		}
		u, err := url.Parse(raw)
		if err != nil || !utf8.ValidString(raw) {
			return
		}
		v, err := url.Parse(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dialect.AuthorityOf(u); err != nil {
			return
		}
		if a, b := unescaped(dialect.Target(u)), unescaped(dialect.Target(v)); a != b {
			t.Errorf("%q requests %q, its normal form %q requests %q", raw, a, key, b)
		}
	})
}

// unescaped decodes all escapes.
func unescaped(target string) string {
	s, err := url.PathUnescape(target)
	if err != nil {
		return target
	}
	return s
}
