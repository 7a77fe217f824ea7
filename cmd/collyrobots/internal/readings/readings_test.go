package readings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/usage"
)

// shop is a file whose rules all dialects read, and rules that some of them read differently.
const shop = `User-agent: *
Disallow: /cart
Allow: /cart/help
Disallow: /*.pdf$
Crawl-delay: 4
Request-rate: 10/1m 0600-1459
Content-Usage: train-ai=n
`

// verdicts returns the letters of the readings, a for allowed and d for denied, with the lines.
func verdicts(u URL) string {
	var b strings.Builder
	for _, r := range u.Readings {
		letter := "d"
		if r.Allowed {
			letter = "a"
		}
		fmt.Fprintf(&b, "%s%d ", letter, r.Line)
	}
	return strings.TrimSpace(b.String())
}

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		what, text, name, url, want string // in the order of dialect.All
	}{
		{"all agree", shop, "ExampleBot", "/cart", "d2 d2 d2 d2 d0 d2 d2"},
		{"1994 and temoto take no later Allow", shop, "ExampleBot", "https://shop.test/cart/help", "a3 a3 a3 d2 a0 a3 a3"},
		{"1994 has no wildcards", shop, "ExampleBot", "/a.pdf", "d4 d4 d4 a0 d0 d4 d4"},
		{"no rule", shop, "ExampleBot", "/", "a0 a0 a0 a0 a0 a0 a0"},
		{"a path without a query", shop, "ExampleBot", "//shop.test/cart", "a0 a0 a0 a0 a0 a0 a0"},
		{"the fragment is not part of the URL", shop, "ExampleBot", "/#/cart", "a0 a0 a0 a0 a0 a0 a0"},
		{"a percent sign without digits", "User-agent: *\nDisallow: /5%off", "ExampleBot", "/5%off", "d2 d2 d2 d2 a0 d2 d2"},
		{"no name", "User-agent: *\nDisallow: /", "", "/", "d2 d2 d2 d2 d0 d2 d2"},
		{"a header", "User-agent: ExampleBot\nDisallow: /", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.com/bot)", "/", "d2 d2 d2 d2 a0 d2 d2"},
		{"the header of a browser", "User-agent: *\nDisallow: /", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0", "/", "d2 d2 d2 d2 d0 d2 d2"},
		{"temoto refuses the file", "User-agent: *\nCrawl-delay: 5s\nDisallow: /a", "ExampleBot", "/", "a0 a0 a0 a0 d2 a0 a0"},
		{"an empty file", "", "ExampleBot", "/", "a0 a0 a0 a0 a0 a0 a0"},
	} {
		a := new(Reader).Answer(Question{Text: []byte(test.text), Name: test.name, URLs: []string{test.url}})
		if got := verdicts(a.URLs[0]); got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
}

func TestGroups(t *testing.T) {
	a := new(Reader).Answer(Question{Text: []byte(shop), Name: "Example2"})
	got, err := json.Marshal(a.Groups)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"dialect":"rfc9309","name":"*","delays":[{"seconds":4,"line":5}]}`,
		`{"dialect":"google","name":"*","problem":"`,
		`{"dialect":"original1994","name":"*"}`,
		`{"dialect":"seznam","name":"*","delays":[{"seconds":6,"line":6,"hours":"06:00 to 14:59"}]}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the groups do not contain %s:\n%s", want, got)
		}
	}
}

// TestRefusal checks that the reading has the line that temoto does not accept.
func TestRefusal(t *testing.T) {
	q := Question{Text: []byte("User-agent: *\nCrawl-delay: 5s\n"), URLs: []string{"/"}, Dialects: []dialect.Dialect{dialect.Temoto()}}
	got := new(Reader).Answer(q).URLs[0].Readings[0]
	want := Reading{Dialect: dialect.Temoto(), Line: 2, Rule: "Crawl-delay: 5s", Refused: true}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestUsage(t *testing.T) {
	a := new(Reader).Answer(Question{Text: []byte(shop), URLs: []string{"/", "/cart"}})
	terms := a.URLs[0].Usage
	if terms == nil {
		t.Fatal("nothing is said about /")
	}
	said := terms.Preferences.TrainAI
	if said.Preference != usage.Disallowed || said.Line != 7 {
		t.Errorf("train-ai: %+v", said)
	}
	if a.URLs[1].Usage != nil {
		t.Error("a page that must not be requested has preferences")
	}
}

func TestTDMRep(t *testing.T) {
	text := `[{"location": "/open/", "tdm-reservation": 0}, {"location": "/*", "tdm-reservation": 1, "tdm-policy": "https://a.test/policy.json"}]`
	a := new(Reader).Answer(Question{Text: []byte(text), URLs: []string{"/open/1", "/news", "news"}, Lint: true})
	if !a.TDMRep || len(a.Groups) != 0 || len(a.Findings) != 0 {
		t.Errorf("%+v", a)
	}
	for i, want := range []usage.Preference{usage.Allowed, usage.Disallowed} {
		u := a.URLs[i]
		if len(u.Readings) != 0 || u.Usage.TDM.Reservation != want {
			t.Errorf("%s: %+v", u.URL, u.Usage)
		}
	}
	if got := a.URLs[1].Usage.TDM.Policy; got != "https://a.test/policy.json" {
		t.Errorf("the policy is %q", got)
	}
	if a.URLs[2].Error == "" {
		t.Error("a text that is no URL has no error")
	}
	a = new(Reader).Answer(Question{Text: []byte(`{"tdm-reservation": 1}`), URLs: []string{"/"}, Lint: true})
	if !a.TDMRep || len(a.Findings) != 1 || a.URLs[0].Usage.TDM != (usage.TDM{}) {
		t.Errorf("a file that is no list: %+v", a)
	}
}

func TestNoURL(t *testing.T) {
	for _, text := range []string{"", "cart", "mailto:a@b.test", "https://", "https:///a", "http://[", "\x00", "\\a"} {
		got := new(Reader).Answer(Question{Text: []byte(shop), URLs: []string{text}}).URLs[0]
		if got.Error != notURL || got.Readings != nil || got.Usage != nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestUnusualURLs checks that each URL has readings or the reason why no request can be sent to it. Package
// net/url rejects some of the URLs itself.
func TestUnusualURLs(t *testing.T) {
	for _, test := range kit.UnusualURLs {
		got := new(Reader).Answer(Question{Text: []byte(shop), URLs: []string{test.URL}}).URLs[0]
		want := test.Reason
		switch {
		case strings.ContainsRune(test.URL, 0) || want != "" && got.Error == notURL:
			want = notURL
		case want == kit.NotWeb:
			want = "the scheme is not http, https or ftp"
		}
		if !strings.Contains(got.Error, want) || (got.Error == "") != (want == "") || (got.Readings == nil) != (want != "") {
			t.Errorf("%.60q: error %q, readings %v, want error %q", test.URL, got.Error, got.Readings, want)
		}
	}
}

// TestQuestionsInARow checks that a Reader gives the same answers as a new one, whatever it was
// asked before.
func TestQuestionsInARow(t *testing.T) {
	urls := []string{"/", "/cart", "/a.pdf"}
	texts := []string{shop, "User-agent: ExampleBot\nDisallow: /\n", "", `[{"location": "/", "tdm-reservation": 1}]`, "User-agent: *\nCrawl-delay: x\nContent-Signal: ai-train=no\n"}
	var questions []Question
	for _, text := range texts {
		for _, name := range []string{"", "ExampleBot", "OtherBot/1.0 (x)"} {
			for _, dialects := range [][]dialect.Dialect{nil, {dialect.Temoto()}, {dialect.Seznam(), dialect.Google()}} {
				questions = append(questions, Question{Text: []byte(text), Name: name, URLs: urls, Dialects: dialects, Lint: true})
			}
		}
	}
	kept := new(Reader)
	for i := range questions {
		for _, q := range []Question{questions[i], questions[len(questions)-1-i]} {
			got := fmt.Sprint(encode(t, kept.Answer(q)))
			if want := encode(t, new(Reader).Answer(q)); got != want {
				t.Fatalf("%s in %v:\n%s, want\n%s", q.Name, q.Dialects, got, want)
			}
		}
	}
}

func TestSentURL(t *testing.T) {
	for text, want := range map[string]string{
		"/a#b":                     "/a",
		"/5%off":                   "/5%25off",
		"/%41%4a%4":                "/%41%4a%254",
		"/%%41%":                   "/%25%41%25",
		"/?q=%+%zz":                "/?q=%25+%25zz",
		"https://a.test/%?":        "https://a.test/%25?",
		"https://a.test/\u00e4%C3": "https://a.test/%C3%A4%C3",
	} {
		if got := SentURL(text).String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTextIsCopied checks that a caller can reuse the memory of a text.
func TestTextIsCopied(t *testing.T) {
	r := new(Reader)
	text := []byte("User-agent: *\nDisallow: /a\n")
	q := Question{Text: text, URLs: []string{"/a", "/b"}}
	before := encode(t, r.Answer(q))
	copy(text[len(text)-2:], "b")
	if after := encode(t, r.Answer(q)); after == before {
		t.Error("the answer about another text is the same")
	}
}

func encode(t *testing.T, a Answer) string {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBadTexts checks that bytes of any kind have an answer that is valid JSON.
func TestBadTexts(t *testing.T) {
	utf16 := []byte("\xFF\xFE")
	for _, c := range []byte(shop) {
		utf16 = append(utf16, c, 0)
	}
	large := []byte("User-agent: *\n" + strings.Repeat("Disallow: /0123456789/*x\n", dialect.SizeLimit/25))
	for name, text := range map[string][]byte{
		"NUL":     []byte("User-agent: *\x00\nDisallow: /a\x00b\n"),
		"UTF-16":  utf16,
		"Latin-1": []byte("User-agent: \xE9\nDisallow: /\xE9\n"),
		"large":   large,
		"HTML":    []byte("<!doctype html><html>"),
	} {
		a := new(Reader).Answer(Question{Text: text, Name: "\xE9", URLs: []string{"/a%00b", "/\xE9", "/"}, Lint: true})
		encode(t, a)
		for _, u := range a.URLs {
			if len(u.Readings) != len(dialect.All()) {
				t.Errorf("%s, %q: %d readings", name, u.URL, len(u.Readings))
			}
		}
		if name != "large" && len(a.Findings) == 0 {
			t.Errorf("%s: no findings", name)
		}
	}
}

func TestHours(t *testing.T) {
	rate := func(value string) string {
		text := "User-agent: *\nRequest-rate: " + value + "\n"
		a := new(Reader).Answer(Question{Text: []byte(text), Dialects: []dialect.Dialect{dialect.Seznam()}})
		if len(a.Groups[0].Delays) != 1 {
			t.Fatalf("%s: %+v", value, a.Groups)
		}
		return a.Groups[0].Delays[0].Hours
	}
	values := []string{"1/1m", "1/1m 0600-1459", "1/1m 2200-0559", "1/1m 1800-2359"}
	var got []string
	for _, value := range values {
		got = append(got, rate(value))
	}
	if want := []string{"", "06:00 to 14:59", "22:00 to 05:59", "18:00 to 23:59"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
