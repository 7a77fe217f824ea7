package dialect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A reading is a fact about some dialects, shown by a file and by what it allows and denies.
type reading struct {
	fact     string
	dialects string // the names of the dialects, separated by spaces
	file     string // with | instead of line feeds
	agent    string // the name of the crawler
	allow    string // targets that are allowed, separated by spaces
	deny     string // targets that are denied, separated by spaces
}

// Dialects that share facts.
const (
	all     = "rfc9309 google coccoc original1994 yandex seznam"
	modern  = "rfc9309 google coccoc yandex seznam"
	encoded = "rfc9309 coccoc yandex seznam"
)

var readings = []reading{
	// Lines.
	{"the case of keys is ignored", all, "USER-agent: *|dISALLOW: /a", "x", "/b", "/a"},
	{"blanks around keys and values are ignored", all, " \tUser-agent \t: * \t|\tDisallow\t:\t/a \t", "x", "/b", "/a"},
	{"no blank is needed after the colon", all, "User-agent:*|Disallow:/a", "x", "/b", "/a"},
	{"the last line needs no line end", all, "User-agent: *|Disallow: /a", "x", "/b", "/a /aa"},
	{"a comment ends a line", all, "User-agent: * # all|Disallow: /a#b|# Disallow: /c|Disallow: # /d", "x", "/b /c /d", "/a /ac"},
	{"a value keeps its inner blanks", modern, "User-agent: *|Disallow: /a b", "x", "/a /ab", ""},
	{"a value keeps later colons", all, "User-agent: *|Disallow: /a:b", "x", "/a", "/a:b"},
	{"malformed lines are ignored", all, "hello|User-agent: *|:|%%%|<b>|Disallow: /a|:x", "x", "/b", "/a"},
	{"CR ends a line", all, "User-agent: *\rDisallow: /a\rDisallow: /b\r", "x", "/c", "/a /b"},
	{"a byte order mark at the start is skipped", all, "\xEF\xBB\xBFUser-agent: *|Disallow: /a", "x", "/b", "/a"},
	{"a partial byte order mark is skipped", "google", "\xEF\xBBUser-agent: *|Disallow: /a", "x", "/b", "/a"},
	{"a partial byte order mark is part of the first line", "rfc9309 coccoc original1994 yandex seznam", "\xEF\xBBUser-agent: *|Disallow: /a", "x", "/a /b", ""},
	{"a second byte order mark is part of the first line", all, "\xEF\xBB\xBF\xEF\xBB\xBFUser-agent: *|Disallow: /a", "x", "/a", ""},
	{"a NUL ends a line", "google", "User-agent: *|Disallow: /a\x00b", "x", "/b", "/a /ac"},
	{"a NUL at the end of a line is not part of it", "google", "User-agent: *\x00|Disallow: /a\x00", "x", "/b", "/a /ab"},
	{"a NUL is an ordinary byte", encoded, "User-agent: *|Disallow: /a\x00b", "x", "/a /ac", "/a%00b"},
	{"keys are recognized by their beginning", "google", "User-agents: *|Disallowed: /a|Allow-this: /a/b", "x", "/a/b", "/a"},
	{"keys are compared whole", encoded, "User-agent: *|Disallowed: /a|Disallow: /c|Allowed: /c/d|User-agents: y", "x", "/a", "/c /c/d"},
	{"common typos are accepted", "google", "Useragent: *|Disalow: /a|Dissallow: /b|dissalow: /c|diasllow: /d|disallaw: /e", "x", "/f", "/a /b /c /d /e"},
	{"other typos are not accepted", "google", "User-agent: *|Desallow: /a|Dis allow: /b|alow: /c", "x", "/a /b /c", ""},
	{"lines with typos are ignored", "rfc9309 coccoc original1994 yandex seznam", "User-agent: *|Disalow: /a|Dissallow: /b|Disallow /c", "x", "/a /b /c", ""},
	{"a line of two words needs no colon", "google", "User-agent\t*|Disallow /a|Disallow /b c", "x", "/b", "/a"},

	// Groups.
	{"a rule before any User-agent line is ignored", all, "Disallow: /a|User-agent: *|Disallow: /b", "x", "/a", "/b"},
	{"adjacent User-agent lines name the same group", all, "User-agent: a|User-agent: b|Disallow: /a", "b", "/b", "/a"},
	{"a rule ends a run of User-agent lines", all, "User-agent: a|Disallow: /a|User-agent: b|Disallow: /b", "a", "/b", "/a"},
	{"an empty rule ends a run of User-agent lines", modern, "User-agent: a|Disallow:|User-agent: b|Disallow: /b", "a", "/b", ""},
	{"a pattern without a slash ends a run of User-agent lines", modern, "User-agent: a|Disallow: x|User-agent: b|Disallow: /b", "a", "/b", ""},
	{"an empty line does not end a group", "rfc9309 google coccoc yandex", "User-agent: a||Disallow: /a||Disallow: /b", "a", "/c", "/a /b"},
	{"a blank line ends a record", "original1994 seznam", "User-agent: a|Disallow: /a| \t|Disallow: /b", "a", "/b", "/a"},
	{"a line with only a comment does not end a record", "original1994 seznam", "User-agent: a|#|Disallow: /a| # x|Disallow: /b", "a", "/c", "/a /b"},
	{"a record without a Disallow line is ignored", "original1994", "User-agent: a|Allow: /||User-agent: *|Disallow: /b", "a", "/a", "/b"},
	{"a group may have no rules", "rfc9309 google coccoc yandex", "User-agent: *|Disallow: /|User-agent: a", "a", "/b", ""},
	{"a Sitemap line does not end a run of User-agent lines", "rfc9309 google coccoc original1994 seznam", "User-agent: a|Sitemap: https://example.com/|User-agent: b|Disallow: /a", "a", "/b", "/a"},
	{"a Crawl-delay line does not end a run of User-agent lines", "rfc9309 google original1994", "User-agent: a|Crawl-delay: 1|User-agent: b|Disallow: /a", "a", "/b", "/a"},
	{"a Crawl-delay line ends a run of User-agent lines", "coccoc seznam", "User-agent: a|Crawl-delay: x|User-agent: b|Disallow: /a", "a", "/a", ""},
	{"groups with the same name are combined", all, "User-agent: a|Disallow: /a||User-agent: b|Disallow: /b||User-agent: A|Disallow: /c", "a", "/b", "/a /c"},
	{"groups of * are combined", all, "User-agent: *|Disallow: /a||User-agent: b|Disallow: /b||User-agent: *|Disallow: /c", "a", "/b", "/a /c"},
	{"a crawler with its own group does not use the group of *", all, "User-agent: *|Disallow: /a||User-agent: x|Disallow: /b", "x", "/a", "/b"},
	{"the group of * is not used if no rule of the crawler's own group matches", all, "User-agent: x|Disallow: /b||User-agent: *|Disallow: /", "x", "/a", "/b"},
	{"a file without a group for the crawler restricts nothing", all, "User-agent: y|Disallow: /", "x", "/a", ""},
	{"the case of names is ignored", all, "User-agent: FOObot|Disallow: /a", "fooBOT", "/b", "/a"},
	{"only the case of ASCII letters is ignored", all, "User-agent: \u212Abot|Disallow: /a", "kbot", "/a", ""},

	// Names.
	{"names are compared whole", "rfc9309 google yandex", "User-agent: foo|Disallow: /a|User-agent: foobot-news|Disallow: /b|User-agent: *|Disallow: /c", "foobot", "/a /b", "/c"},
	{"a parent of the crawler's name matches", "coccoc", "User-agent: foo|Disallow: /a|User-agent: *|Disallow: /b", "foo-bar-baz", "/b", "/a"},
	{"the longest parent of the crawler's name is used", "coccoc", "User-agent: foo|Disallow: /a|User-agent: foo-bar|Disallow: /b", "foo-bar-baz", "/a", "/b"},
	{"a part of a name that does not end before a hyphen is not a parent", "coccoc", "User-agent: foob|Disallow: /a|User-agent: foobot-web|Disallow: /b", "foobot", "/a /b", ""},
	{"a part of the crawler's name matches", "original1994 seznam", "User-agent: oob|Disallow: /a", "FooBot", "/b", "/a"},
	{"all groups with a part of the crawler's name are combined", "original1994 seznam", "User-agent: foo|Disallow: /a||User-agent: bot|Disallow: /b||User-agent: *|Disallow: /c", "FooBot", "/c", "/a /b"},
	{"a line may have several names", "original1994 seznam", "User-agent: a-bot b-bot\tc-bot|Disallow: /a", "c-bot", "/b", "/a"},
	{"one of several names on a line may be *", "original1994 seznam", "User-agent: a-bot *|Disallow: /a", "zed", "/b", "/a"},
	{"versions of names are ignored", "original1994 yandex seznam", "User-agent: foobot/1.0|Disallow: /a", "FooBot/2.0", "/b", "/a"},
	{"a name ends before the first byte that is not part of a token", "google", "User-agent: foobot/1.0 (x)|Disallow: /a", "FooBot", "/b", "/a"},
	{"a name with a version matches no crawler", "rfc9309 coccoc", "User-agent: foobot/1.0|Disallow: /a", "FooBot", "/a", ""},
	{"a name with a version opens a group", modern, "User-agent: x|Disallow: /b|User-agent: foobot/1.0|Disallow: /a", "x", "/a", "/b"},
	{"a name ends before the first digit", "google", "User-agent: MJ12bot|Disallow: /a|User-agent: *|Disallow: /b", "MJ12bot", "/a", "/b"},
	{"digits and dots are part of a name", "rfc9309 coccoc original1994 yandex seznam", "User-agent: MJ12.bot|Disallow: /a||User-agent: *|Disallow: /b", "MJ12.bot", "/b", "/a"},
	{"* followed by other words means *", "google", "User-agent: * x|Disallow: /a", "y", "/b", "/a"},
	{"* followed by other words matches no crawler", "rfc9309 coccoc yandex", "User-agent: * x|Disallow: /a", "y", "/a", ""},
	{"*x matches no crawler", modern, "User-agent: *x|Disallow: /a", "x", "/a", ""},

	// Rules.
	{"a pattern matches every path that begins with it", all, "User-agent: *|Disallow: /fish", "x", "/Fish /catfish /?id=fish /fis", "/fish /fish.html /fish/salmon /fish?id=1"},
	{"a pattern that ends with a slash does not match the path without it", all, "User-agent: *|Disallow: /fish/", "x", "/fish /fish.html", "/fish/ /fish/a"},
	{"the longest pattern wins", modern, "User-agent: *|Disallow: /a|Allow: /a/b|Disallow: /a/b/c", "x", "/a/b /a/bx", "/a /a/b/c"},
	{"the order does not matter", modern, "User-agent: *|Disallow: /a/b/c|Allow: /a/b|Disallow: /a", "x", "/a/b /a/bx", "/a /a/b/c"},
	{"Allow wins a tie", modern, "User-agent: *|Disallow: /a|Allow: /a|Allow: /b|Disallow: /b", "x", "/a /b", ""},
	{"any matching Disallow wins", "original1994", "User-agent: *|Disallow: /a|Disallow: /a/b|Allow: /a/b/c", "x", "/b", "/a /a/b /a/b/c"},
	{"an empty Disallow restricts nothing", all, "User-agent: x|Disallow:|User-agent: *|Disallow: /", "x", "/ /a", ""},
	{"an empty rule does not override other rules", modern, "User-agent: *|Disallow:|Allow:|Disallow: /a", "x", "/b", "/a"},
	{"an empty Allow does not override a Disallow", all, "User-agent: *|Disallow: /|Allow:", "x", "", "/ /a"},
	{"a pattern without a slash never matches", all, "User-agent: *|Disallow: a|Disallow: fish/|Disallow: %2Fa", "x", "/a /fish/", ""},
	{"a pattern may start with *", modern, "User-agent: *|Disallow: *.gif", "x", "/a", "/a.gif /b/c.gif?d"},
	{"* matches any bytes", modern, "User-agent: *|Disallow: /a*b*c", "x", "/a /ab /acb /xabc", "/abc /axbxc /abcd /a/b/c"},
	{"a * at the end only makes the pattern longer", "rfc9309 google coccoc seznam", "User-agent: *|Allow: /fish|Disallow: /fish*", "x", "/fis", "/fish /fishes"},
	{"several * match the same as one", modern, "User-agent: *|Disallow: /a**b|Disallow: /**$", "x", "", "/ab /axb /c"},
	{"a $ at the end of a pattern matches the end of the path", modern, "User-agent: *|Disallow: /*.php$|Disallow: /b$", "x", "/a.php5 /a.php? /bc", "/a.php /b /a.php.php"},
	{"*$ matches any end", modern, "User-agent: *|Disallow: /a*$", "x", "/b", "/a /ab"},
	{"a $ that is not at the end stands for itself", modern, "User-agent: *|Disallow: /a$b|Disallow: /*c$d", "x", "/a /ab /c", "/a$b /a$bc /xc$d"},
	{"* and $ stand for themselves", "original1994", "User-agent: *|Disallow: /*.gif|Disallow: /a$", "x", "/b.gif /a", "/*.gif /a$ /a$b"},
	{"a wildcard counts as a byte of the pattern", "rfc9309 google coccoc seznam", "User-agent: *|Allow: /page|Disallow: /*.htm", "x", "/page.txt", "/page.htm"},
	{"the bytes that a wildcard matches do not count", modern, "User-agent: *|Allow: /abcdef|Disallow: /*f", "x", "/abcdef", "/xf"},
	{"an escaped * counts as three bytes, and each wildcard as one", "rfc9309", "User-agent: *|Disallow: /a%2A|Allow: /a**", "x", "/a /ab", "/a* /a%2ab"},
	{"a reserved byte in the query counts like its escape", "rfc9309", "User-agent: *|Allow: /a?b=:|Disallow: /a?b=*x", "x", "/a?b=:x /a?b=%3Ax", "/a?b=x"},
	{"a $ counts as a byte of the pattern", modern, "User-agent: *|Allow: /$|Disallow: /", "x", "/", "/a /?"},
	{"/robots.txt is always allowed", "rfc9309", "User-agent: *|Disallow: /", "x", "/robots.txt /robots%2Etxt", "/robots.txt? /robots.txt/ /a/robots.txt"},
	{"/robots.txt is not special", "google coccoc original1994 yandex seznam", "User-agent: *|Disallow: /", "x", "", "/robots.txt"},
	{"an Allow for an index file also allows its directory", "google", "User-agent: *|Disallow: /|Allow: /a/index.html|Allow: /b/index.htm5", "x", "/a/ /a/index.html /b/", "/ /a /a/b /c/"},
	{"an Allow for an index file does not allow its directory", encoded, "User-agent: *|Disallow: /|Allow: /a/index.html", "x", "/a/index.html", "/ /a/"},
	{"a Disallow for an index file does not deny its directory", modern, "User-agent: *|Disallow: /a/index.html", "x", "/a/", "/a/index.html"},

	// Encoding.
	{"escapes of unreserved bytes equal these bytes", encoded, "User-agent: *|Disallow: /%7Ejoe|Disallow: /a%2Db", "x", "/joe", "/~joe /%7ejoe /%7Ejo%65 /a-b /a%2db"},
	{"escapes of unreserved bytes do not equal these bytes", "google original1994", "User-agent: *|Disallow: /%7Ejoe", "x", "/~joe", "/%7Ejoe"},
	{"the case of hex digits is ignored", encoded, "User-agent: *|Disallow: /%e3%83%84", "x", "/%E3", "/%E3%83%84 /%e3%83%84 /\u30C4"},
	{"the hex digits of a pattern may have either case", "original1994", "User-agent: *|Disallow: /%e3%83%84", "x", "/%E3 /\u30C4", "/%E3%83%84 /%e3%83%84"},
	{"the hex digits of a pattern are converted to upper case", "google", "User-agent: *|Disallow: /%e3%83%84", "x", "/%e3%83%84", "/%E3%83%84"},
	{"bytes that are not ASCII equal their escapes", encoded, "User-agent: *|Disallow: /\u00E9|Disallow: /\xE9", "x", "/e", "/%C3%A9 /%c3%a9 /\u00E9 /%E9"},
	{"bytes that are not ASCII are escaped in patterns", "google", "User-agent: *|Disallow: /\u00E9", "x", "/\u00E9", "/%C3%A9"},
	{"%2F does not equal a slash in the path", modern, "User-agent: *|Disallow: /a/b|Disallow: /c%2fd", "x", "/a%2Fb /c/d", "/a/b /c%2Fd"},
	{"a pattern is not decoded twice", encoded, "User-agent: *|Disallow: /a%2562", "x", "/ab /a%62", "/a%2562"},
	{"a lone percent sign in a rule also matches %25", all, "User-agent: *|Disallow: /a%zz|Disallow: /b%25c|Disallow: /d%", "x", "/a /azz /b /b%c", "/a%zz /a%25zz /b%25c /d% /d%25"},
	{"a lone percent sign is not the beginning of an escape that the target form adds", "rfc9309 coccoc yandex seznam", "User-agent: *|Disallow: /a%2|Disallow: /b%|Disallow: /?c%7|Disallow: /*/d%2$", "x", "/a$b /a%24b /a* /a%2Ab /b$ /b*c /?c| /?c%7C /x/d$ /x/d*", "/a%2 /a%252 /a%2Fb /b%C3 /b%25 /?c%257 /x/d%252"},
	{"an escaped slash after a wildcard equals a slash in the query, also at the end", "rfc9309 coccoc yandex seznam", "User-agent: *|Disallow: /*%2Fb$", "x", "/x/b /a?x=/bc /a?x=b", "/a?x=/b /a?x=%2Fb /a%2fb /a?/b"},
	{"an escaped slash after a wildcard differs from a slash in the path, also if the end is in the query", "rfc9309 coccoc yandex seznam", "User-agent: *|Disallow: /*%2F?b$", "x", "/x/?b", "/x%2F?b /a?x/?b"},
	{"a lone percent sign next to a wildcard also matches %25", modern, "User-agent: *|Disallow: /*%off$|Disallow: /a*5%*b", "x", "/%2off /5%off5", "/%off /x/5%25off /a/5%b /a/5%25/b"},
	{"a pattern is not decoded twice after a wildcard", encoded, "User-agent: *|Disallow: /*%2%66", "x", "/a?b/c /a/b /a%2Fb", "/a%252f /a?b%252f"},
	{"escaped * and $ are not special", encoded, "User-agent: *|Disallow: /a%2Ab|Disallow: /c%24", "x", "/axb /c", "/a*b /a%2ab /c$ /c%24d"},
	{"a wildcard matches a * in the path", modern, "User-agent: *|Disallow: /a*c", "x", "/a", "/a*c /abc"},
	{"a wildcard does not divide the escapes of * and $, and those of bytes that URLs often have unescaped", encoded, "User-agent: *|Disallow: /*A|Disallow: /*4|Disallow: /*C$|Disallow: /*2", "x", "/%2A /%24 /%7C /%22 /%3C", "/%C3%A9 /%F4 /a%0C /xA"},
	{"a wildcard divides the escapes of * and $", "google", "User-agent: *|Disallow: /*A|Disallow: /*4", "x", "", "/%2A /%24 /%C3%A9"},
	{"a byte that no URI may contain equals its escape", encoded, "User-agent: *|Disallow: /*x\"<>\\^`{}\x7f\x01$", "x", "/x%22", "/x%22%3C%3E%5C%5E%60%7B%7D%7F%01"},
	{"bytes that a URL cannot contain equal their escapes", encoded, "User-agent: *|Disallow: /a b|Disallow: /c<d>", "x", "/ab", "/a%20b /c%3Cd%3e"},
	{"in the query, reserved bytes equal their escapes", encoded, "User-agent: *|Disallow: /a?u=http://b|Disallow: /c?u=%2F%2f[", "x", "/a%3Fu=http://b",
		"/a?u=http://b /a?u=http%3A%2F%2fb /c?u=//[ /c?u=/%2F%5b"},
	{"reserved bytes after a wildcard equal their escapes only in the query", encoded, "User-agent: *|Disallow: /*u=%2Fa|Disallow: /*v=/b$", "x", "/u=/a /v=%2Fb", "/u=%2Fa /x?u=/a /x?u=%2fa /v=/b /x?v=%2Fb"},
	{"in the query, & and = do not equal their escapes", encoded, "User-agent: *|Disallow: /a?b=c", "x", "/a?b%3Dc", "/a?b=c"},
	{"bytes do not equal their escapes", "original1994", "User-agent: *|Disallow: /a b|Disallow: /\u00E9", "x", "/a%20b /%C3%A9", "/a b"},

	// Targets.
	{"a fragment is not matched", all, "User-agent: *|Disallow: /a", "x", "/#/a", "/a#b"},
	{"a $ matches before a fragment", modern, "User-agent: *|Disallow: /a$", "x", "/ab#", "/a#b"},
	{"a missing slash at the beginning is added", all, "User-agent: *|Disallow: /a", "x", "b ?a", "a a?b"},
}

func TestReadings(t *testing.T) {
	for _, r := range slices.Concat(readings, yandexReadings, seznamReadings) {
		for _, name := range strings.Fields(r.dialects) {
			d, _ := dialect.ByName(name)
			t.Run(name+"/"+r.fact, func(t *testing.T) {
				body := strings.ReplaceAll(r.file, "|", "\n")
				r.check(t, d.Parse([]byte(body)).Group(r.agent))
			})
		}
	}
}

func (r reading) check(t *testing.T, group *dialect.Group) {
	t.Helper()
	for list, want := range map[string]bool{r.allow: true, r.deny: false} {
		targets := strings.Fields(list)
		if list == "/a b" {
			targets = []string{list} // one target with a space
		}
		for _, target := range targets {
			if got := group.Decide(target); got.Allowed != want {
				t.Errorf("%q for %s: %q: %+v, want %v", r.file, r.agent, target, got, want)
			}
		}
	}
}

// TestTokens checks that the group of the first token that has one is used.
func TestTokens(t *testing.T) {
	const file = "User-agent: news-bot\nDisallow: /news\nUser-agent: bot\nDisallow: /bot\nUser-agent: *\nDisallow: /all\n"
	for _, test := range []struct {
		d      dialect.Dialect
		tokens string
		name   string
	}{
		{dialect.Google(), "news-bot bot", "news-bot"},
		{dialect.Google(), "img-bot bot", "bot"},
		{dialect.RFC9309(), "img-bot Bot news-bot", "bot"},
		{dialect.RFC9309(), "img-bot", "*"},
		{dialect.RFC9309(), "", "*"},
		{dialect.CocCoc(), "img-bot news-bot-x bot", "news-bot"},
		{dialect.CocCoc(), "bot-x news-bot", "bot"},
		{dialect.Original1994(), "x news-bot", "news-bot"},
	} {
		group := test.d.Parse([]byte(file)).Group(strings.Fields(test.tokens)...)
		if group.Name() != test.name {
			t.Errorf("%s, %s: group %q, want %q", test.d, test.tokens, group.Name(), test.name)
		}
	}
	for _, d := range dialect.All() {
		if g := d.Parse(nil).Group("x"); g == nil || g.Name() != "" || !g.Decide("/").Allowed {
			t.Errorf("%s: the group of an empty file is %+v", d, g)
		}
	}
}

// TestRule checks that a decision has the line and the pattern as it is written.
func TestRule(t *testing.T) {
	const file = "# 1\r\nUser-agent: *\r\n\rDisallow: /%7ea*$ # 4\nAllow: /b**c/index.html\nDisallow:\n"
	for _, test := range []struct {
		d      dialect.Dialect
		target string
		want   dialect.Verdict
	}{
		{dialect.RFC9309(), "/~abc", dialect.Verdict{Rule: dialect.Rule{Pattern: "/%7ea*$", Line: 4}}},
		{dialect.RFC9309(), "/bc/index.html", dialect.Verdict{Allowed: true, Rule: dialect.Rule{Allow: true, Pattern: "/b**c/index.html", Line: 5}}},
		{dialect.Google(), "/bxc/", dialect.Verdict{Allowed: true, Rule: dialect.Rule{Allow: true, Pattern: "/b**c/index.html", Line: 5}}},
		{dialect.RFC9309(), "/bxc/", dialect.Verdict{Allowed: true, Rule: dialect.Rule{Line: 6}}},
		{dialect.RFC9309(), "/robots.txt", dialect.Verdict{Allowed: true}},
	} {
		if got := test.d.Parse([]byte(file)).Group("x").Decide(test.target); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.d, test.target, got, test.want)
		}
	}
}

// TestDelays checks how Crawl-delay values are read.
func TestDelays(t *testing.T) {
	const (
		none    = -1 // there is no delay
		longest = time.Duration(1<<63 - 1)
	)
	for _, test := range []struct {
		value       string
		rfc, coccoc time.Duration
	}{
		{"0", 0, 0}, {"5", 5 * time.Second, 5 * time.Second}, {"007", 7 * time.Second, 7 * time.Second},
		{"10", 10 * time.Second, 10 * time.Second}, {"11", 11 * time.Second, 10 * time.Second}, {"3600", time.Hour, 10 * time.Second},
		{"0.5", 500 * time.Millisecond, time.Second}, {".5", 500 * time.Millisecond, time.Second}, {"2.", 2 * time.Second, 2 * time.Second},
		{"9.001", 9001 * time.Millisecond, 10 * time.Second}, {"0.0000000001", 1, time.Second}, {"0.0000000000", 0, 0},
		{"9223372029", 9223372029 * time.Second, 10 * time.Second}, {"9223372030", 9223372030 * time.Second, 10 * time.Second},
		{"9223372036", 9223372036 * time.Second, 10 * time.Second}, {"9223372036.8", longest - 54775807, 10 * time.Second},
		{"9223372036.854775807", longest, 10 * time.Second}, {"9223372036.854775808", longest, 10 * time.Second},
		{"9223372037", longest, 10 * time.Second}, {"99999999999999999999", longest, 10 * time.Second}, {strings.Repeat("9", 100_000), longest, 10 * time.Second},
		{"-1", none, none}, {"+1", none, none}, {"5s", none, none}, {"1,5", none, none}, {"1e400", none, none}, {"1e1", none, none}, {"NaN", none, none},
		{"Inf", none, none}, {"0x10", none, none}, {"", none, none}, {".", none, none}, {"1.2.3", none, none}, {"5 10", none, none}, {"[5]", none, none},
		{"\u0665", none, none}, {"1_0", none, none},
	} {
		file := []byte("User-agent: x\nCrawl-delay: " + test.value + "\nDisallow: /a\n")
		for _, want := range []struct {
			d     dialect.Dialect
			delay time.Duration
		}{{dialect.RFC9309(), test.rfc}, {dialect.CocCoc(), test.coccoc}, {dialect.Google(), none}, {dialect.Original1994(), none}} {
			group := want.d.Parse(file).Group("x")
			got, ok := group.CrawlDelay()
			if ok != (want.delay >= 0) || got != max(want.delay, 0) {
				t.Errorf("%s: Crawl-delay: %.30s: %v %v, want %v", want.d, test.value, got, ok, want.delay)
			}
			if got, ok := group.WrittenDelay(); ok != (test.rfc >= 0) || got != max(test.rfc, 0) {
				t.Errorf("%s: Crawl-delay: %.30s: written %v %v, want %v", want.d, test.value, got, ok, test.rfc)
			}
		}
	}
}

// TestDelayOfGroup checks that the longest delay of all groups of a crawler is used, wherever it is
// in these groups.
func TestDelayOfGroup(t *testing.T) {
	for _, test := range []struct {
		file string // with | instead of line feeds
		want string
	}{
		{"Crawl-delay: 9|User-agent: x|Crawl-delay: 3|Crawl-delay: 7|Crawl-delay: no", "rfc9309 7s coccoc 7s"},
		{"User-agent: y|Crawl-delay: 4|User-agent: x|Disallow: /", "rfc9309 4s"},
		{"User-agent: y|Crawl-delay: 9|Crawl-delay: 3|User-agent: x|Disallow: /", "rfc9309 9s"},
		{"User-agent: x|Disallow: /a|User-agent: y|Crawl-delay: 4", "none"},
		{"User-agent: x|Crawl-delay: 4|User-agent: *|Crawl-delay: 8|User-agent: x|Disallow: /", "rfc9309 8s coccoc 4s"},
		{"User-agent: *|Crawl-delay: 8|Disallow:|User-agent: x|Disallow:", "none"},
	} {
		var got []string
		for _, d := range dialect.All() {
			if delay, ok := d.Parse([]byte(strings.ReplaceAll(test.file, "|", "\n"))).Group("x").CrawlDelay(); ok {
				got = append(got, fmt.Sprint(d, " ", delay))
			}
		}
		if s := strings.Join(got, " "); s != test.want && (s != "" || test.want != "none") {
			t.Errorf("%s: %s, want %s", test.file, s, test.want)
		}
	}
}

func TestSitemaps(t *testing.T) {
	const file = "Sitemap: https://a.example/1\nUser-agent: x\nSITEMAP:/2\nDisallow: /\nSitemap:\nSite-map: ftp://b.example/\u30C4 # 3\nsitemap: javascript:4\nSitemap: https:///5\n"
	for d, want := range map[dialect.Dialect]string{
		dialect.RFC9309():      "https://a.example/1 /2 javascript:4 https:///5",
		dialect.Google():       "https://a.example/1 ftp://b.example/\u30C4",
		dialect.CocCoc():       "https://a.example/1 /2 javascript:4 https:///5",
		dialect.Original1994(): "",
		dialect.Temoto():       "https://a.example/1 /2 javascript:4 https:///5",
		dialect.Yandex():       "https://a.example/1",
		dialect.Seznam():       "https://a.example/1 /2 javascript:4 https:///5",
	} {
		if got := strings.Join(d.Parse([]byte(file)).Sitemaps(), " "); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestSizeLimit checks that Parse ignores everything after 500 KiB and drops a line that is cut
// there.
func TestSizeLimit(t *testing.T) {
	const (
		head = "User-agent: *\n"
		rule = "Disallow: /private\n"
	)
	fill := func(n int) string { return strings.Repeat("#", n-1) + "\n" }
	for _, test := range []struct {
		tail string // the last bytes before the limit
		more string // the bytes after the limit
		deny string // the target that is denied, if any
	}{
		{rule, "", "/private"},
		{rule, "Disallow: /x\n", "/private"},
		{strings.TrimSpace(rule), "\n", "/private"},
		{strings.TrimSpace(rule), "\r\n", "/private"},
		{strings.TrimSpace(rule), "/more\n", ""},
		{strings.TrimSpace(rule), " # comment\n", ""},
		{strings.TrimSpace(rule) + " # com", "ment\n", "/private"},
		{"Disallow: /priv", "ate\n", ""},
	} {
		body := head + fill(dialect.SizeLimit-len(head)-len(test.tail)) + test.tail
		if len(body) != dialect.SizeLimit {
			t.Fatal(len(body))
		}
		for _, d := range published {
			deny := test.deny
			if d == dialect.Yandex() && test.more != "" {
				deny = "" // a file that is too large restricts nothing
			}
			group := d.Parse([]byte(body + test.more)).Group("x")
			for _, target := range []string{"/private", "/priv", "/x"} {
				if got := group.Decide(target).Allowed; got != (target != deny) {
					t.Errorf("%s: %q then %q: %s allowed %v", d, test.tail, test.more, target, got)
				}
			}
		}
	}
}

// TestGoogleLineLimit checks that Google reads 16,663 bytes of a line.
func TestGoogleLineLimit(t *testing.T) {
	path := "/" + strings.Repeat("a", 16663-len("Disallow: /"))
	file := []byte("User-agent: *\nDisallow: " + path + "bc\n")
	for d, denied := range map[dialect.Dialect]string{
		dialect.Google():  path,
		dialect.RFC9309(): path + "bc",
	} {
		group := d.Parse(file).Group("x")
		if group.Decide(denied).Allowed || !group.Decide(denied[:len(denied)-1]).Allowed {
			t.Errorf("%s: the pattern is not %d bytes long", d, len(denied))
		}
	}
}

// TestReuse checks that the caller can overwrite a file as soon as Parse returns.
func TestReuse(t *testing.T) {
	for _, d := range dialect.All() {
		body := []byte("User-agent: *\nDisallow: /private\nSitemap: https://example.com/s.xml\n")
		rules := d.Parse(body)
		clear(body)
		group := rules.Group("x")
		if group.Decide("/private").Allowed || group.Name() != "*" {
			t.Errorf("%s: the rules have changed together with the file", d)
		}
	}
}

// TestSitemapBlanks checks that white space around a Sitemap value is removed even if it is not
// ASCII.
func TestSitemapBlanks(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc(), dialect.Temoto()} {
		file := "Sitemap:\u00a0https://example.com/a.xml\nSitemap: \u00a0\nSitemap: \u2003https://example.com/b.xml\u00a0 # c\n"
		got := fmt.Sprint(d.Parse([]byte(file)).Sitemaps())
		if want := "[https://example.com/a.xml https://example.com/b.xml]"; got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
