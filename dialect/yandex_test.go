package dialect_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// The pages of Yandex's webmaster help that the facts below come from. "program" is
// library/cpp/robots_txt in the source of YDB.
const (
	userAgentPage = "User-agent: "
	rulesPage     = "Disallow and Allow: "
	errorsPage    = "Robots.txt parsing errors: "
	usingPage     = "Using robots.txt: "
	yandexProgram = "program: "
)

// yandexReadings are facts about Yandex. The readings that it shares with other dialects are in
// readings.
var yandexReadings = []reading{
	// Groups and names.
	{userAgentPage + "Yandex names every Yandex robot", "yandex", "User-agent: Yandex|Disallow: /a", "YandexBot", "/b", "/a"},
	{userAgentPage + "the case of Yandex is ignored", "yandex", "User-agent: yANDEX|Disallow: /a", "YandexImages", "/b", "/a"},
	{userAgentPage + "the group of * is not used if there is one of Yandex", "yandex", "User-agent: *|Disallow: /||User-agent: Yandex|Disallow: /a", "YandexBot", "/b", "/a"},
	{userAgentPage + "the group of a robot is used instead of that of Yandex", "yandex", "User-agent: YandexBot|Disallow: /*id=||User-agent: Yandex|Disallow: /*sid=", "YandexBot", "/x", "/?id=1 /?sid=1"},
	{userAgentPage + "the group of another robot is not used", "yandex", "User-agent: YandexBot|Disallow: /a||User-agent: Yandex|Disallow: /b||User-agent: *|Disallow: /c", "YandexImages", "/a /c", "/b"},
	{userAgentPage + "the order of the groups does not matter", "yandex", "User-agent: *|Disallow: /c||User-agent: Yandex|Disallow: /b||User-agent: YandexBot|Disallow: /a", "YandexBot", "/b /c", "/a"},
	{userAgentPage + "the group of * is used if there is no other", "yandex", "User-agent: *|Disallow: /a||User-agent: Googlebot|Disallow: /b", "YandexBot", "/b", "/a"},
	{userAgentPage + "without a group of Yandex and of * nothing is restricted", "yandex", "User-agent: Googlebot|Disallow: /", "YandexBot", "/ /a", ""},
	{userAgentPage + "a crawler of another name does not use the group of Yandex", "yandex", "User-agent: Yandex|Disallow: /a||User-agent: *|Disallow: /b", "ExampleBot", "/a", "/b"},
	{userAgentPage + "a crawler of another name has its own group", "yandex", "User-agent: ExampleBot|Disallow: /a||User-agent: *|Disallow: /b", "ExampleBot", "/b", "/a"},
	{userAgentPage + "everything after # is ignored", "yandex", "User-agent: YandexBot # the main robot|Disallow: /a # x", "YandexBot", "/b", "/a"},
	{yandexProgram + "a value with a version names the robot", "yandex", "User-agent: YandexBot/3.0|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "the version of the robot is ignored", "yandex", "User-agent: YandexBot|Disallow: /a", "YandexBot/3.0", "/b", "/a"},
	{yandexProgram + "a longer beginning of the name is more specific", "yandex", "User-agent: YandexIm|Disallow: /a||User-agent: Yandex|Disallow: /b", "YandexImages", "/b", "/a"},
	{yandexProgram + "a beginning that is shorter than Yandex names no robot", "yandex", "User-agent: Yan|Disallow: /a", "YandexBot", "/a", ""},
	{yandexProgram + "a value that continues after the name names no robot", "yandex", "User-agent: YandexBotNews|Disallow: /a", "YandexBot", "/a", ""},
	{yandexProgram + "a value that contains Yandex elsewhere names no robot", "yandex", "User-agent: The Yandex|Disallow: /a", "YandexBot", "/a", ""},
	{yandexProgram + "groups with the same name are combined", "yandex", "User-agent: Yandex|Disallow: /a||User-agent: Yandex|Disallow: /b", "YandexBot", "/c", "/a /b"},
	{errorsPage + "a second group of * is an error; program: both are combined", "yandex", "User-agent: *|Disallow: /a||User-agent: *|Disallow: /b", "YandexBot", "/c", "/a /b"},
	{userAgentPage + "a blank line before a User-agent line begins another group", "yandex", "User-agent: YandexBot||User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{userAgentPage + "adjacent User-agent lines share their rules", "yandex", "User-agent: YandexBot|User-agent: Googlebot|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "a line with only a comment ends a run of User-agent lines", "yandex", "User-agent: YandexBot|# x|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a comment after a User-agent line ends no run", "yandex", "User-agent: YandexBot # x|User-agent: Googlebot|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "a line with an unknown key ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Noindex: /b|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a Sitemap ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Sitemap: https://example.com/s.xml|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a Sitemap that is ignored ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Sitemap: /s.xml|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a Clean-param ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Clean-param: a|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a rule that matches no URL ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Disallow: a|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{yandexProgram + "a line without a colon ends no run", "yandex", "User-agent: YandexBot|noise # a: b|User-agent: Googlebot|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "such lines end no group", "yandex", "User-agent: YandexBot|# x|Noindex: /b|Sitemap: /s.xml|Clean-param: a|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "a line of white space ends a run of User-agent lines", "yandex", "User-agent: YandexBot| \t|User-agent: Googlebot|Disallow: /", "YandexBot", "/a", ""},
	{rulesPage + "an empty line between rules is an error; program: the group continues", "yandex", "User-agent: Yandex||Disallow: /a||Disallow: /b", "YandexBot", "/c", "/a /b"},
	{errorsPage + "a rule before any User-agent line is ignored", "yandex", "Disallow: /a|User-agent: Yandex|Disallow: /b", "YandexBot", "/a", "/b"},

	// Rules.
	{rulesPage + "Disallow: / prohibits the whole site", "yandex", "User-agent: Yandex|Disallow: /", "YandexBot", "", "/ /a /robots.txt"},
	{rulesPage + "a rule prohibits the addresses that begin with it", "yandex", "User-agent: Yandex|Disallow: /catalogue", "YandexBot", "/cat", "/catalogue /catalogue1 /catalogue/a"},
	{rulesPage + "a rule may contain a question mark", "yandex", "User-agent: Yandex|Disallow: /page?", "YandexBot", "/page", "/page? /page?a=1"},
	{rulesPage + "Allow is an exception from a shorter Disallow", "yandex", "User-agent: Yandex|Allow: /cgi-bin|Disallow: /", "YandexBot", "/cgi-bin /cgi-bin/a", "/ /a"},
	{rulesPage + "Allow alone permits what is permitted anyway", "yandex", "User-agent: Yandex|Allow: /file.xml", "YandexBot", "/file.xml /a", ""},
	{rulesPage + "the rules are sorted by length", "yandex", "User-agent: Yandex|Allow: /|Allow: /catalog/auto|Disallow: /catalog", "YandexBot", "/ /catalog/auto /catalog/auto1", "/catalog /catalog/b"},
	{rulesPage + "Allow wins over a Disallow of the same length", "yandex", "User-agent: Yandex|Disallow: /a|Allow: /a", "YandexBot", "/a", ""},
	{rulesPage + "an empty Disallow is the same as Allow: /", "yandex", "User-agent: Yandex|Disallow:|Disallow: /|Disallow: /a", "YandexBot", "/ /b", "/a"},
	{rulesPage + "an empty Allow is ignored", "yandex", "User-agent: Yandex|Allow:|Disallow: /", "YandexBot", "", "/ /a"},
	{rulesPage + "* is any sequence of characters", "yandex", "User-agent: Yandex|Disallow: /cgi-bin/*.aspx|Disallow: /*private", "YandexBot", "/cgi-bin/a.asp", "/cgi-bin/example.aspx /cgi-bin/private/test.aspx /private /cgi-bin/private"},
	{rulesPage + "a * is appended to each rule", "yandex", "User-agent: Yandex|Disallow: /cgi-bin*|Disallow: /b", "YandexBot", "/c", "/cgi-bin /cgi-binx /b /bc"},
	{rulesPage + "$ at the end cancels the appended *", "yandex", "User-agent: Yandex|Disallow: /example$", "YandexBot", "/example.html /example/", "/example"},
	{rulesPage + "$ does not cancel a * before it", "yandex", "User-agent: Yandex|Disallow: /example*$", "YandexBot", "/exampl", "/example /example.html"},
	{errorsPage + "a rule that does not begin with / or * is an error", "yandex", "User-agent: Yandex|Disallow: admin|Allow: admin/a|Disallow: *.pdf", "YandexBot", "/admin", "/a.pdf"},
	{yandexProgram + "wildcards do not count", "yandex", "User-agent: Yandex|Allow: /ab|Disallow: /a*b", "YandexBot", "/ab /abb", "/aXb"},
	{yandexProgram + "the anchor does not count", "yandex", "User-agent: Yandex|Allow: /ab|Disallow: /ab$", "YandexBot", "/ab /abc", ""},
	{yandexProgram + "a * at the end does not count", "yandex", "User-agent: Yandex|Allow: /ab|Disallow: /ab*", "YandexBot", "/ab /abc", ""},
	{yandexProgram + "* is as long as /", "yandex", "User-agent: Yandex|Disallow: /|Allow: *", "YandexBot", "/ /a", ""},
	{rulesPage + "pages with Cyrillic names are written with escapes", "yandex", "User-agent: Yandex|Disallow: /%D0%BA%D0%BE%D1%80%D0%B7%D0%B8%D0%BD%D0%B0", "YandexBot", "/%D0%BA", "/%d0%ba%d0%be%d1%80%d0%b7%d0%b8%d0%bd%d0%b0"},
	{yandexProgram + "/robots.txt is not special", "yandex", "User-agent: *|Disallow: /", "YandexBot", "", "/robots.txt"},
	{yandexProgram + "unknown lines are ignored", "yandex", "User-agent: Yandex|Host: example.com|Noindex: /b|Disallow: /a", "YandexBot", "/b", "/a"},
	{yandexProgram + "a line without a colon is ignored", "yandex", "User-agent: Yandex|Disallow /b|Disallow: /a", "YandexBot", "/b", "/a"},

	// Limits.
	{errorsPage + "a rule of 1,024 characters is obeyed", "yandex", "User-agent: Yandex|Disallow: /" + strings.Repeat("a", 1023), "YandexBot", "/a", "/" + strings.Repeat("a", 1023)},
	{errorsPage + "a longer rule is an error", "yandex", "User-agent: Yandex|Disallow: /" + strings.Repeat("a", 1024), "YandexBot", "/" + strings.Repeat("a", 1024), ""},
	{errorsPage + "the length is counted in characters", "yandex", "User-agent: Yandex|Disallow: /" + strings.Repeat("\u0430", 1023), "YandexBot", "/a", "/" + strings.Repeat("%D0%B0", 1023)},
	{errorsPage + "2,048 rules are obeyed", "yandex", "User-agent: Yandex|" + strings.Repeat("Disallow: /a|", 2048), "YandexBot", "/b", "/a"},
	{errorsPage + "a file with more rules restricts nothing", "yandex", "User-agent: Yandex|" + strings.Repeat("Disallow: /a|", 2049), "YandexBot", "/a /b", ""},
	{errorsPage + "the rules of all groups count", "yandex", "User-agent: Yandex|Disallow: /a||User-agent: *|" + strings.Repeat("Allow: /b|", 2048), "YandexBot", "/a", ""},
	{usingPage + "a file of more than 500 KiB restricts nothing", "yandex", "User-agent: Yandex|Disallow: /a|#" + strings.Repeat("a", dialect.SizeLimit), "YandexBot", "/a", ""},
	{yandexProgram + "a Crawl-delay ends a run of User-agent lines", "yandex", "User-agent: YandexBot|Crawl-delay: 5|User-agent: a|Disallow: /a", "YandexBot", "/a", ""},
}

// TestYandexDelay checks that Yandex ignores Crawl-delay and that WrittenDelay still returns it.
func TestYandexDelay(t *testing.T) {
	group := dialect.Yandex().Parse([]byte("User-agent: Yandex\nCrawl-delay: 4.5\n")).Group("YandexBot")
	if d, ok := group.CrawlDelay(); ok {
		t.Errorf("Crawl-delay %v", d)
	}
	if d, _ := group.WrittenDelay(); d.Seconds() != 4.5 {
		t.Errorf("written delay %v, want 4.5s", d)
	}
}

// TestYandexLarge checks that a file that is too large keeps its Sitemap and Clean-param lines and
// restricts nothing.
func TestYandexLarge(t *testing.T) {
	file := "Clean-param: ref\nSitemap: https://a.example/s.xml\nUser-agent: *\n" + strings.Repeat("Disallow: /\n", 3000)
	rules := dialect.Yandex().Parse([]byte(file))
	if rules.Group("x").Name() != "" || len(rules.Sitemaps()) != 1 || len(rules.CleanParams()) != 1 {
		t.Errorf("group %q, sitemaps %q, parameters %v", rules.Group("x").Name(), rules.Sitemaps(), rules.CleanParams())
	}
}

// TestCleanParams checks Clean-param with the facts of its page and, where that is silent, of the
// program.
func TestCleanParams(t *testing.T) {
	const site = "https://example.com"
	for _, test := range []struct{ fact, file, url, want string }{
		{"a parameter is removed under a path", "Clean-param: ref /some_dir/get_book.pl", "/some_dir/get_book.pl?ref=site_2&book_id=123", "/some_dir/get_book.pl?book_id=123"},
		{"the path is a prefix", "Clean-param: ref /some", "/some_dir/a?ref=1", "/some_dir/a"},
		{"another path keeps the parameter", "Clean-param: ref /some_dir", "/other?ref=1&a=2", "/other?ref=1&a=2"},
		{"without a path, all pages are meant", "Clean-param: ref", "/other?ref=1&a=2", "/other?a=2"},
		{"several parameters", "Clean-param: s&ref /forum*/showthread.php", "/forum_new/showthread.php?s=68&t=8243&ref=13", "/forum_new/showthread.php?t=8243"},
		{"* in a path", "Clean-param: sid&sort /forum/*.php", "/forum/a/b.php?sid=1&sort=asc", "/forum/a/b.php"},
		{"* in a path that does not match", "Clean-param: sid /forum/*.php", "/forum/a.html?sid=1", "/forum/a.html?sid=1"},
		{"a * is appended", "Clean-param: sid /index.php", "/index.php/a?sid=1", "/index.php/a"},
		{"several lines", "Clean-param: sid /index.php|Clean-param: sid /main.php", "/main.php?sid=1", "/main.php"},
		{"all lines that match apply", "Clean-param: a|Clean-param: b /x", "/x?b=1&c=2&a=3", "/x?c=2"},
		{"the line may be in any group", "User-agent: Googlebot|Disallow: /|Clean-param: a|User-agent: *|Disallow: /x", "/?a=1", "/"},
		{"the line may be before any group", "Clean-param: a|User-agent: *|Disallow: /x", "/?a=1", "/"},
		{"names are case-sensitive", "Clean-param: Ref", "/?ref=1&Ref=2", "/?ref=1"},
		{"paths are case-sensitive", "Clean-param: ref /A", "/a?ref=1", "/a?ref=1"},
		{"names are compared whole", "Clean-param: ref", "/?refs=1&xref=2&ref=3", "/?refs=1&xref=2"},
		{"a parameter without a value", "Clean-param: ref", "/?ref&a", "/?a"},
		{"a parameter that occurs twice", "Clean-param: ref", "/?ref=1&a=1&ref=2", "/?a=1"},
		{"an escaped name", "Clean-param: a[]", "/?a%5B%5D=1&b=2", "/?b=2"},
		{"the order of the other parameters stays", "Clean-param: m", "/?z=1&m=2&a=3", "/?z=1&a=3"},
		{"the spelling of the other parameters stays", "Clean-param: m", "/?q=a+b%20c&&x=%2f&m=1", "/?q=a+b%20c&&x=%2f"},
		{"a URL without a query stays", "Clean-param: a", "/x", "/x"},
		{"an empty query stays", "Clean-param: a", "/x?", "/x?"},
		{"a value of 500 characters", "Clean-param: " + strings.Repeat("a", 500), "/?" + strings.Repeat("a", 500) + "=1", "/"},
		{"a longer value is ignored", "Clean-param: " + strings.Repeat("a", 501), "/?" + strings.Repeat("a", 501), "/?" + strings.Repeat("a", 501)},
		{"three fields are ignored", "Clean-param: a /b /c", "/b?a=1", "/b?a=1"},
		{"&& is ignored", "Clean-param: a&&b", "/?a=1", "/?a=1"},
		{"the path may have only the characters that the page lists", "Clean-param: a /b?c|Clean-param: a /b$|Clean-param: a /\u00e9|Clean-param: a /b,c", "/b,c?a=1", "/b,c?a=1"},
		{"all characters that the page lists", "Clean-param: a /-_.Zz09*", "/-_.Zz09?a=1", "/-_.Zz09"},
		{"a name may have only the characters of the program", "Clean-param: a$x|Clean-param: a*|Clean-param: a/b|Clean-param: a;b|Clean-param: \u00e9", "/?a$x=1&a=2", "/?a$x=1&a=2"},
		{"all other characters of the program", "Clean-param: +-_[]{}():.", "/?+-_[]{}():.=1", "/"},
		{"a comment ends the line", "Clean-param: a # b", "/?a=1&b=2", "/?b=2"},
		{"the case of the key is ignored", "CLEAN-PARAM:a", "/?a=1", "/"},
		{"a fragment stays", "Clean-param: a", "/?a=1#top", "/#top"},
	} {
		u, err := url.Parse(site + test.url)
		if err != nil {
			t.Fatal(err)
		}
		rules := dialect.Yandex().Parse([]byte(strings.ReplaceAll(test.file, "|", "\n")))
		before := *u
		if got := rules.CleanParams().Clean(u).String(); got != site+test.want {
			t.Errorf("%s: %s, want %s", test.fact, got, site+test.want)
		}
		if *u != before {
			t.Errorf("%s: Clean changed its argument to %s", test.fact, u)
		}
	}
}

// TestCleanParamsOf checks that only Yandex has a Clean-param.
func TestCleanParamsOf(t *testing.T) {
	for _, d := range dialect.All() {
		got := d.Parse([]byte("User-agent: *\nDisallow: /x\nClean-param: a&b /c\n")).CleanParams()
		want := dialect.CleanParams(nil)
		if d == dialect.Yandex() {
			want = dialect.CleanParams{{Names: []string{"a", "b"}, Path: "/c", Line: 3}}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", d, got, want)
		}
	}
}

// FuzzCleanParams checks that Clean is idempotent, that it changes nothing but the query, and that
// it only removes parameters.
func FuzzCleanParams(f *testing.F) {
	f.Add("a&b /x*y", "/x1y?a=1&c=2&b")
	f.Add("* *", "/?*=1&&")
	f.Add("a%20b&c", "/%zz?a+b=1&a%20b&%zz")
	f.Fuzz(func(t *testing.T, value, target string) {
		u, err := url.Parse("https://example.com/" + strings.TrimPrefix(target, "/"))
		if err != nil {
			return
		}
		params := dialect.Yandex().Parse([]byte("Clean-param: " + value + "\n")).CleanParams()
		once := params.Clean(u)
		if twice := params.Clean(once); twice.String() != once.String() {
			t.Fatalf("%q: %s becomes %s, then %s", value, u, once, twice)
		}
		restored := *once
		restored.RawQuery = u.RawQuery
		restored.ForceQuery = u.ForceQuery
		if restored != *u || len(once.RawQuery) > len(u.RawQuery) {
			t.Fatalf("%q: %s becomes %s", value, u, once)
		}
	})
}
