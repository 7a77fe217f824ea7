package dialect_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestCheckToken checks that CheckToken rejects exactly the tokens that no line can match.
func TestCheckToken(t *testing.T) {
	named := dialect.All()[:7] // those that the rows name; the test below has all
	all := ""
	for _, d := range named {
		all += d.String() + " "
	}
	for _, test := range []struct {
		token string
		bad   string // dialects
	}{
		{"ExampleBot", ""},
		{"Example_Bot-News", ""},
		{"MJ12bot", "google "},
		{"archive.org_bot", "google "},
		{"ExampleBot/1.0", "rfc9309 google "},
		{"Example Bot", "rfc9309 google coccoc "},
		{"Bot#1", "rfc9309 google coccoc yandex "},
		{"", all},
		{"*", all},
	} {
		bad := ""
		for _, d := range named {
			if d.CheckToken(test.token) != nil {
				bad += d.String() + " "
			}
		}
		if bad != test.bad {
			t.Errorf("%q: %q, want %q", test.token, bad, test.bad)
		}
	}
	for _, d := range published {
		for _, token := range []string{"ExampleBot", "MJ12bot", "archive.org_bot", "Example Bot", "Bot#1"} {
			group := d.Parse([]byte("User-agent: " + token + "\nDisallow: /\n")).Group(token)
			if found := group.Name() != ""; found != (d.CheckToken(token) == nil) {
				t.Errorf("%s, %s: group found %v, CheckToken %v", d, token, found, d.CheckToken(token))
			}
		}
	}
}
