package usage

import (
	"strings"

	"github.com/dunglas/httpsfv"
)

// contentUsageLabels are the keys of Content-Usage (draft-ietf-aipref-vocab-08, "Usage Category
// Labels").
var contentUsageLabels = map[string]Purpose{
	"search":   Search,
	"ai-use":   AIUse,
	"train-ai": TrainAI,
}

// ContentUsage parses the values of the response header Content-Usage. from is the source of the
// statements.
//
// The values are a Dictionary of RFC 9651. The keys are case-sensitive, and the values are the
// Tokens y and n. Any other value, an unknown key and a parameter are ignored. The last of several
// members with the same key counts. If the Dictionary is malformed, it says nothing: that is not an
// error (draft-ietf-aipref-vocab-08, "Processing Algorithm").
func ContentUsage(values []string, from Source) Preferences {
	var p Preferences
	if len(values) == 0 {
		return p
	}
	d, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return p
	}
	for label, purpose := range contentUsageLabels {
		member, _ := d.Get(label)
		item, _ := member.(httpsfv.Item)
		token, _ := item.Value.(httpsfv.Token)
		switch token {
		case "y":
			p.set(purpose, Allowed, from)
		case "n":
			p.set(purpose, Disallowed, from)
		}
	}
	return p
}

// A Rule is a Content-Usage line of a robots.txt.
type Rule struct {
	Path        string // the path pattern as written; "" if the line applies to all paths
	Preferences Preferences
	pattern     pattern
}

// ContentUsageRule parses the value of a Content-Usage line: the text after the colon, without a
// comment. If it starts with a slash, it begins with a path pattern that ends at the first blank or
// tab. The rest is a Dictionary; see ContentUsage (draft-ietf-aipref-attach-05, "Processing
// Content-Usage Rules").
func ContentUsageRule(value string, from Source) Rule {
	value = strings.Trim(value, " \t\r\n")
	var rule Rule
	if strings.HasPrefix(value, "/") {
		end := strings.IndexAny(value, " \t")
		if end < 0 {
			end = len(value)
		}
		rule.Path = value[:end]
		value = strings.Trim(value[end:], " \t")
	}
	rule.pattern = newPattern(rule.Path)
	if value != "" {
		rule.Preferences = ContentUsage([]string{value}, from)
	}
	return rule
}

// Rules are the Content-Usage lines of the group of a robots.txt that applies to a crawler.
type Rules []Rule

// Of returns the preferences for a target, which is the path and query of a URL; see Target. The
// rule with the longest pattern that matches counts, even if it says nothing about some uses. If
// several have this length, they are combined, so that the most restrictive preference applies.
//
// A path that the crawler must not request has no preferences: call Of only for other paths.
func (r Rules) Of(target string) Preferences {
	target = normal(target)
	longest := -1
	var p Preferences
	for _, rule := range r {
		n := len(rule.pattern)
		if n < longest || !rule.pattern.matches(target) {
			continue
		}
		if n > longest {
			p = Preferences{}
			longest = n
		}
		p = p.Combine(rule.Preferences)
	}
	return p
}
