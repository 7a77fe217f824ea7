package dialect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// usageFiles are robots.txt files, and the lines about the use of content that apply to ExampleBot:
// the first letters of the key and the number of each line. The last column has the dialects with
// another result.
var usageFiles = []struct {
	name, file, want string
	others           map[string]string
}{
	{
		"draft-ietf-aipref-attach, Example",
		"User-Agent: *\nAllow: /\nContent-Usage: / train-ai=n\n\nUser-Agent: ExampleBot\nAllow: /\nDisallow: /x\nContent-Usage: / train-ai=y\n",
		"u8", nil,
	},
	{"no group for the crawler", "User-agent: Other\nContent-Usage: train-ai=n\nDisallow: /x\n", "", nil},
	{"group of all", "User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: ai-train=no\nDisallow: /x\n", "u2 s3", nil},
	{
		"two groups with the same name", "User-agent: ExampleBot\nDisallow: /x\nContent-Usage: search=y\n\nUser-agent: ExampleBot\nDisallow: /y\nContent-Usage: train-ai=n\n",
		"u3 u7", map[string]string{"temoto": "u3 u7"},
	},
	{"run of names", "User-agent: Other\nUser-agent: ExampleBot\nContent-Usage: train-ai=n\nDisallow: /x\n", "u3", nil},
	{"line within a run", "User-agent: Other\nContent-Usage: train-ai=n\nUser-agent: ExampleBot\nDisallow: /x\n", "", nil},
	{"signal within a run", "User-agent: Other\nContent-Signal: ai-train=no\nUser-agent: ExampleBot\nDisallow: /x\n", "", nil},
	{"signal of another crawler with a path", "User-agent: LicensedBot\nContent-Signal: /blog/ ai-train=yes\n\nUser-agent: *\nContent-Signal: ai-train=no\nDisallow: /x\n", "s5", nil},
	{
		"draft-ietf-aipref-attach-05: the line is a rule of its group, which another group follows",
		"User-agent: LicensedBot\nContent-Usage: / train-ai=y\n\nUser-agent: *\nContent-Usage: train-ai=n\n",
		"u5", map[string]string{"original1994": "", "seznam": ""},
	},
	{"the same without a blank line", "User-agent: LicensedBot\nContent-Usage: / train-ai=y\nUser-agent: *\nContent-Usage: train-ai=n\nDisallow: /x\n", "u4", nil},
	{"the same for the crawler that is named first", "User-agent: ExampleBot\nContent-Usage: / train-ai=y\nUser-agent: *\nContent-Usage: train-ai=n\nDisallow: /x\n", "u2", nil},
	{"line after a rule of another group", "User-agent: Other\nDisallow: /\nContent-Usage: train-ai=n\nUser-agent: ExampleBot\nDisallow: /x\n", "", nil},
	{
		"blank line in a group", "User-agent: *\nDisallow: /x\n\nContent-Signal: ai-train=no\n",
		"s4", nil,
	},
	{
		"blank line in a group with Content-Usage", "User-agent: *\nDisallow: /x\n\nContent-Usage: train-ai=n\n",
		"u4", map[string]string{"original1994": "", "seznam": ""},
	},
	{
		"group without rules", "User-agent: *\nContent-Usage: train-ai=n\n",
		"u2", map[string]string{"original1994": "", "seznam": ""},
	},
	{"before the first group", "Content-Signal: ai-train=no\nContent-Usage: train-ai=n\nUser-agent: Other\nDisallow: /\n", "s1", nil},
	{
		"license before, in and after groups", "License: https://a.test/1\nUser-agent: Other\nLicense: https://a.test/2\nDisallow: /\n\nLicense: https://a.test/3\n",
		"l1 l3 l6", nil,
	},
	{"only a license", "License: https://a.test/1\n", "l1", nil},
	{"keys in another case", "user-agent: *\nDISALLOW: /x\ncontent-usage: train-ai=n\nCONTENT-SIGNAL: ai-train=no\nlicense: https://a.test/1\n", "u3 s4 l5", nil},
	{"blanks and comments", "User-agent: *\nDisallow: /x\n \tContent-Usage \t: train-ai=n # c\n", "u3", nil},
	{
		"key with more letters", "User-agent: *\nDisallow: /x\nContent-Signals: ai-train=no\nLicense-URL: https://a.test/\n",
		"", map[string]string{"google": "s3 l4"}, // Google compares the beginning of a key
	},
	{"no such lines", "User-agent: *\nDisallow: /x\n", "", nil},
	{"empty file", "", "", nil},
}

func TestUsageLines(t *testing.T) {
	for _, tc := range usageFiles {
		for _, d := range dialect.All() {
			want := tc.want
			if other, ok := tc.others[d.String()]; ok {
				want = other
			}
			var got []string
			for _, l := range d.Parse([]byte(tc.file)).UsageLines("ExampleBot") {
				got = append(got, fmt.Sprintf("%s%d", map[string]string{"Content-Usage": "u", "Content-Signal": "s", "License": "l"}[l.Key], l.Line))
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s, %v: got %q, want %q", tc.name, d, s, want)
			}
		}
	}
}

// TestUsageValues checks the values of the lines.
func TestUsageValues(t *testing.T) {
	file := "\uFEFFUser-agent: *\r\nDisallow:\r\nContent-Usage: /x\ttrain-ai=n , search=y # comment\r\nLicense: https://a.test/x?y#z\r\n"
	for _, d := range dialect.All() {
		var got []string
		for _, l := range d.Parse([]byte(file)).UsageLines("ExampleBot") {
			got = append(got, l.Value)
		}
		if want := []string{"/x\ttrain-ai=n , search=y", "https://a.test/x?y"}; !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

// TestUsageLinesChangeNoDecision checks that lines about the use of content do not change groups
// and decisions. For Yandex, no such line is within a run of User-agent lines, which it would end.
func TestUsageLinesChangeNoDecision(t *testing.T) {
	const file = "@User-agent: Other\n@User-agent: ExampleBot\n@Disallow: /x\n@Crawl-delay: 3\n@\n@User-agent: *\n@Disallow: /y\n@"
	for _, line := range []string{"Content-Usage: train-ai=n\n", "Content-Signal: ai-train=no\n", "License: https://a.test/\n"} {
		for _, d := range dialect.All() {
			for _, token := range []string{"ExampleBot", "Other", "Third"} {
				without := d.Parse([]byte(strings.ReplaceAll(file, "@", ""))).Group(token)
				more := file
				if d == dialect.Yandex() {
					more = strings.Replace(file, "@User-agent: ExampleBot", "User-agent: ExampleBot", 1)
				}
				more = strings.ReplaceAll(more, "@", line)
				with := d.Parse([]byte(more)).Group(token)
				for _, target := range []string{"/x", "/y", "/z"} {
					if a, b := without.Decide(target).Allowed, with.Decide(target).Allowed; a != b {
						t.Errorf("%v, %s, %s: allowed is %v with %q, and %v without", d, token, target, b, line, a)
					}
				}
				a, _ := without.CrawlDelay()
				b, _ := with.CrawlDelay()
				if a != b || with.Name() != without.Name() {
					t.Errorf("%v, %s: group %q with delay %v, want %q with %v", d, token, with.Name(), b, without.Name(), a)
				}
			}
		}
	}
}

// TestUsageLinesOfLimitedFile checks that a file that restricts nothing under Yandex has no lines
// of groups either.
func TestUsageLinesOfLimitedFile(t *testing.T) {
	file := "License: https://a.test/\nUser-agent: *\nContent-Usage: train-ai=n\n" + strings.Repeat("Disallow: /x\n", 2049)
	got := dialect.Yandex().Parse([]byte(file)).UsageLines("ExampleBot")
	if len(got) != 1 || got[0].Key != "License" {
		t.Errorf("got %+v", got)
	}
	if got := dialect.RFC9309().Parse([]byte(file)).UsageLines("ExampleBot"); len(got) != 2 {
		t.Errorf("RFC 9309: got %+v", got)
	}
}

// FuzzUsageLines checks that the lines are lines of the file, in their order.
func FuzzUsageLines(f *testing.F) {
	for _, tc := range usageFiles {
		f.Add(tc.file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		for _, d := range dialect.All() {
			last := 0
			for _, l := range d.Parse([]byte(file)).UsageLines("ExampleBot") {
				if l.Line <= last || !strings.Contains(file, l.Value) || strings.ContainsAny(l.Value, "\r\n") || l.Key == "" {
					t.Errorf("%v: %+v after line %d", d, l, last)
				}
				last = l.Line
			}
		}
	})
}
