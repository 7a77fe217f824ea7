package batch

import "testing"

func TestParseAsCrawler(t *testing.T) {
	for raw, want := range map[string]string{
		"http://a.test/50%":         "http://a.test/50%25",
		"http://a.test/%zz%41":      "http://a.test/%25zz%41",
		"http://a.test/a\tb\x7f":    "http://a.test/a%09b%7F",
		"http://a.test/%41?q=50%":   "http://a.test/%41?q=50%",
		"http://a.test/\xff%":       "http://a.test/%FF%25",
		"p%?q":                      "p%25?q",
		"http://a.test:port/":       "",
		"http://[::1/":              "",
		"http://user:%zz@a.test/50": "http://user:%25zz@a.test/50",
	} {
		got := ""
		if u, err := parseAsCrawler(raw); err == nil {
			got = u.String()
		} else if u != nil {
			t.Errorf("%q: got URL %v together with error %v", raw, u, err)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}
