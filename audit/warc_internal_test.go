package audit

import (
	"net/url"
	"strings"
	"testing"
)

func TestRemember(t *testing.T) {
	m := make(map[int]string)
	for n := range maxCaptures + 3 {
		remember(m, n, "")
	}
	if _, ok := m[maxCaptures+2]; !ok || len(m) != 3 {
		t.Errorf("the map has %d elements", len(m))
	}
}

// FuzzWARCURI checks that warcURI returns a URI without bytes that a URI must not have, or nothing,
// and that it leaves such a URI alone.
func FuzzWARCURI(f *testing.F) {
	for _, text := range []string{"http://a.test/x?y#z", "http://u:p@[::1]:80/%zz%", "http://a\r\nb/", "http://é/#a#b[]", "a@b://c@d@e:f:0", "x://[::1%25a]", "://", "//"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri := warcURI(text)
		if uri == "" {
			return
		}
		const allowed = "-._~:/?#[]@!$&'()*+,;=%"
		bad := strings.IndexFunc(uri, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(allowed, r))
		})
		if bad >= 0 || strings.Count(uri, "#") > 1 {
			t.Errorf("%q became %q", text, uri)
		}
		_, err := url.Parse(uri)
		if err != nil {
			t.Error(err)
		}
		if again := warcURI(uri); again != uri {
			t.Errorf("%q became %q and then %q", text, uri, again)
		}
	})
}
