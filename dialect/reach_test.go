package dialect_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestHeads compares both implementations on rules with similar heads. A head is the text before
// the first wildcard. The heads have many lengths, and some rules have the same head. The targets
// contain the heads as they are written, escaped, or in a fragment.
func TestHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 2026))
	rounds := *generated / 200
	if underRace {
		rounds = 6
	}
	for range rounds {
		heads := make([]string, 1+r.IntN(6))
		for i := range heads {
			heads[i] = "/" + strings.Repeat("ab", r.IntN(4)) + pick(r, []string{"", "x", "shop", "%7Eshop", "shop/%2F", "é"})
			if r.IntN(10) == 0 {
				heads[i] += strings.Repeat("long", 20+r.IntN(60))
			}
		}
		var file strings.Builder
		file.WriteString("User-agent: *\n")
		for range 2 + r.IntN(60) {
			file.WriteString(pick(r, []string{"Allow: ", "Disallow: "}) + pick(r, heads) +
				pick(r, []string{"", "", "$", "*", "*.html", "*=1$", "/*/page", "*%2F*x", "robots.txt"}) + "\n")
		}
		var targets []string
		for range 12 {
			target := pick(r, heads) + pick(r, []string{"", "/", "/a", "?q=1"}) + pick(r, []string{"", ".html", "/b/page", "=1", "/%2Fx", "?%2f", "*"})
			if r.IntN(3) == 0 {
				target = strings.Replace(target, "s", "%73", 1)
			}
			targets = append(targets, target+pick(r, []string{"", "", "#", "#.html", "%20", "%7E"}))
		}
		agree(t, file.String(), "FooBot", append(targets, "/robots.txt", "/robots.txt#a", "/robots.txt?a", "/robots%2etxt")...)
	}
}

// TestReach checks that the bytes of a target that are not needed for the comparison with literal
// rules are also compared.
func TestReach(t *testing.T) {
	for _, test := range []struct{ file, target, denied string }{
		{"Disallow: /a$", "/a#%", "rfc9309 google coccoc yandex seznam"},
		{"Disallow: /abcdefghijklm$", "/abcdefghijklm#", "rfc9309 google coccoc yandex seznam"},
		{"Disallow: /abcdefghijklm$", "/abcdefghijklm%20", ""},
		{"Disallow: /abcdefghijklm", "/abcdefghijkl%6D", "rfc9309 coccoc yandex seznam"},
		{"Disallow: /abcdefghijklm", "/abcdefghijklm%zz%6D#", "rfc9309 google coccoc yandex seznam original1994"},
		{"Disallow: /abcdefghijkl*z", "/abcdefghijklmnopqrstuvwxy%7A", "rfc9309 coccoc yandex seznam"},
		{"Disallow: /abcdefghijkl*z", "/abcdefghijklmnopqrstuvwxy#z", ""},
		{"Disallow: /abcdefghijkl*/z$", "/abcdefghijklmnopqrstuvwxy/z#", "rfc9309 google coccoc yandex seznam"},
		{"Disallow: /abcdefghijkl*%2Fz", "/abcdefghijklmno?p=%2fz", "rfc9309 coccoc yandex seznam"},
		{"Disallow: /", "/robots.txt#a", "google coccoc yandex seznam original1994"},
		{"Disallow: /", "/robots.tx%74", "google coccoc yandex seznam original1994"},
		{"Disallow: /", "/robots.txta", "rfc9309 google coccoc yandex seznam original1994"},
	} {
		for _, more := range []string{"", strings.Repeat("Disallow: /some/other/place\nDisallow: /yet/*/another\n", 30)} {
			for _, d := range published[:6] { // those that the rows name; TestAgainstNaive has all
				body := "User-agent: *\n" + test.file + "\n" + more
				agree(t, body, "FooBot", test.target)
				denied := !d.Parse([]byte(body)).Group("FooBot").Decide(test.target).Allowed
				if want := strings.Contains(test.denied, d.String()); denied != want {
					t.Errorf("%s: %s for %s: denied %v, want %v", d, test.target, test.file, denied, want)
				}
			}
		}
	}
}
