package usage_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

var from = usage.Source{Name: "robots.txt", Line: 3}

// said returns preferences in three letters, for search, ai-use and train-ai: y, n, or ? if the
// preference is unknown. It fails the test if a source is missing or should not be there.
func said(t *testing.T, p usage.Preferences) string {
	t.Helper()
	var letters strings.Builder
	for _, s := range []usage.Statement{p.Search, p.AIUse, p.TrainAI} {
		letters.WriteString(map[usage.Preference]string{usage.Unknown: "?", usage.Allowed: "y", usage.Disallowed: "n"}[s.Preference])
		if (s.Preference == usage.Unknown) != (s.Source == usage.Source{}) {
			t.Errorf("%v has the source %+v", s.Preference, s.Source)
		}
	}
	return letters.String()
}

// contentUsages are values of the header Content-Usage. Lines are separated by a line feed. The
// names of the examples of draft-ietf-aipref-vocab-08 contain their section.
var contentUsages = []struct{ name, value, want string }{
	{"vocab-08, Exemplary Serialization Format", "train-ai=y, search=n", "n?y"},
	{"train-ai=n", "train-ai=n", "??n"},
	{"train-ai=y", "train-ai=y", "??y"},
	{"search=n", "search=n", "n??"},
	{"search=y", "search=y", "y??"},
	{"ai-use=n", "ai-use=n", "?n?"},
	{"ai-use=y", "ai-use=y", "?y?"},
	{"all uses", "search=y,ai-use=n,train-ai=n", "ynn"},
	{"vocab-08, Multiple Preferences", "train-ai=y, train-ai, search=n, search=\"n\"", "???"},
	{"vocab-08, Preference Parameters: parameter instead of a value", "train-ai;allow=n, train-ai=y", "??y"},
	{"vocab-08, Preference Parameters: trailing semicolon is malformed", "train-ai;has;parameters=\"?\";", "???"},
	{"vocab-08, Preference Parameters", "train-ai;has;parameters=\"?\"", "???"},
	{"RFC 9651, 3.2: last duplicate counts", "train-ai=n, train-ai=y", "??y"},
	{"RFC 9651, 3.2: last duplicate counts, restrictive", "train-ai=y, train-ai=n", "??n"},
	{"parameter is ignored", "train-ai=n;x=1", "??n"},
	{"several parameters", "train-ai=n;x;y=\"z\", search=y", "y?n"},
	{"bare key is a Boolean", "train-ai", "???"},
	{"Boolean true", "train-ai=?1", "???"},
	{"Boolean false", "train-ai=?0", "???"},
	{"String n", "train-ai=\"n\"", "???"},
	{"String y", "train-ai=\"y\"", "???"},
	{"other Token no", "train-ai=no", "???"},
	{"other Token yes", "train-ai=yes", "???"},
	{"values are case-sensitive: N", "train-ai=N", "???"},
	{"values are case-sensitive: Y", "train-ai=Y", "???"},
	{"Integer", "train-ai=0", "???"},
	{"Decimal", "train-ai=1.5", "???"},
	{"Byte Sequence", "train-ai=:bg==:", "???"},
	{"Inner List", "train-ai=(n)", "???"},
	{"empty Inner List", "train-ai=()", "???"},
	{"keys are case-sensitive", "Train-AI=n", "???"},
	{"upper case makes the Dictionary malformed", "Train-AI=n, search=n", "???"},
	{"upper case in the second key", "search=n, TRAIN-AI=n", "???"},
	{"comma at the end", "search=n,", "???"},
	{"two commas", "search=n,,train-ai=n", "???"},
	{"no comma", "search=n train-ai=n", "???"},
	{"semicolon instead of a comma", "search=n; train-ai=n", "n??"},
	{"blanks around the equals sign", "search = n", "???"},
	{"two header lines", "search=n\ntrain-ai=n", "n?n"},
	{"duplicate key in two lines", "train-ai=n\ntrain-ai=y", "??y"},
	{"second line malformed", "search=n\n!", "???"},
	{"blanks around the list", "  search=n  ", "n??"},
	{"blanks and a tab around the comma", "search=n ,\ttrain-ai=n", "n?n"},
	{"empty value", "", "???"},
	{"label ai of an old draft", "ai=n", "???"},
	{"labels of old drafts", "genai=n, bots=n, train-genai=n, ai-output=n", "???"},
	{"unknown key", "future=n, train-ai=n", "??n"},
	{"key with all characters", "*x_-.9=n, train-ai=n", "??n"},
	{"not ASCII", "train-ai=ñ", "???"},
	{"NUL", "train-ai=n\x00", "???"},
	{"path in a header", "/ train-ai=n", "???"},
}

func TestParseContentUsage(t *testing.T) {
	for _, tc := range contentUsages {
		got := usage.ParseContentUsage(strings.Split(tc.value, "\n"), from)
		if s := said(t, got); s != tc.want {
			t.Errorf("%s: %q: got %s, want %s", tc.name, tc.value, s, tc.want)
		}
	}
	if s := said(t, usage.ParseContentUsage(nil, from)); s != "???" {
		t.Errorf("without a value: %s", s)
	}
}

// contentUsageRules are the Content-Usage lines of a group, a target, and the preferences for it.
// The first is the example of draft-ietf-aipref-attach, "Example".
var contentUsageRules = []struct{ name, lines, target, want string }{
	{"draft, other paths", "/ train-ai=n\n/ai-ok/ train-ai=y", "/test", "??n"},
	{"draft, a longer path", "/ train-ai=n\n/ai-ok/ train-ai=y", "/ai-ok/test", "??y"},
	{"order of the lines", "/ai-ok/ train-ai=y\n/ train-ai=n", "/ai-ok/test", "??y"},
	{"no path", "train-ai=n", "/x", "??n"},
	{"no path, and the root", "train-ai=n\n/ train-ai=y", "/x", "??y"},
	{"tab", "/\ttrain-ai=n", "/x", "??n"},
	{"many blanks", "  /x \t train-ai=n  ", "/x", "??n"},
	{"path without preferences", "/ train-ai=n\n/x", "/x", "???"},
	{"empty line", "", "/x", "???"},
	{"no match", "/x train-ai=n", "/y", "???"},
	{"prefix", "/x train-ai=n", "/xy/z", "??n"},
	{"case", "/X train-ai=n", "/x", "???"},
	{"longer rule says nothing about a use", "/ train-ai=n, search=n\n/x search=y", "/x", "y??"},
	{"longer rule is malformed", "/ train-ai=n\n/x TRAIN=n", "/x", "???"},
	{"same path, restrictive wins", "/x train-ai=y\n/x train-ai=n", "/x", "??n"},
	{"same path, restrictive wins in any order", "/x train-ai=n\n/x train-ai=y", "/x", "??n"},
	{"same path, different uses", "/x train-ai=n\n/x search=y", "/x", "y?n"},
	{"same path in another spelling", "/%7Ex train-ai=y\n/~x train-ai=n", "/~x", "??n"},
	{"same length", "/*a train-ai=y\n/x* train-ai=n", "/xa", "??n"},
	{"wildcard", "/*.pdf train-ai=n", "/a/b.pdf?x", "??n"},
	{"wildcard without a match", "/*.pdf train-ai=n", "/a/b.html", "???"},
	{"end", "/x$ train-ai=n", "/x", "??n"},
	{"end without a match", "/x$ train-ai=n", "/xy", "???"},
	{"wildcard and end", "/*.pdf$ train-ai=n", "/a.pdf/b.pdf", "??n"},
	{"wildcard and end without a match", "/*.pdf$ train-ai=n", "/a.pdf?x", "???"},
	{"many wildcards", "/*a*b*c$ train-ai=n", "/xaxbxcxc", "??n"},
	{"dollar inside", "/a$b train-ai=n", "/a$b", "??n"},
	{"query", "/x?a=1 train-ai=n", "/x?a=1&b", "??n"},
	{"escaped blank", "/a%20b train-ai=n", "/a%20b", "??n"},
	{"escape in lower case", "/a%2fb train-ai=n", "/a%2Fb", "??n"},
	{"escaped slash is no slash", "/a%2fb train-ai=n", "/a/b", "???"},
	{"unreserved escape", "/%61 train-ai=n", "/a", "??n"},
	{"UTF-8", "/ü train-ai=n", "/%C3%BC", "??n"},
	{"bad escape", "/%zz train-ai=n", "/%zz", "??n"},
	{"path with an equals sign", "/train-ai=n", "/train-ai=n", "???"},
	{"RFC 9309, 2.2.3: %2A matches a star", "/file-with-a-%2A.html train-ai=n", "/file-with-a-*.html", "??n"},
	{"%2A matches its escape", "/file-with-a-%2a.html train-ai=n", "/file-with-a-%2A.html", "??n"},
	{"%2A is no wildcard", "/file-with-a-%2A.html train-ai=n", "/file-with-a-b.html", "???"},
	{"RFC 9309, 2.2.3: %24 matches a dollar sign", "/path/foo-%24 train-ai=n", "/path/foo-$", "??n"},
	{"%24 is no end", "/path/foo-%24 train-ai=n", "/path/foo-", "???"},
	{"a dollar sign inside matches its escape", "/a$b train-ai=n", "/a%24b", "??n"},
	{"a wildcard matches a star", "/a*c train-ai=n", "/a*bc", "??n"},
	{"RFC 9309, 2.2.2: reserved bytes in the query", "/s?u=https%3A%2F%2Fb.test train-ai=n", "/s?u=https://b.test", "??n"},
	{"a lone percent sign matches its escape", "/100%/x train-ai=n", "/100%25/x", "??n"},
	{"a lone percent sign is no escape", "/a%2 train-ai=n", "/a$b", "???"},
	{"wildcard without a slash is no path", "* train-ai=n", "/x", "???"},
	{"carriage return", "/ train-ai=n\r", "/x", "??n"},
	{"parameters", "/ train-ai=n;x=1", "/x", "??n"},
}

func TestParseContentUsageRules(t *testing.T) {
	for _, tc := range contentUsageRules {
		if got := said(t, robotsTxt("Content-Usage", tc.lines).Of(tc.target)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	if n := len(contentUsages) + len(contentUsageRules); n < 60 {
		t.Errorf("%d cases of AIPREF, want at least 60", n)
	}
}

// robotsTxt returns a robots.txt whose lines have the same key.
func robotsTxt(key, values string) *usage.RobotsTxt {
	var lines []dialect.UsageLine
	for i, value := range strings.Split(values, "\n") {
		lines = append(lines, dialect.UsageLine{Key: key, Value: value, Line: i + 1})
	}
	return usage.ParseRobotsTxt(lines)
}

// TestRuleSource checks which line a preference comes from.
func TestRuleSource(t *testing.T) {
	robots := robotsTxt("Content-Usage", "/ train-ai=n\n/x train-ai=y\n/x train-ai=n, search=y\n/x train-ai=n")
	want := usage.Statement{Preference: usage.Disallowed, Source: usage.Source{Name: "robots.txt", Line: 3}}
	if got := robots.Of("/x"); got.TrainAI != want {
		t.Errorf("got %+v, want %+v", got.TrainAI, want)
	}
}

// contentSignals are Content-Signal values, as in contentUsages, and the value of use.
var contentSignals = []struct{ name, value, want, use string }{
	{"all keys", "search=yes,ai-input=no,ai-train=no,use=reference", "ynn", "reference"},
	{"contentsignals.org: an absent key is unknown", "search=yes,ai-train=no", "y?n", ""},
	{"key use", "search=yes, ai-train=no, use=immediate", "y?n", "immediate"},
	{"search=no", "search=no", "n??", ""},
	{"ai-input=yes", "ai-input=yes", "?y?", ""},
	{"ai-train=yes", "ai-train=yes", "??y", ""},
	{"use=full", "use=full", "???", "full"},
	{"unknown use", "use=all", "???", ""},
	{"empty use", "use=", "???", ""},
	{"two uses, the narrower counts", "use=full,use=immediate", "???", "immediate"},
	{"unknown use and a known one", "use=x,use=full", "???", "full"},
	{"empty value", "", "???", ""},
	{"key without a value", "search", "???", ""},
	{"empty value of a key", "search=", "???", ""},
	{"value of Content-Usage", "search=y", "???", ""},
	{"other value", "search=true", "???", ""},
	{"keys of Content-Usage", "ai-use=no,train-ai=no", "???", ""},
	{"two values, the restrictive counts", "search=no,search=yes", "n??", ""},
	{"two lines, the restrictive counts", "search=yes\nsearch=no", "n??", ""},
	{"two lines", "search=yes\nai-train=no", "y?n", ""},
	{"upper case", "Search=YES, AI-Train=No", "y?n", ""},
	{"blanks", " search = yes ,\tai-train = no\r", "y?n", ""},
	{"empty members", ",,search=yes,,", "y??", ""},
	{"semicolon", "search=yes;ai-train=no", "???", ""},
	{"two equals signs", "search=yes=no", "???", ""},
	{"unknown key", "unknown=no,search=yes", "y??", ""},
	{"quotes", "search=\"no\"", "???", ""},
}

func TestParseContentSignal(t *testing.T) {
	if len(contentSignals) < 20 {
		t.Errorf("%d cases, want at least 20", len(contentSignals))
	}
	for _, tc := range contentSignals {
		got, use := usage.ParseContentSignal(strings.Split(tc.value, "\n"), from)
		if s := said(t, got); s != tc.want || use.String() != tc.use {
			t.Errorf("%s: %q: got %s, use %q; want %s, %q", tc.name, tc.value, s, use, tc.want, tc.use)
		}
	}
	if usage.Use(9).String() != "" {
		t.Error("an unknown Use has a name")
	}
	if !(usage.UseImmediate < usage.UseReference && usage.UseReference < usage.UseFull) {
		t.Error("the order of the uses is wrong")
	}
}

// tdmFiles are TDMRep files, a target, the reservation for it, and the policy.
var tdmFiles = []struct{ name, file, target, want, policy string }{
	{"reserved", `[{"location": "/", "tdm-reservation": 1}]`, "/x", "disallowed", ""},
	{"not reserved", `[{"location": "/", "tdm-reservation": 0}]`, "/x", "allowed", ""},
	{"policy", `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.test/p.json"}]`, "/x", "disallowed", "https://a.test/p.json"},
	{"first match", `[{"location": "/a", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]`, "/a/b", "allowed", ""},
	{"first match, although a later one is longer", `[{"location": "/", "tdm-reservation": 1}, {"location": "/a", "tdm-reservation": 0}]`, "/a/b", "disallowed", ""},
	{"second match", `[{"location": "/a", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]`, "/b", "disallowed", ""},
	{"no match", `[{"location": "/a", "tdm-reservation": 1}]`, "/b", "unknown", ""},
	{"empty list", `[]`, "/x", "unknown", ""},
	{"wildcard", `[{"location": "/*.jpg", "tdm-reservation": 1}]`, "/a/b.jpg", "disallowed", ""},
	{"wildcard without a match", `[{"location": "/*.jpg", "tdm-reservation": 1}]`, "/a/b.png", "unknown", ""},
	{"end", `[{"location": "/a$", "tdm-reservation": 1}]`, "/a", "disallowed", ""},
	{"end without a match", `[{"location": "/a$", "tdm-reservation": 1}]`, "/ab", "unknown", ""},
	{"escaped dollar and the byte", `[{"location": "/path/foo-%24", "tdm-reservation": 1}]`, "/path/foo-$", "disallowed", ""},
	{"escaped star and the byte", `[{"location": "/a-%2A.html", "tdm-reservation": 1}]`, "/a-*.html", "disallowed", ""},
	{"escaped dollar", `[{"location": "/path/foo-%24", "tdm-reservation": 1}]`, "/path/foo-%24", "disallowed", ""},
	{"unreserved escape", `[{"location": "/%61", "tdm-reservation": 1}]`, "/a", "disallowed", ""},
	{"case", `[{"location": "/A", "tdm-reservation": 1}]`, "/a", "unknown", ""},
	{"value 2", `[{"location": "/", "tdm-reservation": 2}]`, "/x", "unknown", ""},
	{"value 2 hides later rules", `[{"location": "/", "tdm-reservation": 2, "tdm-policy": "https://a.test/"}, {"location": "/", "tdm-reservation": 1}]`, "/x", "unknown", ""},
	{"value that is a string", `[{"location": "/", "tdm-reservation": "1"}]`, "/x", "unknown", ""},
	{"value that is true", `[{"location": "/", "tdm-reservation": true}]`, "/x", "unknown", ""},
	{"no value", `[{"location": "/"}]`, "/x", "unknown", ""},
	{"no value hides no later rule", `[{"location": "/", "tdm-policy": "https://a.test/"}, {"location": "/", "tdm-reservation": 1}]`, "/x", "disallowed", ""},
	{"null hides no later rule", `[{"location": "/", "tdm-reservation": null}, {"location": "/", "tdm-reservation": 1}]`, "/x", "disallowed", ""},
	{"1.0", `[{"location": "/", "tdm-reservation": 1.0}]`, "/x", "disallowed", ""},
	{"1e0", `[{"location": "/", "tdm-reservation": 1e0}]`, "/x", "disallowed", ""},
	{"10E-1", `[{"location": "/", "tdm-reservation": 10E-1}]`, "/x", "disallowed", ""},
	{"0.0", `[{"location": "/", "tdm-reservation": 0.0}]`, "/x", "allowed", ""},
	{"-0", `[{"location": "/", "tdm-reservation": -0}]`, "/x", "allowed", ""},
	{"1.5", `[{"location": "/", "tdm-reservation": 1.5}]`, "/x", "unknown", ""},
	{"a number that is too large", `[{"location": "/", "tdm-reservation": 1e999}]`, "/x", "unknown", ""},
	{"no location", `[{"tdm-reservation": 1}]`, "/x", "unknown", ""},
	{"location without a slash", `[{"location": "x", "tdm-reservation": 1}]`, "/x", "unknown", ""},
	{"a rule that is not an object", `[3, {"location": "/", "tdm-reservation": 1}]`, "/x", "disallowed", ""},
	{"a location that is a number", `[{"location": 3, "tdm-reservation": 1}]`, "/x", "unknown", ""},
	{"an unknown member", `[{"location": "/", "tdm-reservation": 1, "x": []}]`, "/x", "disallowed", ""},
	{"not a list", `{"location": "/", "tdm-reservation": 1}`, "/x", "error", ""},
	{"not JSON", `<html>`, "/x", "error", ""},
	{"empty file", ``, "/x", "error", ""},
	{"byte order mark", "\uFEFF" + `[{"location": "/", "tdm-reservation": 1}]`, "/x", "disallowed", ""},
	{"cut file", `[{"location": "/", "tdm-reservation": 1}, {"loc`, "/x", "error", ""},
	{"null", `null`, "/x", "unknown", ""},
}

func TestTDMFile(t *testing.T) {
	if len(tdmFiles) < 25 {
		t.Errorf("%d cases, want at least 25", len(tdmFiles))
	}
	for _, tc := range tdmFiles {
		f, err := usage.ParseTDMFile([]byte(tc.file), from)
		if err != nil {
			if tc.want != "error" || !strings.HasPrefix(err.Error(), "usage: ") {
				t.Errorf("%s: error %v", tc.name, err)
			}
			continue
		}
		got := f.Of(tc.target)
		if got.Reservation.String() != tc.want || got.Policy != tc.policy {
			t.Errorf("%s: got %v, policy %q; want %s, %q", tc.name, got.Reservation, got.Policy, tc.want, tc.policy)
		}
		said(t, got.Preferences())
	}
}

// TestTDMOverrides checks the order of file, header and meta elements.
func TestTDMOverrides(t *testing.T) {
	header := func(reservation, policy string) usage.TDM {
		return usage.ParseTDMHeader(http.Header{"Tdm-Reservation": {reservation}, "Tdm-Policy": {policy}}, usage.Source{Name: "header"})
	}
	meta := func(reservation, policy string) usage.TDM {
		return usage.ParseTDMMeta(func(name string) string {
			return map[string]string{"tdm-reservation": reservation, "tdm-policy": policy}[name]
		}, usage.Source{Name: "meta"})
	}
	file := usage.TDM{Reservation: usage.Disallowed, Policy: "f", Source: usage.Source{Name: "file"}}
	for _, tc := range []struct {
		name         string
		header, meta usage.TDM
		want         string // source, reservation and policy
	}{
		{"file only", header("", ""), meta("", ""), "file disallowed f"},
		{"header, the policy of the file stays", header("0", ""), meta("", ""), "header allowed f"},
		{"header with a policy", header("1", " h "), meta("", ""), "header disallowed h"},
		{"policy without a reservation", header("", "h"), meta("", ""), "file disallowed h"},
		{"policies without a reservation", header("", "h"), meta("", "m"), "file disallowed m"},
		{"reservation and policy from different places", header("0", ""), meta("", "m"), "header allowed m"},
		{"meta, the policy of the header stays", header("0", "h"), meta("1", ""), "meta disallowed h"},
		{"meta", header("0", "h"), meta("1", "m"), "meta disallowed m"},
		{"invalid header with a policy", header("2", "h"), meta("0", ""), "meta allowed h"},
		{"errors", header("yes", "h"), meta("01", "m"), "file disallowed m"},
		{"errors alone", header("yes", ""), meta("01", ""), "file disallowed f"},
	} {
		got := file.Override(tc.header).Override(tc.meta)
		if s := strings.Join([]string{got.Source.Name, got.Reservation.String(), got.Policy}, " "); s != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, s, tc.want)
		}
	}
	alone := usage.TDM{}.Override(header("", "h"))
	if want := (usage.TDM{Policy: "h", Source: usage.Source{Name: "header"}}); alone != want || said(t, alone.Preferences()) != "???" {
		t.Errorf("policy alone: got %+v, want %+v", alone, want)
	}
	if got := alone.Override(meta("1", "")); got.Reservation != usage.Disallowed || got.Policy != "h" || got.Name != "meta" {
		t.Errorf("policy, and then a reservation: got %+v", got)
	}
	twice := usage.ParseTDMHeader(http.Header{"Tdm-Reservation": {"1", "0"}}, from)
	if twice.Reservation != usage.Disallowed || said(t, twice.Preferences()) != "?nn" {
		t.Errorf("1 and 0: %+v", twice)
	}
}

// TestCombine checks that disallowed applies before allowed, and allowed before unknown.
func TestCombine(t *testing.T) {
	a := usage.ParseContentUsage([]string{"search=y, train-ai=n"}, usage.Source{Name: "a"})
	b := usage.ParseContentUsage([]string{"search=n, ai-use=y, train-ai=y"}, usage.Source{Name: "b"})
	both := a.Combine(b)
	if said(t, both) != "nyn" || both.Search.Name != "b" || both.AIUse.Name != "b" || both.TrainAI.Name != "a" {
		t.Errorf("got %+v", both)
	}
	c := usage.ParseContentUsage([]string{"train-ai=n"}, usage.Source{Name: "c"})
	if b.Combine(a).TrainAI.Name != "a" || a.Combine(c).TrainAI.Name != "a" || c.Combine(a).TrainAI.Name != "c" {
		t.Error("the source is not that of the stronger preference")
	}
	for purpose, want := range map[usage.Purpose]usage.Preference{
		usage.Search:                 usage.Allowed,
		usage.AIUse:                  usage.Unknown,
		usage.TrainAI:                usage.Disallowed,
		usage.Search | usage.AIUse:   usage.Allowed,
		usage.Search | usage.TrainAI: usage.Disallowed,
		0:                            usage.Unknown,
	} {
		if got := a.Of(purpose).Preference; got != want {
			t.Errorf("Of(%v) = %v, want %v", purpose, got, want)
		}
	}
}

// TestJSON checks the names in JSON.
func TestJSON(t *testing.T) {
	p := usage.ParseContentUsage([]string{"search=y, train-ai=n"}, from)
	got, err := json.Marshal(p)
	if want := `{"search":{"preference":"allowed","source":"robots.txt","line":3},"train-ai":{"preference":"disallowed","source":"robots.txt","line":3}}`; err != nil || string(got) != want {
		t.Errorf("got %s, error %v, want %s", got, err, want)
	}
	got, err = json.Marshal(usage.Preferences{})
	if err != nil || string(got) != `{}` {
		t.Errorf("got %s, error %v", got, err)
	}
}

func TestDisallowed(t *testing.T) {
	p := usage.ParseContentUsage([]string{"search=n, ai-use=y, train-ai=n"}, from)
	p.Search.Source = usage.Source{Name: "Content-Usage"}
	if got := p.Disallowed(); got != "search in Content-Usage; train-ai in robots.txt, line 3" {
		t.Errorf("got %q", got)
	}
	if got := (usage.Preferences{}).Disallowed(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestStrings(t *testing.T) {
	for got, want := range map[string]string{
		(usage.Search | usage.AIUse | usage.TrainAI).String(): "search|ai-use|train-ai",
		usage.TrainAI.String():                                "train-ai",
		usage.Purpose(0).String():                             "",
		usage.Purpose(9).String():                             "search|Purpose(8)",
		usage.Preference(7).String():                          "Preference(7)",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTarget(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.test":         "/",
		"https://a.test/x?y=1#z": "/x?y=1",
		"https://a.test/%7Ex?":   "/%7Ex?",
		"https://a.test/ü":       "/%C3%BC",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := usage.Target(u); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestHostileInput parses long input. With an algorithm that takes quadratic time, the test would
// not end before its timeout.
func TestHostileInput(t *testing.T) {
	long := strings.Repeat("a", 500_000)
	robots := robotsTxt("Content-Usage", "/"+strings.Repeat("*a", 250_000)+"$ train-ai=n")
	if got := said(t, robots.Of("/"+long)); got != "??n" {
		t.Errorf("got %s", got)
	}
	usage.ParseContentUsage([]string{strings.Repeat("a=n,", 125_000) + "train-ai=n"}, from)
	usage.ParseContentSignal([]string{strings.Repeat("search=no,", 50_000)}, from)
}

func FuzzRules(f *testing.F) {
	for _, tc := range contentUsageRules {
		f.Add(tc.lines, tc.target)
	}
	f.Fuzz(func(t *testing.T, lines, target string) {
		said(t, robotsTxt("Content-Usage", lines).Of(target))
		said(t, robotsTxt("Content-Signal", lines).Of(target))
		path := strings.Trim(lines, " \t\r\n")
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "*$# \t\n") {
			return
		}
		if got := said(t, robotsTxt("Content-Usage", path+" train-ai=n").Of(path)); got != "??n" {
			t.Errorf("the rule with the path %q does not match it", path)
		}
	})
}

func FuzzSignals(f *testing.F) {
	for _, tc := range contentSignals {
		f.Add(tc.value)
	}
	for _, tc := range tdmFiles {
		f.Add(tc.file)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, _ := usage.ParseContentSignal([]string{text}, from)
		said(t, p)
		said(t, usage.ParseContentUsage([]string{text}, from))
		file, err := usage.ParseTDMFile([]byte(text), from)
		if err == nil {
			said(t, file.Of("/x").Preferences())
		}
	})
}

// signalRules are Content-Signal lines of a group, a target, the preferences as in said, and the
// value of use.
var signalRules = []struct{ name, lines, target, want, use string }{
	{"contentsignals.org, Advanced usage: open page", "/about ai-train=yes, search=yes, ai-input=yes\n/blog/ ai-train=no, search=yes, ai-input=no", "/about", "yyy", ""},
	{"contentsignals.org, Advanced usage: blog", "/about ai-train=yes, search=yes, ai-input=yes\n/blog/ ai-train=no, search=yes, ai-input=no", "/blog/1", "ynn", ""},
	{"contentsignals.org, Advanced usage: other page", "/about ai-train=yes, search=yes, ai-input=yes\n/blog/ ai-train=no, search=yes, ai-input=no", "/x", "???", ""},
	{"the first key counts", "/blog/ ai-train=no, search=yes", "/blog/1", "y?n", ""},
	{"no other page", "/blog/ ai-train=no, search=yes", "/about", "???", ""},
	{"longest match", "ai-train=no\n/open/ ai-train=yes", "/open/1", "??y", ""},
	{"longest match in the other order", "/open/ ai-train=yes\nai-train=no", "/open/1", "??y", ""},
	{"longest match, other page", "ai-train=no\n/open/ ai-train=yes", "/x", "??n", ""},
	{"a longer match that says nothing about a use", "ai-train=no, search=yes\n/open/ search=no", "/open/1", "n??", ""},
	{"same path, the restrictive counts", "/x ai-train=yes\n/x ai-train=no", "/x", "??n", ""},
	{"wildcard and end", "/*.pdf$ ai-train=no", "/a/b.pdf", "??n", ""},
	{"wildcard and end without a match", "/*.pdf$ ai-train=no", "/a/b.pdf?x", "???", ""},
	{"%2A matches a star", "/a%2A ai-train=no", "/a*", "??n", ""},
	{"tab", "/x\tai-train=no", "/x", "??n", ""},
	{"path alone", "ai-train=no\n/x", "/x", "???", ""},
	{"use of a path", "use=full\n/x use=reference", "/x", "???", "reference"},
	{"use of the longest match", "use=immediate\n/x use=full", "/x", "???", "full"},
	{"use of the same path, the narrower counts", "/x use=full\n/x use=immediate", "/x", "???", "immediate"},
	{"use of another path", "/x use=full", "/y", "???", ""},
	{"a path needs a slash", "blog/ ai-train=no", "/blog/", "???", ""},
}

func TestParseContentSignalRules(t *testing.T) {
	for _, tc := range signalRules {
		robots := robotsTxt("Content-Signal", tc.lines)
		u := &url.URL{Scheme: "https", Host: "a.test"}
		u.Path, u.RawQuery, _ = strings.Cut(tc.target, "?")
		terms := usage.Sources{Robots: robots}.Terms(u)
		if got := said(t, robots.Of(tc.target)); got != tc.want || said(t, terms.Preferences) != tc.want || terms.Use.String() != tc.use {
			t.Errorf("%s: got %s, use %q; want %s, %q", tc.name, got, terms.Use, tc.want, tc.use)
		}
	}
}

// TestManyRules compares the evaluation of many patterns with that of all patterns one after the
// other.
func TestManyRules(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"", "/", "/a", "/a/b", "/*b", "/a*c", "/b*$", "/c$", "/%61%2F", "/a%2Fb", "/ab?c", "/*?c=%3A", "/%2A", "/a%24"}
	lists := []string{"y", "n", "no"}
	targets := []string{"/", "/a", "/a/b", "/ab", "/a/bc", "/c", "/a%2Fb", "/ab?c=:", "/b?c=/", "/*", "/a$", "/bcb"}
	for range 200 {
		var values []string
		for range 1 + random.IntN(40) {
			path := paths[random.IntN(len(paths))] + strings.Repeat("x", random.IntN(2))
			if !strings.HasPrefix(path, "/") {
				path = ""
			}
			values = append(values, path+" train-ai="+lists[random.IntN(len(lists))]+", search="+lists[random.IntN(len(lists))])
		}
		robots := robotsTxt("Content-Usage", strings.Join(values, "\n"))
		for _, target := range targets {
			var want usage.Preferences
			longest := -1
			for i, value := range values {
				path, list, _ := strings.Cut(value, " ")
				alone := robotsTxt("Content-Usage", path+" ai-use=n")
				if alone.Of(target).AIUse.Preference == usage.Unknown {
					continue // the pattern does not match
				}
				n := patternLength(path)
				if n < longest {
					continue
				}
				if n > longest {
					want = usage.Preferences{}
					longest = n
				}
				want = want.Combine(usage.ParseContentUsage([]string{list}, usage.Source{Name: "robots.txt", Line: i + 1}))
			}
			if got := robots.Of(target); got != want {
				t.Fatalf("%s: got %+v, want %+v for\n%s", target, got, want, strings.Join(values, "\n"))
			}
		}
	}
}

// patternLength returns the length of a pattern that TestManyRules uses in its encoded form.
func patternLength(path string) int {
	return len(strings.ReplaceAll(path, "%61", "a"))
}
