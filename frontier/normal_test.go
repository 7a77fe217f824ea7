package frontier

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
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
		key, _, err := normalize(raw)
		if err != nil || key != want {
			t.Errorf("%q: got %q, %v, want %q", raw, key, err, want)
		}
	}
	for raw, want := range map[string]string{
		"http://A.test:80/": "a.test", "https://a.test:8443/": "a.test:8443", "http://[::1]:81/": "[::1]:81", "data:x": "",
	} {
		if _, host, err := normalize(raw); err != nil || host != want {
			t.Errorf("%q: got the host %q, %v, want %q", raw, host, err, want)
		}
	}
	for _, raw := range []string{"http://[::1", "http://a.test:port/", "%", "http://user:secret@a.test:port/"} {
		key, _, err := normalize(raw)
		if raw != "%" && (err == nil || !strings.HasPrefix(err.Error(), "frontier: ") || strings.Contains(err.Error(), "secret")) {
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
		key, host, err := normalize(raw)
		if err != nil {
			return
		}
		again, hostAgain, err := normalize(key)
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

// FuzzPage checks that every encoded page can be decoded.
func FuzzPage(f *testing.F) {
	f.Add("http://a.test/", "", "b.test", []byte("{}"), 1, 2)
	f.Add("http://A.test/", "http://a.test/", "", []byte(nil), -1, 0)
	f.Fuzz(func(t *testing.T, rawURL, key, from string, request []byte, depth, collector int) {
		p := &collyrobots.Page{URL: rawURL, Host: "a.test", Key: key, From: from, Request: request, Depth: depth, Collector: collector, ID: 7}
		normal, _, err := normalize(rawURL)
		got, err := decodePage(encodePage(p, err == nil && key == normal), "a.test", position{id: 7})
		if err != nil {
			t.Fatal(err)
		}
		got.Found = p.Found
		if got.URL != p.URL || got.Key != p.Key || got.From != p.From || string(got.Request) != string(p.Request) ||
			got.Depth != p.Depth || got.Collector != p.Collector || got.ID != p.ID {
			t.Errorf("got %+v, want %+v", got, p)
		}
	})
}

// FuzzDecode checks that damaged records cause errors and no panics.
func FuzzDecode(f *testing.F) {
	p := &collyrobots.Page{URL: "http://a.test/", Key: "x", Request: []byte("{}")}
	f.Add(encodePage(p, false))
	f.Add(seenRecord{state: waiting, at: position{order: 1, id: 2}}.encode())
	f.Add(hostRecord{counts: counts{waiting: 1}}.encode())
	f.Add(pageKey(queueKey, "a.test", position{id: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePage(b, "a.test", position{}); (p == nil) == (err == nil) {
			t.Errorf("decodePage: %v, %v", p, err)
		}
		foundOf(b)
		if r, err := decodeSeen(b); err == nil && len(b) > 0 && string(r.encode()) != string(b) {
			if again, err := decodeSeen(r.encode()); err != nil || again != r {
				t.Errorf("decodeSeen: %+v, %v, want %+v", again, err, r)
			}
		}
		if r, err := decodeHost(b); err == nil && len(b) > 0 {
			if again, err := decodeHost(r.encode()); err != nil || again != r {
				t.Errorf("decodeHost: %+v, %v, want %+v", again, err, r)
			}
		}
		if host, at, ok := splitPageKey(b); ok && b[0] == queueKey && string(pageKey(queueKey, host, at)) != string(b) {
			t.Errorf("splitPageKey: %q, %+v", host, at)
		}
	})
}
