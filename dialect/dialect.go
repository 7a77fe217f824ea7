// Package dialect parses robots.txt and decides which URLs a crawler may request, in the way that a
// particular specification or crawler does. It does no I/O, uses no clock and logs nothing.
//
// # How a file is read
//
// A robots.txt file consists of lines. A line consists of a key, a colon and a value. A # starts a
// comment. A run of User-agent lines opens a group. The Allow and Disallow lines after it are the
// rules of the group. A crawler obeys the group that names it or, if there is none, the group named
// *. If several rules match the path and query of a URL, the most specific rule decides, which is
// the one whose pattern has the most bytes. If two rules are equally specific, Allow wins. If no
// rule matches, the URL is allowed.
//
// The published specifications differ in the details of each of these sentences. A [Dialect]
// implements one of them. [RFC9309] is the base, and the constructors of the other dialects list
// the differences from it.
//
//	rules := dialect.Google().Parse(body)
//	group := rules.Group("ExampleBot")
//	decision := group.Decide(dialect.Target(u))
//
// Parse never fails. It ignores malformed lines, as the specifications demand. [Dialect.Lint]
// reports which lines were ignored and why.
package dialect

import (
	"fmt"

	"github.com/collyrobots/collyrobots/internal/match"
)

// A Dialect is one interpretation of robots.txt. Dialects are comparable with ==. The zero value is
// [RFC9309].
type Dialect struct{ n uint8 }

// The values of Dialect.n, in the order of All. They are indexes into variants.
const (
	rfc9309 = iota
	google
	cocCoc
	original1994
	temoto
	yandex
	seznam
)

// RFC9309 is the Robots Exclusion Protocol as RFC 9309 and its earlier draft specify it. It is the
// base of the other dialects. Where the text leaves a choice, RFC9309 chooses as follows:
//
//   - A User-agent value that is not a product token, such as "Foo/1.0", opens a group that applies
//     to no crawler, because section 2.2.1 compares whole tokens. According to the RFC, a token
//     contains only letters, _ and -. The names of real crawlers also contain digits and dots, as
//     in "MJ12bot" and "archive.org_bot". Such a value is also compared as a whole, so that a
//     crawler with such a name finds its group.
//   - Several * groups are combined, like several groups with the same name (2.2.1). The draft
//     used only the first.
//   - Only allow and disallow lines end a run of User-agent lines. All other lines do not affect
//     it (2.2.4). Misspelt keys are not accepted.
//   - A pattern starts with / (2.2, path-pattern) or with the wildcard *.
//   - The length of a rule (2.2.2) is the number of bytes of the pattern in its encoded form,
//     including wildcards and the anchor. The bytes of the URL that a wildcard matches do not
//     count.
//   - $ is an anchor only if it is the last byte of a pattern. Otherwise it stands for itself.
//   - Bytes that are not ASCII are percent-encoded unchanged, regardless of the encoding of the
//     file. A percent sign in a rule that is not followed by two hex digits matches both itself
//     and %25, which crawlers send for it. It does not match the beginning of %24 or of another
//     escape of a byte that a URL may also contain as it is.
//   - A byte that no URI may contain equals its escape, because a crawler sends the escape (2.2.2;
//     RFC 3986, 2.1): /x| matches /x%7C. These are the space, the control characters including DEL,
//     and " < > \ ^ ` { | }.
//   - The escapes of * and $ stand for these characters (2.2.3), so they are one character, which a
//     wildcard matches as a whole: /*A does not match /%2A. The escapes of " < > \ ^ ` { | } are
//     read alike. All others, except those of unreserved characters, are three characters, as 2.2.2
//     compares them: /*A matches /%C3%A9.
//   - In the query, the characters : / ? [ ] @ equal their escapes, as in the table of 2.2.2. In
//     the path, %2F differs from /.
//   - /robots.txt is always allowed. /robots.txt?x is another URI and not always allowed.
//   - Crawl-delay is one of the "other lines" of 2.2.4. Its value is a decimal number of seconds
//     and holds for the whole group. If a group has several, the longest counts. The only limit is
//     that of time.Duration: any number beyond 292 years means 292 years. A value other than
//     digits with at most one point is ignored.
//   - The file ends after 500 KiB (2.5). A line that is cut there is dropped.
func RFC9309() Dialect { return Dialect{rfc9309} }

// Google is RFC 9309 as Google documents it ("How Google interprets the robots.txt specification")
// and implements it (google/robotstxt). It differs from [RFC9309] as follows:
//
//   - Keys are recognized by their beginning, also with common typos (useragent, user agent,
//     disalow, dissallow, ..., site-map). A line of exactly two words needs no colon.
//   - A line ends after 16,663 bytes or at a NUL. A partial byte order mark is also skipped.
//   - A User-agent value ends before the first byte that is not a letter, _ or -, so that
//     "Googlebot/2.1" means googlebot. "* anything" means *.
//   - In a pattern, the hex digits of escapes are converted to upper case, and bytes that are not
//     ASCII are encoded. Nothing is decoded. Google's matcher leaves the normalization of the URL
//     to its caller: [Target] converts hex digits to upper case, and Decide compares a target
//     unchanged. A percent sign without two hex digits is treated as in RFC9309.
//   - A pattern may start with any character, but it never matches unless it starts with / or *.
//   - /robots.txt is not special.
//   - An Allow for .../index.htm, .html and so on also allows the directory.
//   - Crawl-delay is not supported.
//   - Sitemap values must be absolute URLs. Others are ignored.
func Google() Dialect { return Dialect{google} }

// CocCoc is RFC 9309 as Coc Coc documents it (webmaster help, "Robots.txt"). It differs from
// [RFC9309] as follows:
//
//   - A User-agent value is compared as a whole. Hyphens divide a name into a hierarchy: for
//     coccocbot-web, the groups coccocbot-web, coccocbot and * are tried in this order, and only
//     the first that exists is used ("User-agent"). No robot has the name "coccoc".
//   - Crawl-delay also ends a run of User-agent lines, whatever its value. The example on the page
//     requires this, because empty lines are ignored ("Crawl-delay").
//   - Crawl-delay is a whole number of seconds. A decimal fraction is rounded up, and a number
//     above 10 means 10. If a group has several, the longest counts. Any other value is ignored.
//   - An empty Disallow allows everything but does not override other rules, because it is the
//     least specific ("Disallow and Allow"). An empty Allow is ignored.
//   - A pattern may start with any character, but it never matches unless it starts with / or *.
//   - /robots.txt is not special.
//
// The page does not mention letter case, white space, encoding, size, typos and URLs without a
// path. CocCoc treats these like RFC9309. A User-agent line without rules forms a group.
func CocCoc() Dialect { return Dialect{cocCoc} }

// Original1994 is "A Standard for Robot Exclusion" of 1994 with the note of its Russian translator.
// It differs so much from RFC 9309 that this is a complete description:
//
//   - A record consists of User-agent lines followed by Disallow lines. An empty line or a line of
//     white space ends the record. A line that has only a comment does not. A User-agent line
//     after a Disallow line begins the next record. A record without a Disallow line and a
//     Disallow line outside of a record are ignored.
//   - A User-agent value is cut at a slash and names every robot whose name contains it, ignoring
//     case. A line may have several names, separated by white space (translator's note). All
//     records that name a robot apply to it. The record * applies to robots that no record names.
//   - A URL is denied if any Disallow is a prefix of its path and query. Bytes are compared
//     unchanged, and * and $ stand for themselves. There is one exception: the hex digits of
//     escapes and a percent sign without hex digits also match the form that [Target] returns. An
//     empty Disallow denies nothing.
//   - Allow, Crawl-delay and Sitemap are unknown keys.
//   - /robots.txt is not special. The size limit is that of RFC 9309.
func Original1994() Dialect { return Dialect{original1994} }

// Temoto implements a program instead of a specification: it makes the same decisions as Colly's
// built-in check (Colly v2.3.0 with temoto/robotstxt v1.1.2). With Temoto, an existing spider can
// switch without changing any decision and then compare. Temoto finds a group by a prefix of the
// whole User-Agent header, so pass this header to [Rules.Group] as the only token. Use
// [Group.DecideURL] for decisions, because Colly compares the path as the URL has it and not as
// [Target] returns it. The query is sorted and encoded again before it is matched. If temoto
// refuses a file, Colly fails every Visit of the host, so this dialect then denies everything.
// [Dialect.Lint] reports the reason.
//
// Temoto cannot name the rule that decided, its decisions allocate memory, and the size of a file
// is not limited. A wildcard is matched as a regular expression: a decision takes up to 25 ns for
// each byte of the wildcard patterns in the file, multiplied by the bytes of the path and query of
// the URL. If this would take about a second (33 million pairs of bytes), the URL is denied without
// matching it. That is the only decision that differs from Colly's. Colly ignores Crawl-delay, and
// so does this dialect. WrittenDelay returns 292 years for longer delays.
func Temoto() Dialect { return Dialect{temoto} }

// Yandex is RFC 9309 as Yandex documents it (webmaster help, "User-agent", "Disallow and Allow",
// "Clean-param", "Crawl-delay", "Robots.txt parsing errors"). Where these pages are silent, the
// program that Yandex has published decides (library/cpp/robots_txt of YDB, here "the program").
// Yandex differs from [RFC9309] as follows:
//
//   - The name Yandex and each longer beginning of a crawler's name also names the crawler if its
//     name begins with Yandex: the groups YandexBot, Yandex and * are tried in this order, and only
//     the first that exists is used ("User-agent", the program). Names of other crawlers are
//     compared as a whole. A value is cut at a slash.
//   - A run of User-agent lines ends at every other line with a colon, whatever its key, at a blank
//     line, and at a line that has only a comment (the program; "User-agent": a blank line comes
//     before each User-agent line). Only a line without a colon does not end it. These lines do not
//     end a group: "Disallow and Allow" forbids empty lines there and the list of errors says that
//     they cause an error, but the program accepts them.
//   - Several * groups are an error according to the list of errors. The program combines them.
//   - An empty Disallow is the same as "Allow: /", so it wins over "Disallow: /" ("Directives
//     without parameters"). An empty Allow is ignored.
//   - Wildcards and the anchor do not count when rules are compared, because rules are sorted by
//     the length of their prefix ("Combining directives", the program). If two rules are equally
//     long, Allow wins.
//   - A rule of more than 1,024 characters is ignored. If a file has more than 2,048 Allow and
//     Disallow lines or more than 500 KiB, it restricts nothing ("Robots.txt parsing errors",
//     "Using robots.txt"). The limits of the program are 10,000 rules of 10 KiB.
//   - /robots.txt is not special.
//   - Crawl-delay has not been supported since 22 February 2018 ("Crawl-delay").
//   - Sitemap values must be absolute URLs. Others are ignored ("Robots.txt parsing errors").
//   - Clean-param lists query parameters that do not change a page. See [Rules.CleanParams].
func Yandex() Dialect { return Dialect{yandex} }

// Seznam is the 1994 standard with the extensions that Seznam documents (help, "Crawling control"
// and "Robots.txt"). It differs from [RFC9309] as follows:
//
//   - Groups are records as in [Original1994]: a blank line ends a record, and so does a User-agent
//     line after another line of the record, because each line after the User-agent lines is a rule
//     ("Robots.txt", "Syntax"). These are the Allow, Disallow, Request-rate, Crawl-delay and
//     Visit-time lines. A record without any of them is ignored.
//   - A User-agent value is a list of names, separated by white space. A name is cut at a slash and
//     names every robot whose name contains it, ignoring case. Therefore the value may also be the
//     User-Agent header of the robot ("Robots.txt", "Syntax"). The record * applies to robots that
//     no record names.
//   - An empty Disallow and an empty Allow do not apply at all ("Allow directive").
//   - A pattern may start with any character, but it never matches unless it starts with / or *.
//   - /robots.txt is not special.
//   - The values of Crawl-delay and Visit-time are ignored. Request-rate is a number of documents in a time, such as
//     "10/1m", and may be limited to a part of the day in UTC, such as "10/1m 0600-1459"
//     ("Request-rate directive"). See [Group.Schedule].
//
// The wildcards * and $, and the rule that the longer pattern wins, are those of RFC9309.
func Seznam() Dialect { return Dialect{seznam} }

// A variant holds the parameters of a dialect for Parse, Group and Decide.
type variant struct {
	name         string
	lenient      bool   // Google's lines: key prefixes, typos, missing colon, cut lines
	records      bool   // 1994: blank lines end records, and records without a rule are ignored
	onlyDisallow bool   // 1994: Disallow is the only rule, and Sitemap is unknown
	naming       naming // how User-agent values name crawlers
	delayEndsRun bool   // Crawl-delay ends a run of User-agent lines
	shortRuns    bool   // Yandex: other lines than rules also end a run of User-agent lines; see breaksRun
	delay        delayReading
	rates        bool                   // supports Request-rate; it and Visit-time end a run of User-agent lines
	cleanParams  bool                   // supports Clean-param
	limited      bool                   // Yandex's limits: too long a rule is ignored, too large a file restricts nothing
	disallowNone bool                   // an empty Disallow is the same as Allow: /
	prefixRank   bool                   // wildcards and the anchor do not count when rules are compared
	coding       match.Coding           // the form of patterns and URLs when they are compared
	isNormal     func(part string) bool // reports whether a part of a URL is known to have that form
	slashFirst   bool                   // patterns must start with / or *
	plain        bool                   // * and $ stand for themselves
	openRobots   bool                   // /robots.txt is always allowed
	indexFile    bool                   // Allow: /x/index.htm also allows /x/
	fullSitemaps bool                   // Sitemap values must be absolute URLs
}

var variants = [...]variant{
	rfc9309: {
		name: "rfc9309", naming: wholeToken, delay: exactDelay, coding: match.Canonical,
		isNormal: match.IsCanonical, slashFirst: true, openRobots: true,
	},
	google: {
		name: "google", lenient: true, naming: tokenPrefix, coding: match.EscapedPattern,
		isNormal: match.HasNoFragment, indexFile: true, fullSitemaps: true,
	},
	cocCoc: {
		name: "coccoc", naming: hyphenParents, delayEndsRun: true, delay: upToTenSeconds,
		coding: match.Canonical, isNormal: match.IsCanonical,
	},
	original1994: {
		name: "original1994", records: true, onlyDisallow: true, naming: substring, coding: match.Verbatim,
		isNormal: match.HasNoFragment, plain: true,
	},
	temoto: {name: "temoto"},
	yandex: {
		name: "yandex", naming: yandexNames, shortRuns: true, cleanParams: true, limited: true,
		disallowNone: true, prefixRank: true, coding: match.Canonical, isNormal: match.IsCanonical,
		slashFirst: true, fullSitemaps: true,
	},
	seznam: {
		name: "seznam", records: true, naming: substring, delayEndsRun: true, rates: true,
		coding: match.Canonical, isNormal: match.IsCanonical,
	},
}

func (d Dialect) variant() *variant { return &variants[d.n] }

// endsRun reports whether a line of this kind ends a run of User-agent lines.
func (v *variant) endsRun(k kind) bool {
	switch k {
	case allowLine, disallowLine, gapLine:
		return true
	case delayLine:
		return v.delayEndsRun
	case rateLine, visitLine:
		return v.rates
	}
	return false
}

// String returns the name of the dialect, which [ByName] accepts.
func (d Dialect) String() string { return d.variant().name }

// All returns all dialects: RFC9309, Google, CocCoc, Original1994, Temoto, Yandex, Seznam.
func All() []Dialect {
	all := make([]Dialect, len(variants))
	for i := range all {
		all[i].n = uint8(i)
	}
	return all
}

// ByName returns the dialect with the given name: "rfc9309", "google", "coccoc", "original1994",
// "temoto", "yandex" or "seznam". It returns false for any other name.
func ByName(name string) (Dialect, bool) {
	for _, d := range All() {
		if d.String() == name {
			return d, true
		}
	}
	return Dialect{}, false
}

// MarshalText returns the name of the dialect, so that JSON and other text formats contain the
// name. It never fails.
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to the dialect with the given name; see [ByName]. If the name is unknown,
// UnmarshalText does not change d and returns an error that lists the known names.
func (d *Dialect) UnmarshalText(name []byte) error {
	named, ok := ByName(string(name))
	if !ok {
		return fmt.Errorf("dialect: unknown name %q, want one of %v", name, All())
	}
	*d = named
	return nil
}
