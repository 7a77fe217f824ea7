package robotstags_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/robotstags"
)

// Each header case is named after the text and the clause that it tests. The crawler is ExampleBot,
// which is also ExampleBot-News. A rule is written as bot/name=value.
var headers = []struct {
	name string
	x    []string // lines of X-Robots-Tag
	sf   []string // lines of Robots-Tag
	want string
}{
	{"google/x-robots-tag: one rule", []string{"noindex"}, nil, "noindex"},
	{"google/x-robots-tag: rules separated by commas", []string{"noindex, nofollow"}, nil, "noindex nofollow"},
	{"google/x-robots-tag: several lines", []string{"noimageindex", "unavailable_after: 25 Jun 2010 15:00:00 PST"}, nil, "noimageindex unavailable_after=25 Jun 2010 15:00:00 PST"},
	{"google/x-robots-tag: upper and lower case", []string{"NoIndex, NOFOLLOW"}, nil, "noindex nofollow"},
	{"google/x-robots-tag: a user agent before the rules", []string{"examplebot: noindex, nofollow"}, nil, "examplebot/noindex examplebot/nofollow"},
	{"google/x-robots-tag: another user agent", []string{"otherbot: noindex, nofollow"}, nil, ""},
	{"google/x-robots-tag: user agents in several lines", []string{"examplebot: nofollow", "otherbot: noindex, nofollow"}, nil, "examplebot/nofollow"},
	{"google/x-robots-tag: a user agent is for its line only", []string{"otherbot: noindex", "nofollow"}, nil, "nofollow"},
	{"google/x-robots-tag: several user agents in a line", []string{"nosnippet, otherbot: noindex, examplebot: nofollow"}, nil, "nosnippet examplebot/nofollow"},
	{"google/x-robots-tag: rules without a user agent are for all", []string{"noindex", "examplebot: nofollow"}, nil, "noindex examplebot/nofollow"},
	{"google/x-robots-tag: a user agent and a rule with a value", []string{"ExampleBot: max-snippet: 20"}, nil, "examplebot/max-snippet=20"},
	{"google/x-robots-tag: the second name of the crawler", []string{"examplebot-news: noindex"}, nil, "examplebot-news/noindex"},
	{"google/rules: max-snippet", []string{"max-snippet:50, max-image-preview: large,max-video-preview : -1"}, nil, "max-snippet=50 max-image-preview=large max-video-preview=-1"},
	{"google/rules: unavailable_after in RFC 822", []string{"unavailable_after: Thu, 25 Jun 2026 15:00:00 GMT, noindex"}, nil, "unavailable_after=Thu, 25 Jun 2026 15:00:00 GMT noindex"},
	{"google/rules: unavailable_after in RFC 850", []string{"noindex, unavailable_after: Thursday, 25-Jun-26 15:00:00 GMT"}, nil, "noindex unavailable_after=Thursday, 25-Jun-26 15:00:00 GMT"},
	{"google/rules: unavailable_after in ISO 8601", []string{"unavailable_after: 2026-06-25T15:00:00+02:00, nofollow"}, nil, "unavailable_after=2026-06-25T15:00:00+02:00 nofollow"},
	{"google/rules: unavailable_after for a user agent", []string{"otherbot: noindex, examplebot: unavailable_after: 25 Jun 2026 15:00:00 PST, nofollow"}, nil, "examplebot/unavailable_after=25 Jun 2026 15:00:00 PST examplebot/nofollow"},
	{"google/rules: unavailable_after is no date", []string{"unavailable_after: tomorrow noindex, nofollow"}, nil, "unavailable_after=tomorrow noindex nofollow"},
	{"google/rules: unavailable_after without a value", []string{"unavailable_after:, noindex"}, nil, "unavailable_after noindex"},
	{"google/rules: an unknown rule is kept", []string{"nowombats, noindex"}, nil, "nowombats noindex"},
	{"google/rules: an unknown rule with a number is kept", []string{"max-wombats: 3, noindex"}, nil, "max-wombats=3 noindex"},
	{"google/rules: a repeated rule counts once", []string{"noindex, noindex", "noindex"}, nil, "noindex"},
	{"yandex/several directives: none", []string{"none"}, nil, "none"},
	{"yandex/instructions for specific robots: sum of the rules", []string{"examplebot: index", "noindex"}, nil, "examplebot/index noindex"},
	{"de facto: blanks between rules", []string{"noindex nofollow"}, nil, "noindex nofollow"},
	{"de facto: empty elements", []string{" , noindex,, :, ;nofollow ,"}, nil, "noindex nofollow"},
	{"de facto: semicolons between rules", []string{"noindex; nofollow"}, nil, "noindex nofollow"},
	{"de facto: an empty line", []string{"", " "}, nil, ""},
	{"de facto: a user agent without rules", []string{"examplebot:"}, nil, ""},
	{"de facto: all crawlers by name", []string{"*: noindex", "robots: nofollow"}, nil, "noindex nofollow"},
	{"repext-03/3.1.1: list of items", nil, []string{"*;nosnippet, ExampleBot;noindex"}, "nosnippet examplebot/noindex"},
	{"repext-03/3.1.1: another product token", nil, []string{"*;nosnippet, OtherBot;noindex"}, "nosnippet"},
	{"repext-03/3.1.1: a restriction for * applies to a named crawler", nil, []string{"ExampleBot;nosnippet, *;noindex"}, "examplebot/nosnippet noindex"},
	{"repext-03/3.1.1: a repeated product token is merged", nil, []string{"*;noindex, *;nosnippet;noindex"}, "noindex nosnippet"},
	{"repext-03/3.1.1: several lines are one list", nil, []string{"*;noindex", "examplebot;nofollow"}, "noindex examplebot/nofollow"},
	{"repext-03/3.1.1: the old field name with the new syntax", []string{"*;noindex, OtherBot;nofollow, ExampleBot;nosnippet;max-snippet=3, noarchive"}, nil, "noindex examplebot/nosnippet examplebot/max-snippet=3 noarchive"},
	{"repext-03/3.1.1: a product token without rules", nil, []string{"*;noindex, ExampleBot"}, "noindex"},
	{"repext-03/3.1.3: rules are case-insensitive", nil, []string{"*;NoIndex, EXAMPLEBOT;NOFOLLOW"}, "noindex examplebot/nofollow"},
	{"repext-03/3.1.3: other rules are supported", nil, []string{`*;max-snippet=20;max-image-preview=large;unavailable_after="2026-06-25"`}, "max-snippet=20 max-image-preview=large unavailable_after=2026-06-25"},
	{"repext-03/3.1.1: both field names", []string{"noindex"}, []string{"*;noindex"}, "noindex noindex"},
	{"rfc9651/3.1.2: a parameter that is false is not set", nil, []string{"*;noindex=?0;nofollow"}, "nofollow"},
	{"rfc9651/3.3.3: a product token as a string", nil, []string{`"ExampleBot";noindex`}, "examplebot/noindex"},
	{"rfc9651/3.3.7: a date", nil, []string{"*;unavailable_after=@1782399600"}, "unavailable_after=2026-06-25T15:00:00Z"},
	{"rfc9651/4.2: a field that does not parse is ignored", nil, []string{"*;noindex, ;nofollow"}, ""},
	{"rfc9651/4.2: a rule as an item is a product token", nil, []string{"noindex, nofollow"}, ""},
	{"rfc9651/3.1.1: an inner list is no product token", nil, []string{"(* a);noindex, *;nofollow"}, "nofollow"},
}

// text writes rules as the tables do.
func text(tags robotstags.Tags) string {
	var words []string
	for _, r := range tags {
		word := string(r.Name)
		if r.Bot != "" {
			word = r.Bot + "/" + word
		}
		if r.Value != "" {
			word += "=" + r.Value
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

var bots = []string{"ExampleBot-News", "ExampleBot"}

func TestFromHeader(t *testing.T) {
	for _, test := range headers {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			if test.x != nil {
				h["X-Robots-Tag"] = test.x
			}
			if test.sf != nil {
				h["Robots-Tag"] = test.sf
			}
			if got := text(robotstags.FromHeader(h, bots...)); got != test.want {
				t.Errorf("X-Robots-Tag: %q, Robots-Tag: %q\ngot  %s\nwant %s", test.x, test.sf, got, test.want)
			}
			if !robotstags.HasHeader(h) {
				t.Error("HasHeader returns false")
			}
		})
	}
	if robotstags.HasHeader(http.Header{"Content-Type": {"text/html"}}) {
		t.Error("HasHeader returns true without a header")
	}
}

// Each page case is named after the text and the clause that it tests.
var pages = []struct{ name, page, want string }{
	{"repext-03/3.1.2: the global token", `<meta name="robots" content="noindex">`, "noindex"},
	{"repext-03/3.1.2: the token of the crawler", `<meta name="examplebot" content="nosnippet">`, "examplebot/nosnippet"},
	{"repext-03/3.1.2: another token", `<meta name="otherbot" content="noindex">`, ""},
	{"repext-03/3.1.2: union of all elements", `<meta name=robots content=noindex><meta name=examplebot content="follow,nosnippet"><meta name=robots content=nofollow>`, "noindex examplebot/follow examplebot/nosnippet nofollow"},
	{"repext-03/4: only the head counts", `<title>a</title><p>comment</p><meta name="robots" content="noindex">`, ""},
	{"google/meta: name and content are case-insensitive", `<META NAME="ROBOTS" CONTENT="NoIndex,NOFOLLOW">`, "noindex nofollow"},
	{"google/meta: more than one rule", `<meta name="robots" content="max-snippet:20, max-image-preview:large">`, "max-snippet=20 max-image-preview=large"},
	{"google/meta: unavailable_after", `<meta name="robots" content="unavailable_after: Thu, 25 Jun 2026 15:00:00 GMT,noindex">`, "unavailable_after=Thu, 25 Jun 2026 15:00:00 GMT noindex"},
	{"yandex/meta: none", `<meta name="robots" content="none"/>`, "none"},
	{"bing/meta: nocache", `<meta name="robots" content="nocache,follow">`, "nocache follow"},
	{"de facto: blanks between rules", `<meta name="robots" content=" noindex  nofollow ">`, "noindex nofollow"},
	{"de facto: a name in the content is no crawler", `<meta name="robots" content="otherbot: noindex">`, "otherbot=noindex"},
	{"de facto: empty content", `<meta name="robots" content=""><meta name="robots">`, ""},
	{"html/attributes: character references", `<meta name="robots" content="noindex&#44;nofollow">`, "noindex nofollow"},
	{"html/semantics: another meta element", `<meta name="description" content="noindex"><meta http-equiv="robots" content="noindex">`, ""},
}

func TestFromHTML(t *testing.T) {
	for _, test := range pages {
		t.Run(test.name, func(t *testing.T) {
			if got := text(robotstags.FromHTML([]byte(test.page), bots...)); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.page, got, test.want)
			}
		})
	}
}

func TestQueries(t *testing.T) {
	for _, test := range []struct {
		line     string
		noIndex  bool
		noFollow bool
		limit    string // of max-snippet
		after    string // of unavailable_after
	}{
		{line: ""},
		{line: "noindex", noIndex: true},
		{line: "nofollow", noFollow: true},
		{line: "none", noIndex: true, noFollow: true},
		{line: "noindex, index, all, follow", noIndex: true}, // restrictions are combined
		{line: "noindex, examplebot: index", noIndex: true},
		{line: "max-snippet: 20, max-snippet: 0, max-snippet: 30", limit: "0"},
		{line: "max-snippet: -1"},
		{line: "max-snippet: many, max-snippet: 7", limit: "7"},
		{line: "unavailable_after: 25 Jun 2010 15:00:00 PST", after: "2010-06-25T23:00:00Z"},
		{line: "unavailable_after: Thursday, 25-Jun-26 15:00 EST", after: "2026-06-25T20:00:00Z"},
		{line: "unavailable_after: 2026-06-25", after: "2026-06-25T00:00:00Z"},
		{line: "unavailable_after: 2027-01-01, unavailable_after: 2026-01-01T01:00:00+01:00", after: "2026-01-01T00:00:00Z"},
		{line: "unavailable_after: 20260625T150000Z", after: "2026-06-25T15:00:00Z"},
		{line: "unavailable_after: 20260625T150000+0200, noindex", noIndex: true, after: "2026-06-25T13:00:00Z"},
		{line: "unavailable_after: 20260625T1500+02", after: "2026-06-25T13:00:00Z"},
		{line: "unavailable_after: 20260625T150000", after: "2026-06-25T15:00:00Z"},
		{line: "unavailable_after: 20260625T1500", after: "2026-06-25T15:00:00Z"},
		{line: "unavailable_after: 20260625", after: "2026-06-25T00:00:00Z"},
		{line: "unavailable_after: Thu Jun 25 15:00:00 2026, nofollow", noFollow: true, after: "2026-06-25T15:00:00Z"},
		{line: "unavailable_after: Fri Jun  5 15:00:00 2026", after: "2026-06-05T15:00:00Z"},
		{line: "unavailable_after: 25 June 2026 15:00:00 GMT", after: "2026-06-25T15:00:00Z"},
		{line: "unavailable_after: Thursday, 3 september 2026", after: "2026-09-03T00:00:00Z"},
		{line: "unavailable_after: Thursday, 25-June-2026 15:00 EST", after: "2026-06-25T20:00:00Z"},
		{line: "unavailable_after: 25 Jun 2026 15:00:00 CEST", after: "2026-06-25T13:00:00Z"},
		{line: "unavailable_after: 25 January 2026 15:00 CET", after: "2026-01-25T14:00:00Z"},
		{line: "unavailable_after: 25 Junes 2026"},
		{line: "unavailable_after: 20261325"},
		{line: "unavailable_after: never"},
		{line: "unavailable_after: " + strings.Repeat("9", 1000)},
	} {
		t.Run(test.line, func(t *testing.T) {
			tags := robotstags.FromHeader(http.Header{"X-Robots-Tag": {test.line}}, "examplebot")
			if tags.NoIndex() != test.noIndex || tags.NoFollow() != test.noFollow {
				t.Errorf("NoIndex() = %v, NoFollow() = %v", tags.NoIndex(), tags.NoFollow())
			}
			limit := ""
			if n, ok := tags.Limit(robotstags.MaxSnippet); ok {
				limit = fmt.Sprint(n)
			}
			after := ""
			if at, ok := tags.UnavailableAfter(); ok {
				after = at.Format(time.RFC3339)
			}
			if limit != test.limit || after != test.after {
				t.Errorf("limit %q and date %q, want %q and %q", limit, after, test.limit, test.after)
			}
		})
	}
}

// Eight KiB of each source are read. An item that is cut off there is ignored, and the items before
// it count (draft-illyes-repext-03, section 3.1.1).
func TestLimits(t *testing.T) {
	fill := func(item string, size int) string { return strings.Repeat(item, size/len(item)+1)[:size] }
	within := fill("a,", 8<<10-len("noindex,")) + "noindex,"
	for name, test := range map[string]struct {
		h    http.Header
		want bool
	}{
		"X-Robots-Tag within the limit":        {http.Header{"X-Robots-Tag": {within + "b"}}, true},
		"X-Robots-Tag beyond the limit":        {http.Header{"X-Robots-Tag": {"aa," + within}}, false},
		"X-Robots-Tag in lines":                {http.Header{"X-Robots-Tag": {within[:8000], within[8000:] + "nofollow"}}, true},
		"X-Robots-Tag in lines beyond":         {http.Header{"X-Robots-Tag": {within, "noindex"}}, true},
		"X-Robots-Tag in a line beyond":        {http.Header{"X-Robots-Tag": {fill("a,", 8<<10), "noindex"}}, false},
		"Robots-Tag within the limit":          {http.Header{"Robots-Tag": {fill("aaaa,", 8000) + "*;noindex," + fill("bbbb,", 8000) + "b"}}, true},
		"Robots-Tag cut off in the rule":       {http.Header{"Robots-Tag": {fill("aaaa,", 8185) + "*;noindex;a,b"}}, false},
		"Robots-Tag cut off in another member": {http.Header{"Robots-Tag": {"*;noindex," + fill("b", 9000)}}, true},
		"Robots-Tag with a comma in a string":  {http.Header{"Robots-Tag": {`*;noindex,*;a="` + fill(`,\"`, 9000) + `"`}}, true},
		"Robots-Tag without a comma":           {http.Header{"Robots-Tag": {"*;noindex;a" + fill("b", 9000)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := robotstags.FromHeader(test.h).NoIndex(); got != test.want {
				t.Errorf("noindex = %v, want %v", got, test.want)
			}
		})
	}
	page := `<meta name=robots content="` + fill("a,", 9000) + `noindex"><meta name=robots content=nofollow>`
	if tags := robotstags.FromHTML([]byte(page)); tags.NoIndex() || tags.NoFollow() || len(tags) != 1 {
		t.Errorf("got %v after 9,000 bytes", tags)
	}
	start := time.Now()
	many := make([]string, 0, 4000)
	for i := range 4000 {
		many = append(many, fmt.Sprintf("x%d", i))
	}
	tags := robotstags.FromHeader(http.Header{"X-Robots-Tag": {strings.Join(many, ",")}})
	if len(tags) < 1000 || len(tags) > 2000 || time.Since(start) > 10*time.Second {
		t.Errorf("%d rules after %v", len(tags), time.Since(start))
	}
}

func TestJSON(t *testing.T) {
	tags := robotstags.FromHeader(http.Header{"X-Robots-Tag": {"examplebot: max-snippet: 20, noindex"}}, "examplebot")
	encoded, err := json.Marshal(tags)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"max-snippet","value":"20","bot":"examplebot","source":"x-robots-tag"},{"name":"noindex","bot":"examplebot","source":"x-robots-tag"}]`
	if string(encoded) != want {
		t.Errorf("got %s", encoded)
	}
	var back robotstags.Tags
	if err := json.Unmarshal(encoded, &back); err != nil || !slices.Equal(back, tags) {
		t.Errorf("got %v, %v", back, err)
	}
}

func FuzzFromHeader(f *testing.F) {
	for _, test := range headers {
		f.Add(strings.Join(test.x, "\n"), strings.Join(test.sf, "\n"))
	}
	f.Fuzz(func(t *testing.T, x, sf string) {
		h := http.Header{"X-Robots-Tag": strings.Split(x, "\n"), "Robots-Tag": strings.Split(sf, "\n")}
		tags := robotstags.FromHeader(h, bots...)
		tags.UnavailableAfter()
		seen := make(map[robotstags.Rule]bool)
		for _, r := range tags {
			name := string(r.Name)
			if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, ",;: \t") || seen[r] {
				t.Errorf("rule %+v", r)
			}
			if r.Bot != "" && r.Bot != "examplebot" && r.Bot != "examplebot-news" {
				t.Errorf("rule for another crawler: %+v", r)
			}
			seen[r] = true
		}
		// Rules in the line of another crawler change nothing.
		h["X-Robots-Tag"] = append([]string{"otherbot: noindex"}, h["X-Robots-Tag"]...)
		if len(x) < 1000 && len(sf) < 1000 && text(robotstags.FromHeader(h, bots...)) != text(tags) {
			t.Error("a line for another crawler has an effect")
		}
	})
}

func FuzzFromHTML(f *testing.F) {
	for _, test := range pages {
		f.Add([]byte(test.page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		for _, r := range robotstags.FromHTML(page, bots...) {
			if r.Name == "" || r.Source != robotstags.SourceMeta {
				t.Errorf("rule %+v", r)
			}
		}
	})
}
