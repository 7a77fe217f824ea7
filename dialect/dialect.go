// Package dialect reads robots.txt as a named crawler would: bytes and URLs in,
// decisions out. It does no I/O, keeps no clock and logs nothing.
//
// # How a file is read
//
// A robots.txt file is lines; a line is a key, a colon and a value; a # starts
// a comment. A run of User-agent lines opens a group, the Allow and Disallow
// lines after it are the group's rules. A crawler obeys the group that names
// it, else the group named *. Of the rules whose pattern matches a URL's path
// and query the most specific one, the one with the most octets, decides;
// between equals Allow wins; without a rule everything is allowed.
//
// The published texts differ in the details of every sentence above. A
// [Dialect] is one published reading, and its constructor lists where it
// departs from [RFC9309], which is the base.
//
//	rules := dialect.Google().Parse(body)
//	group := rules.Group("ExampleBot")
//	decision := group.Decide(dialect.Target(u))
//
// Parse never fails: a line that makes no sense is ignored, as the texts
// demand, and [Dialect.Lint] reports which lines were ignored and why.
package dialect

import "fmt"

// A Dialect is one reading of robots.txt. It is a comparable value that prints
// as its name; the zero value is [RFC9309].
type Dialect struct{ n uint8 }

// The dialects, in the order of All. They index variants.
const (
	rfc9309 = iota
	google
	cocCoc
	original1994
	temoto
)

// RFC9309 is the Robots Exclusion Protocol as RFC 9309 (and the internet draft
// before it) states it, and the base of the other dialects. Where the text
// leaves a choice, this one was made:
//
//   - A User-agent value that is not a product token ("Foo/1.0") opens a group
//     that applies to no crawler: section 2.2.1 compares tokens whole. A token
//     has letters, _ and - only, but names of crawlers also have digits and
//     dots ("MJ12bot", "archive.org_bot"). Such a value is compared whole too,
//     so a crawler with such a name finds its group.
//   - Several * groups are combined, as several groups of one name are (RFC
//     9309 2.2.1; the draft obeyed only the first).
//   - Only allow and disallow lines end a run of User-agent lines; all other
//     lines are transparent (2.2.4). Misspelt keys are not accepted.
//   - A pattern starts with / (2.2, path-pattern) or with the wildcard *.
//   - "Most octets" (2.2.2) counts the octets of the pattern in its encoded
//     form, wildcards and the anchor included, not the octets of the URL that a
//     wildcard stands for.
//   - $ is an anchor only as the last octet of a pattern, else it is itself.
//   - A byte that is not ASCII is percent-encoded as it is, whatever the file's
//     encoding. A percent sign without two hex digits in a rule is itself or
//     %25, as a crawler sends it.
//   - In the query : / ? [ ] @ equal their escapes, as the table in 2.2.2 has
//     it. In the path %2F stays different from /.
//   - /robots.txt is always allowed, but not /robots.txt?x, another URI.
//   - Crawl-delay is an "other line" (2.2.4): decimal seconds for the whole
//     group it stands in; of several the longest counts. There is no limit but
//     that of time.Duration: a number beyond 292 years, however many digits it
//     has, is 292 years. What is not digits with at most one point is ignored.
//   - The file ends after 500 KiB (2.5); a line cut there is dropped.
func RFC9309() Dialect { return Dialect{rfc9309} }

// Google is RFC 9309 as Google publishes it ("How Google interprets the
// robots.txt specification") and implements it (google/robotstxt), except:
//
//   - Keys are recognised by their beginning and with common typos (useragent,
//     user agent, disalow, dissallow, ..., site-map); a line of exactly two
//     words needs no colon.
//   - A line ends after 16,663 octets or at a NUL. A partial byte order mark is
//     skipped too.
//   - A User-agent value ends before the first octet that is not a letter, _ or
//     -, so "Googlebot/2.1" is googlebot. "* anything" is * too.
//   - The hex digits of a pattern's escapes are made upper case, and bytes that
//     are not ASCII are encoded. Nothing is decoded. Google's matcher leaves
//     the form of the URL to its caller: [Target] makes the hex digits upper
//     case, and Decide compares a target as it is given. A lone percent sign is
//     treated as under RFC9309.
//   - A pattern may start with anything; if not with / or * it never matches.
//   - /robots.txt is not special.
//   - An Allow for .../index.htm, .html and so on also allows the directory.
//   - Crawl-delay is not supported.
//   - Sitemap values must be absolute URLs; others are not offered.
func Google() Dialect { return Dialect{google} }

// CocCoc is RFC 9309 as Coc Coc reads it (webmaster help, "Robots.txt"),
// except:
//
//   - A User-agent value is compared whole. Names are a hierarchy at hyphens:
//     for coccocbot-web the groups coccocbot-web, coccocbot and * are tried in
//     this order and the first that exists is obeyed alone ("User-agent").
//     "coccoc" is the name of no robot.
//   - Crawl-delay ends a run of User-agent lines too, whatever its value: the
//     page's example needs it, since empty lines are ignored ("Crawl-delay").
//   - Crawl-delay is a whole number of seconds, a plain decimal fraction is
//     rounded up, and more than 10 is 10; of several the longest counts, and
//     anything else is ignored.
//   - An empty Disallow allows all, but does not undo another rule: it is the
//     least specific ("Disallow and Allow"). An empty Allow is ignored.
//   - A pattern may start with anything; if not with / or * it never matches.
//   - /robots.txt is not special.
//
// The page is silent about letter case, blanks, encoding, size, typos and URLs
// without a path: as RFC 9309. A User-agent line alone makes a group.
func CocCoc() Dialect { return Dialect{cocCoc} }

// Original1994 is "A Standard for Robot Exclusion" of 1994 with the note of its
// Russian translator. It differs from RFC 9309 so much that it is stated whole:
//
//   - A record is User-agent lines followed by Disallow lines; a blank line, or
//     one of blanks, ends it, a line of only a comment does not. A User-agent
//     after a Disallow starts the next record. A record without Disallow does
//     not count, a Disallow without a record neither.
//   - A User-agent value, cut at a slash, names every robot whose name contains
//     it, in any letter case; several names stand on a line, separated by
//     blanks (translator's note). All records that name a robot hold for it; *
//     is for robots that none names.
//   - Any Disallow that is a prefix of the path and query closes it. Bytes are
//     compared as they are, and * and $ are themselves. Only the hex digits of
//     escapes and a lone percent sign also match the form that [Target]
//     returns. An empty Disallow closes nothing.
//   - Allow, Crawl-delay and Sitemap are unknown lines.
//   - /robots.txt is not special. Size as RFC 9309.
func Original1994() Dialect { return Dialect{original1994} }

// Temoto is not a reading but an implementation: it decides as Colly's built-in
// check does (Colly v2.3.0 with temoto/robotstxt v1.1.2), so that a spider can
// change without a changed decision and compare. Groups are found by a prefix
// of the whole User-Agent header: pass that header to [Rules.Group] as the only
// token. Ask [Group.DecideURL]: Colly compares the path as the URL has it, not
// as [Target] writes it. The query is sorted and encoded anew before it is
// matched. A file that temoto refuses makes Colly fail every Visit of the host,
// so here it denies everything. [Dialect.Lint] reports why.
//
// Temoto cannot name the rule that decided, a decision allocates, and the size
// of a file has no bound. A wildcard is matched as a regular expression, so a
// decision takes up to 25 ns for each byte of the file's wildcard patterns times
// each byte of the URL's path and query. Where that would be about a second (33
// million pairs of bytes), the URL is denied without a match, the only decision
// that differs from Colly's. Colly ignores Crawl-delay, and so does this dialect.
// WrittenDelay returns 292 years for longer delays.
func Temoto() Dialect { return Dialect{temoto} }

// A variant is what makes a dialect: the knobs that Parse, Group and Decide
// turn.
type variant struct {
	name         string
	lenient      bool   // Google's lines: key prefixes, typos, missing colon, cut lines
	records      bool   // 1994: blank lines end records, Disallow is the only rule
	naming       naming // how User-agent values name crawlers
	delayEndsRun bool   // Crawl-delay ends a run of User-agent lines
	delay        delayReading
	coding       coding // the form in which patterns and URLs are compared
	slashFirst   bool   // patterns must start with / or *
	plain        bool   // * and $ are themselves
	openRobots   bool   // /robots.txt is always allowed
	indexFile    bool   // Allow: /x/index.htm allows /x/ too
	fullSitemaps bool   // Sitemap values must be absolute URLs
}

var variants = [...]variant{
	rfc9309: {
		name: "rfc9309", naming: wholeToken, delay: exactDelay, coding: canonical,
		slashFirst: true, openRobots: true,
	},
	google: {
		name: "google", lenient: true, naming: tokenPrefix, coding: escapedPattern,
		indexFile: true, fullSitemaps: true,
	},
	cocCoc: {
		name: "coccoc", naming: hyphenParents, delayEndsRun: true, delay: upToTenSeconds,
		coding: canonical,
	},
	original1994: {
		name: "original1994", records: true, naming: substring, coding: verbatim, plain: true,
	},
	temoto: {name: "temoto"},
}

func (d Dialect) variant() *variant { return &variants[d.n] }

// String returns the dialect's name, as [ByName] knows it.
func (d Dialect) String() string { return d.variant().name }

// All returns every dialect: RFC9309, Google, CocCoc, Original1994, Temoto.
func All() []Dialect {
	all := make([]Dialect, len(variants))
	for i := range all {
		all[i].n = uint8(i)
	}
	return all
}

// ByName returns the dialect with the given name: "rfc9309", "google",
// "coccoc", "original1994" or "temoto".
func ByName(name string) (Dialect, bool) {
	for _, d := range All() {
		if d.String() == name {
			return d, true
		}
	}
	return Dialect{}, false
}

// MarshalText returns the dialect's name, so that a Dialect is written as its
// name in JSON and other formats of text. It never fails.
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets d to the dialect with the given name, as [ByName] knows
// it. An unknown name is an error, which lists the known ones and leaves d as
// it was.
func (d *Dialect) UnmarshalText(name []byte) error {
	named, ok := ByName(string(name))
	if !ok {
		return fmt.Errorf("dialect: unknown name %q, want one of %v", name, All())
	}
	*d = named
	return nil
}
