package dialect_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

var (
	_ encoding.TextMarshaler   = dialect.Dialect{}
	_ encoding.TextUnmarshaler = new(dialect.Dialect)
)

// TestDialectText checks that JSON contains the name of a dialect, as a value and as a key.
func TestDialectText(t *testing.T) {
	type record struct {
		Dialect dialect.Dialect
		Count   map[dialect.Dialect]int
	}
	for _, d := range dialect.All() {
		want := record{d, map[dialect.Dialect]int{d: 1}}
		text, err := json.Marshal(want)
		if s := fmt.Sprintf(`{"Dialect":"%v","Count":{"%v":1}}`, d, d); err != nil || string(text) != s {
			t.Errorf("%v: %s, %v, want %s", d, text, err, s)
		}
		var got record
		if err := json.Unmarshal(text, &got); err != nil || got.Dialect != d || got.Count[d] != 1 {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestDialectTextUnknown checks that an unknown name is an error that lists the known names, and
// that it does not change the dialect.
func TestDialectTextUnknown(t *testing.T) {
	for _, name := range []string{"", "bing", "Google", "google ", "RFC9309"} {
		d := dialect.CocCoc()
		err := d.UnmarshalText([]byte(name))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) || !strings.Contains(err.Error(), "original1994") || d != dialect.CocCoc() {
			t.Errorf("%q: %v, %v", name, d, err)
		}
	}
	var v struct{ Dialect dialect.Dialect }
	for _, text := range []string{`{"Dialect":"bing"}`, `{"Dialect":1}`, `{"Dialect":["google"]}`} {
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s: %v", text, v)
		}
	}
}

// TestVerdictJSON checks that a Verdict does not change when it is encoded in JSON and decoded.
func TestVerdictJSON(t *testing.T) {
	const file = "User-agent: *\nDisallow: /a*\"<&>\u2028b$\nAllow: /caf\u00e9\nDisallow:\n"
	for _, d := range published {
		group := d.Parse([]byte(file)).Group("x")
		for _, target := range []string{"/", "/a1\"<&>\u2028b", "/a*\"<&>\u2028b$", "/caf%C3%A9", "/b"} {
			want := group.Decide(target)
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var got dialect.Verdict
			if err := json.Unmarshal(text, &got); err != nil || got != want {
				t.Errorf("%s %s: %+v, %v, want %+v", d, target, got, err, want)
			}
		}
	}
}

func TestDialects(t *testing.T) {
	if dialect.RFC9309() != (dialect.Dialect{}) {
		t.Error("the zero Dialect is not RFC9309")
	}
	for _, d := range dialect.All() {
		if same, ok := dialect.ByName(d.String()); !ok || same != d {
			t.Errorf("ByName(%q) = %v, %v", d, same, ok)
		}
	}
	if d, ok := dialect.ByName("bing"); ok || d != dialect.RFC9309() {
		t.Errorf("ByName(bing) = %v, %v", d, ok)
	}
}
