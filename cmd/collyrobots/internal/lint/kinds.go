package lint

// A Severity says how serious a [Finding] is.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // a line does not do what its author wants
	Warning                 // a line probably does not do what its author wants
	Note                    // a fact that the author may want to know; nothing is wrong
)

var severityNames = [...]string{Error: "error", Warning: "warning", Note: "note"}

// String returns "error", "warning" or "note".
func (s Severity) String() string { return severityNames[s] }

// MarshalText returns the text of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Kind is a kind of [Finding].
type Kind struct {
	ID       string // stable: it does not change in later versions
	Severity Severity
	Meaning  string // a sentence about the cause and the effect
}

// Kinds returns all kinds in the order of docs/reference/findings.md.
func Kinds() []Kind { return kinds }

var kinds = []Kind{
	{ID: "html-page", Severity: Error, Meaning: "The file is an HTML page. No other kind is reported."},
	{ID: "utf16", Severity: Error, Meaning: "The file is in UTF-16. No line is read."},
	{ID: "file-cut", Severity: Error, Meaning: "The file has more than 500 KiB. The rest is ignored."},
	{ID: "file-too-large", Severity: Error, Meaning: "The file is larger than the dialect permits, so it restricts nothing."},
	{ID: "file-refused", Severity: Error, Meaning: "The dialect refuses the whole file because of this line."},
	{ID: "too-many-rules", Severity: Error, Meaning: "The file has more rules than the dialect permits, so it restricts nothing."},
	{ID: "byte-order-mark", Severity: Note, Meaning: "The file begins with a byte order mark. Some parsers ignore the first line."},
	{ID: "nul-byte", Severity: Warning, Meaning: "A line has a NUL. Some parsers ignore the rest of the line."},
	{ID: "not-utf8", Severity: Warning, Meaning: "The value is not UTF-8. It matches only URLs with the same bytes."},
	{ID: "line-cut", Severity: Error, Meaning: "The line is too long or has a NUL, so the rest of it is ignored."},

	{ID: "no-colon", Severity: Error, Meaning: "The line has no key and colon, so it is ignored."},
	{ID: "colon-added", Severity: Note, Meaning: "The line has no colon, but the dialect accepts it."},
	{ID: "misspelt-key", Severity: Error, Meaning: "The key is misspelt, so the line is ignored."},
	{ID: "misspelt-key-accepted", Severity: Note, Meaning: "The key is misspelt, but the dialect accepts it."},
	{ID: "unknown-key", Severity: Warning, Meaning: "No dialect knows the key, so the line is ignored."},
	{ID: "unsupported-key", Severity: Note, Meaning: "The dialect does not support the key, so it ignores the line."},
	{ID: "ignored-value", Severity: Note, Meaning: "The dialect does not support the key and ignores the value, but the line belongs to a group."},
	{ID: "foreign-key", Severity: Note, Meaning: "The key belongs to another system, or to none any more. It is not a rule."},

	{ID: "rule-before-group", Severity: Error, Meaning: "No User-agent line is before the line, so it is ignored."},
	{ID: "bad-user-agent", Severity: Error, Meaning: "The value is not a product token, so the group applies to no crawler."},
	{ID: "user-agent-not-token", Severity: Note, Meaning: "A product token has no digits and dots, so some crawlers do not find their group."},
	{ID: "user-agent-cut", Severity: Note, Meaning: "Only the letters, _ and - at the beginning of the name are compared."},
	{ID: "group-continues", Severity: Warning, Meaning: "A blank line or a Crawl-delay does not end a group, so these names share the rules below."},
	{ID: "group-ended", Severity: Warning, Meaning: "A line between the names ends the group of the first in the dialect, so they do not share the rules below."},
	{ID: "second-star-group", Severity: Warning, Meaning: "The dialect permits one group of *. Crawlers may combine them or not."},
	{ID: "record-without-rule", Severity: Warning, Meaning: "A record without a rule is ignored."},
	{ID: "empty-group", Severity: Warning, Meaning: "The last group has no rules, so it allows everything."},

	{ID: "pattern-no-slash", Severity: Error, Meaning: "The pattern begins with neither / nor *, so it matches no URL."},
	{ID: "pattern-blank", Severity: Warning, Meaning: "The pattern has a blank. URLs have %20 in its place, and a line has one pattern only."},
	{ID: "pattern-too-long", Severity: Error, Meaning: "The pattern is too long for the dialect, so it matches no URL."},
	{ID: "literal-wildcard", Severity: Warning, Meaning: "In the dialect, * and $ stand for themselves."},
	{ID: "unsorted-query", Severity: Error, Meaning: "The query is not in alphabetical order, so the pattern matches no URL."},
	{ID: "empty-allow", Severity: Warning, Meaning: "An Allow without a pattern allows nothing."},

	{ID: "contradiction", Severity: Error, Meaning: "An Allow and a Disallow match the same URLs, so one of them has no effect."},
	{ID: "duplicate-rule", Severity: Warning, Meaning: "The rule matches the same URLs as another one of the same kind."},
	{ID: "shadowed-rule", Severity: Warning, Meaning: "Another rule precedes this one for each URL that it matches, so it never decides."},
	{ID: "redundant-rule", Severity: Note, Meaning: "The rule can be removed: a more general one has the same effect."},
	{ID: "allow-without-effect", Severity: Note, Meaning: "No Disallow matches a URL of this Allow, so it can be removed."},
	{ID: "dialects-differ", Severity: Warning, Meaning: "The dialects decide differently about the URL."},
	{ID: "not-compared", Severity: Note, Meaning: "The file is too complex to compare all of its rules, so some findings may be missing."},

	{ID: "bad-crawl-delay", Severity: Warning, Meaning: "The value is not a number of seconds, so it is ignored."},
	{ID: "changed-crawl-delay", Severity: Note, Meaning: "The dialect changes the number of seconds."},
	{ID: "bad-request-rate", Severity: Warning, Meaning: "The value is not a rate such as 10/1m, so it is ignored."},
	{ID: "bad-visit-time", Severity: Warning, Meaning: "The value is not a window such as 0600-0845, so it is ignored."},
	{ID: "bad-clean-param", Severity: Warning, Meaning: "The value is not a list of parameters and a path, so it is ignored."},

	{ID: "bad-sitemap", Severity: Error, Meaning: "The value is not an absolute URL, so it is ignored."},
	{ID: "relative-sitemap", Severity: Warning, Meaning: "The value is a relative URL. Some dialects ignore it."},
	{ID: "sitemap-disallowed", Severity: Warning, Meaning: "The file disallows a sitemap that it lists."},
	{ID: "blocked-resource", Severity: Warning, Meaning: "Crawlers that may request pages may not request their CSS or JavaScript."},

	{ID: "usage-old-label", Severity: Warning, Meaning: "The label is from an old draft. Current readers ignore it."},
	{ID: "usage-unknown-label", Severity: Warning, Meaning: "The label is not one of this key, so readers ignore it."},
	{ID: "usage-value", Severity: Warning, Meaning: "The value is not one of this key, so it means nothing: Content-Usage has y and n, Content-Signal has yes and no."},
	{ID: "usage-syntax", Severity: Error, Meaning: "The value is not a dictionary of RFC 9651, so the line means nothing."},
	{ID: "usage-license", Severity: Error, Meaning: "The value is not an absolute URL, so readers ignore the license."},
	{ID: "tdm-syntax", Severity: Error, Meaning: "The TDMRep file is not a JSON array, so it declares nothing."},
	{ID: "tdm-rule", Severity: Error, Meaning: "The element of the TDMRep file is ignored: it is not an object with a location that begins with a slash."},
	{ID: "tdm-value", Severity: Error, Meaning: "The rule of the TDMRep file declares nothing, because tdm-reservation is not the number 0 or 1."},
	{ID: "tdm-shadowed", Severity: Warning, Meaning: "An earlier rule of the TDMRep file matches each URL of this one, so it never decides."},
}

// kindByID has all kinds.
var kindByID = func() map[string]Kind {
	byID := make(map[string]Kind)
	for _, k := range kinds {
		byID[k.ID] = k
	}
	return byID
}()

// Known reports whether there is a kind with this ID.
func Known(id string) bool { return kindByID[id].ID != "" }
