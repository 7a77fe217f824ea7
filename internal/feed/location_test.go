package feed

import (
	"net/url"
	"testing"
)

// FuzzParseURL checks that a plain URL is parsed as net/url parses it, and that no other URL is
// lost.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"http://a.test", "https://a.test/", "http://a.test/a/b.html?x=1&y=2", "http://a.test:8080/?", "http://a.test/??a", "http://a.test/?a#b",
		"http://a.test/%41", "http://a.test/a;b=c,d@e:f+g~h_i$j", "http://a.test/(x)!*'", "http://A.test/", "http://u@a.test/", "http://a.test:x/",
		"http://a.test?q", "http:///x", "http://.../", "http://-/", "http://a..test//x//", "https://10.0.0.1/", "http://a.test/50%", "http://a.test/\x01", "ftp://a.test/", "//a.test",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, loc string) {
		var got url.URL
		want, err := url.Parse(loc)
		if plainURL(loc, &got) {
			if err != nil || got != *want || got.String() != want.String() {
				t.Errorf("%q: %#v, want %#v, %v", loc, got, want, err)
			}
		}
		if err := parseURL(loc, &got); err == nil && want != nil && got.String() != want.String() {
			t.Errorf("%q is taken for %q, want %q", loc, got.String(), want)
		} else if err != nil && want != nil {
			t.Errorf("%q: %v", loc, err)
		}
	})
}

func TestParseURLAcceptsURLsThatNetURLRefuses(t *testing.T) {
	for loc, want := range map[string]string{
		"http://a.test/50%":      "http://a.test/50%25",
		"http://a.test/%zz%4":    "http://a.test/%25zz%254",
		"http://a.test/a\x7fb":   "http://a.test/a%7Fb",
		"http://a.test/?a=\x01%": "http://a.test/?a=%01%25",
	} {
		var u url.URL
		if err := parseURL(loc, &u); err != nil || u.String() != want {
			t.Errorf("%q: %q, %v, want %q", loc, u.String(), err, want)
		}
	}
}

func TestPlainURLsDoNotAllocate(t *testing.T) {
	var u url.URL
	const loc = "https://www.example.com/catalogue/section-1/item-2.html?page=3"
	if n := testing.AllocsPerRun(100, func() { plainURL(loc, &u) }); n != 0 || u.String() != loc {
		t.Errorf("%v allocations, %q", n, u.String())
	}
}
