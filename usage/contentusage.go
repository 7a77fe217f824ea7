package usage

import (
	"github.com/dunglas/httpsfv"
)

// contentUsageLabels are the keys of Content-Usage (draft-ietf-aipref-vocab-08, "Usage Category
// Labels").
var contentUsageLabels = map[string]Purpose{
	"search":   Search,
	"ai-use":   AIUse,
	"train-ai": TrainAI,
}

// ParseContentUsage parses the values of the response header Content-Usage, or of a Content-Usage
// line of a robots.txt without its path; see ParseRobotsTxt. from is the source of the statements.
//
// The values are a Dictionary of RFC 9651. The keys are case-sensitive, and the values are the
// Tokens y and n. Any other value, an unknown key and a parameter are ignored. The last of several
// members with the same key counts. If the Dictionary is malformed, it says nothing: that is not an
// error (draft-ietf-aipref-vocab-08, "Processing Algorithm"). Only the members in the first 8 KiB
// are read.
func ParseContentUsage(values []string, from Source) Preferences {
	var p Preferences
	if len(values) == 0 {
		return p
	}
	list, cut := combine(values)
	if cut {
		list = completeMembers(list)
	}
	d, err := httpsfv.UnmarshalDictionary([]string{list})
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
