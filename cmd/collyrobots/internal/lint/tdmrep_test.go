package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/usage"
)

// TestTDMRep checks the lines of the findings in a TDMRep file, and that a rule is shadowed only if
// no URL shows its value.
func TestTDMRep(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want string // the lines and the IDs
	}{
		"lines":                    {"[\n{\"tdm-reservation\": 1},\n\n 7,\n{\"location\": \"/\", \"tdm-reservation\": true}\n]", "2 tdm-rule, 4 tdm-rule, 5 tdm-value"},
		"no reservation":           {"[{\"location\": \"/\"},\n{\"location\": \"/a\", \"tdm-reservation\": null},\n{\"location\": \"/\", \"tdm-reservation\": 1.0},\n{\"location\": \"/b\", \"tdm-reservation\": 1.5}]", "1 tdm-value, 2 tdm-value, 4 tdm-value, 4 tdm-shadowed"},
		"byte order mark":          {"\ufeff[{\"location\": \"/\", \"tdm-reservation\": 2}]", "1 tdm-value"},
		"missing value":            {`[{"location": "/", "tdm-policy": "https://a.test/"}]`, "1 tdm-value"},
		"cut off":                  {`[{"location": "/", "tdm-reservation": 1}`, "0 tdm-syntax"},
		"the same location":        {rules("/a*b$", "/a*b$"), "1 tdm-shadowed"},
		"star at the end":          {rules("/a/*", "/a/b$"), "1 tdm-shadowed"},
		"all":                      {rules("/*", "/*.pdf"), "1 tdm-shadowed"},
		"end of the path":          {rules("/a$", "/a"), ""},
		"star inside":              {rules("/*.pdf", "/a.pdf"), ""},
		"star after the beginning": {rules("/ab", "/a*"), ""},
		"half of an escape":        {rules("/%6", "/%61"), ""},
		"the special one first":    {rules("/a", "/"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Lint([]byte(test.file), Options{}) {
				got = append(got, fmt.Sprintf("%d %s", f.Line, f.ID))
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
	if got := Lint([]byte("[a]\nUser-agent: *\nDisallow: /\n"), Options{}); len(got) == 0 || strings.HasPrefix(got[0].ID, "tdm") {
		t.Errorf("a robots.txt was read as a TDMRep file: %v", got)
	}
}

// rules returns a TDMRep file with these locations. The first one is reserved.
func rules(locations ...string) string {
	var list []string
	for i, location := range locations {
		list = append(list, fmt.Sprintf(`{"location": %q, "tdm-reservation": %d}`, location, max(0, 1-i)))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// TestLargeTDMRep checks that the findings are bounded. The test ends soon, because the work for a
// rule does not depend on the number of rules.
func TestLargeTDMRep(t *testing.T) {
	list := []string{"/a"}
	for i := range 20_000 {
		list = append(list, fmt.Sprintf("/a/%d", i))
	}
	if n := len(Lint([]byte(rules(list...)), Options{})); n < maxOfKind || n > 2*maxOfKind {
		t.Errorf("%d findings", n)
	}
}

// FuzzTDMRep checks that a rule that is reported as shadowed does not decide about its own location.
func FuzzTDMRep(f *testing.F) {
	f.Add("/a", "/a/b", "/a/b/c")
	f.Add("/*", "/a*b$", "/axb")
	f.Fuzz(func(t *testing.T, first, second, target string) {
		file := rules(first, second)
		shadowed := false
		for _, finding := range Lint([]byte(file), Options{}) {
			shadowed = shadowed || finding.ID == "tdm-shadowed"
		}
		parsed, err := usage.ParseTDMFile([]byte(file), usage.Source{})
		if err != nil || !shadowed {
			return
		}
		if got := parsed.Of(target).Reservation; got == usage.Allowed {
			t.Errorf("%s decides about %q", file, target)
		}
	})
}
