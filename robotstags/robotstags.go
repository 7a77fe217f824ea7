// Package robotstags reads the rules that a site sends with a page, such as noindex and nofollow.
// robots.txt says which pages crawlers may request. These rules say what crawlers may do with a
// page that they have requested.
//
// There are three places for the rules:
//
//   - the response header X-Robots-Tag, which has no standard; Google's "Robots meta tag,
//     data-nosnippet, and X-Robots-Tag specifications" and Yandex's "Robots meta tag and
//     X-Robots-Tag HTTP header" describe it
//   - the response header Robots-Tag of draft-illyes-repext-03 (18 April 2026), an individual draft
//     without consensus that expired on 20 October 2026
//   - meta elements in the head of an HTML page, with the name robots or the name of a crawler; the
//     same texts and Bing's "Robots Metatags" describe them
//
// All rules that apply to a crawler are combined, whatever their order and place. A rule that
// permits something, such as index, never cancels a rule that forbids it. This is what Google and
// the draft say. For the crawler of Yandex, index cancels noindex.
//
// The package does no I/O. One of its sources is a draft. When it changes, a new minor version may read
// pages differently. A value never changes its meaning.
package robotstags

import (
	"strconv"
	"strings"
	"time"
)

// A Name is the name of a rule, in lower case. Rules with other names than these constants are kept
// as well, because the draft (section 3.1.3) and the search engines allow further rules.
type Name string

// The names of rules, and the texts that describe them.
const (
	NoIndex          Name = "noindex"           // do not show the page in search results (Google, Bing, Yandex, draft)
	NoFollow         Name = "nofollow"          // do not follow the links of the page (Google, Bing, Yandex)
	None             Name = "none"              // both noindex and nofollow (Google, Yandex)
	NoSnippet        Name = "nosnippet"         // show no excerpt (Google, Bing, draft)
	NoArchive        Name = "noarchive"         // show no link to a stored copy (Bing, Yandex)
	NoCache          Name = "nocache"           // the same as noarchive (Bing)
	NoImageIndex     Name = "noimageindex"      // do not index the images of the page (Google)
	NoTranslate      Name = "notranslate"       // offer no translation (Google)
	IndexIfEmbedded  Name = "indexifembedded"   // noindex does not apply where another page embeds the page (Google)
	MaxSnippet       Name = "max-snippet"       // has a number of characters; -1 means no limit (Google, Bing)
	MaxImagePreview  Name = "max-image-preview" // is none, standard or large (Google, Bing)
	MaxVideoPreview  Name = "max-video-preview" // has a number of seconds; -1 means no limit (Google, Bing)
	UnavailableAfter Name = "unavailable_after" // has a date; do not show the page after it (Google)
	All              Name = "all"               // there are no restrictions (Google, Yandex)
	Index            Name = "index"             // the page may be indexed (Bing, Yandex)
	Follow           Name = "follow"            // the links may be followed (Bing, Yandex)
)

// known has the names of the constants.
var known = map[Name]bool{
	NoIndex: true, NoFollow: true, None: true, NoSnippet: true, NoArchive: true, NoCache: true, NoImageIndex: true,
	NoTranslate: true, IndexIfEmbedded: true, MaxSnippet: true, MaxImagePreview: true, MaxVideoPreview: true,
	UnavailableAfter: true, All: true, Index: true, Follow: true,
}

// A Source is the place of a rule.
type Source string

// The sources.
const (
	SourceXRobotsTag Source = "x-robots-tag" // the response header X-Robots-Tag
	SourceRobotsTag  Source = "robots-tag"   // the response header Robots-Tag
	SourceMeta       Source = "meta"         // a meta element
)

// A Rule is one rule about a page.
type Rule struct {
	Name   Name   `json:"name"`
	Value  string `json:"value,omitempty"` // such as "20"; "" if the rule has none
	Bot    string `json:"bot,omitempty"`   // the crawler that it is for, in lower case; "" if it is for all
	Source Source `json:"source"`
}

// String returns the rule as in a header, such as "max-snippet: 20", without the name of a crawler.
func (r Rule) String() string {
	if r.Value == "" {
		return string(r.Name)
	}
	return string(r.Name) + ": " + r.Value
}

// Tags are the rules about a page that apply to one crawler, without duplicates. Nil Tags have no
// rules.
type Tags []Rule

// Has reports whether there is a rule with this name. The rule none stands for noindex and
// nofollow.
func (t Tags) Has(name Name) bool {
	for _, r := range t {
		if r.Name == name || r.Name == None && (name == NoIndex || name == NoFollow) {
			return true
		}
	}
	return false
}

// NoIndex reports whether the page must not be indexed. It does not look at unavailable_after.
func (t Tags) NoIndex() bool { return t.Has(NoIndex) }

// NoFollow reports whether the links of the page must not be followed.
func (t Tags) NoFollow() bool { return t.Has(NoFollow) }

// Limit returns the smallest number in the rules with a name, MaxSnippet or MaxVideoPreview.
// MaxSnippet is in characters, and MaxVideoPreview in seconds. ok is false if there is no limit: if
// there is no such rule, or if no such rule has a number of zero or more.
func (t Tags) Limit(name Name) (n int, ok bool) {
	for _, r := range t {
		if r.Name != name {
			continue
		}
		value, err := strconv.Atoi(r.Value)
		if err != nil || value < 0 || ok && value >= n {
			continue
		}
		n = value
		ok = true
	}
	return n, ok
}

// UnavailableAfter returns the earliest time after which the page must not be shown, in UTC. ok is
// false if there is no such rule, or if its date cannot be parsed.
func (t Tags) UnavailableAfter() (at time.Time, ok bool) {
	for _, r := range t {
		if r.Name != UnavailableAfter {
			continue
		}
		date, valid := parseDate(r.Value)
		if !valid || ok && !date.Before(at) {
			continue
		}
		at = date
		ok = true
	}
	return at, ok
}

// dateLayouts are the layouts of dates, after parseDate has removed the weekday and replaced the
// name of the zone by its offset. Google names RFC 822, RFC 850 and ISO 8601, and uses further
// forms in its examples. The form of asctime is the third one that HTTP knows (RFC 9110, section
// 5.6.7).
var dateLayouts = withLongMonths([]string{
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700", "2 Jan 06 15:04:05 -0700", "2 Jan 06 15:04 -0700",
	"2-Jan-06 15:04:05 -0700", "2-Jan-06 15:04 -0700", "2-Jan-2006 15:04:05 -0700", "2-Jan-2006 15:04 -0700",
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02", "2 Jan 2006 15:04:05", "2 Jan 2006",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T1504Z0700", "20060102T1504Z07", "20060102T150405", "20060102T1504", "20060102",
	time.ANSIC,
})

// withLongMonths returns the layouts, and each layout that has the abbreviated name of a month also
// with its full name.
func withLongMonths(layouts []string) []string {
	all := layouts
	for _, layout := range layouts {
		if strings.Contains(layout, "Jan") {
			all = append(all, strings.Replace(layout, "Jan", "January", 1))
		}
	}
	return all
}

// zones has the offsets of the names of zones in RFC 822, section 5.1, and of the zones of Europe.
var zones = map[string]string{
	"WET": "+0000", "WEST": "+0100", "CET": "+0100", "CEST": "+0200", "EET": "+0200", "EEST": "+0300",
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000", "Z": "+0000", "EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// maxDate is the maximum length of a date in bytes.
const maxDate = 64

// parseDate parses the value of unavailable_after. A time without a zone is in UTC.
func parseDate(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxDate {
		return time.Time{}, false
	}
	if day, date, found := strings.Cut(text, ","); found && isWord(day) {
		text = strings.TrimSpace(date)
	}
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		if offset := zones[strings.ToUpper(text[i+1:])]; offset != "" {
			text = text[:i+1] + offset
		}
	}
	for _, layout := range dateLayouts {
		at, err := time.Parse(layout, text)
		if err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// isWord reports whether a text has only ASCII letters, and at least one.
func isWord(text string) bool {
	for i := range len(text) {
		c := text[i] | 0x20
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return text != ""
}
