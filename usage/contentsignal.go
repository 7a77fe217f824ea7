package usage

import "strings"

// A Use says how AI systems may consume content, according to the key use of Content-Signal. A
// greater Use permits more. The zero Use says nothing.
type Use uint8

// The values of the key use.
const (
	UseUnknown Use = iota
	UseImmediate
	UseReference
	UseFull
)

var uses = [...]string{UseUnknown: "", UseImmediate: "immediate", UseReference: "reference", UseFull: "full"}

// String returns the value of the key use, or "" if it is not known.
func (u Use) String() string {
	if int(u) >= len(uses) {
		return ""
	}
	return uses[u]
}

// contentSignalLabels are the keys of Content-Signal.
var contentSignalLabels = map[string]Purpose{
	"search":   Search,
	"ai-input": AIUse,
	"ai-train": TrainAI,
}

// ParseContentSignal parses the values of the response header Content-Signal, or of Content-Signal
// lines of a robots.txt without their paths; see ParseRobotsTxt. from is the source of the
// statements.
//
// A value is a list of key=value pairs, separated by commas, such as "search=yes, ai-train=no". The
// values are yes and no. A key that is absent says nothing, and neither does any other key or
// value. The texts do not say what repeated keys and upper case mean: the more restrictive of two
// values counts, and upper case equals lower case. Only the pairs in the first 8 KiB are read.
func ParseContentSignal(values []string, from Source) (Preferences, Use) {
	var p Preferences
	use := UseUnknown
	list, cut := combine(values)
	if cut {
		list = list[:max(0, strings.LastIndexByte(list, ','))]
	}
	for pair := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(pair, "=")
		key = clean(key)
		value = clean(value)
		if key == "use" {
			use = narrower(use, useOf(value))
			continue
		}
		var said Preferences
		said.set(contentSignalLabels[key], signal(value), from)
		p = p.Combine(said)
	}
	return p, use
}

// clean returns s in lower case without blanks around it.
func clean(s string) string { return strings.ToLower(strings.Trim(s, " \t\r\n")) }

// signal returns the preference of yes or no, or Unknown.
func signal(value string) Preference {
	switch value {
	case "yes":
		return Allowed
	case "no":
		return Disallowed
	}
	return Unknown
}

// MarshalText returns the text of String.
func (u Use) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText sets u to the Use with a name. Any other text is UseUnknown.
func (u *Use) UnmarshalText(text []byte) error {
	*u = useOf(string(text))
	return nil
}

// useOf returns the Use with a name, or UseUnknown.
func useOf(name string) Use {
	for u, known := range uses {
		if name == known {
			return Use(u)
		}
	}
	return UseUnknown
}

// strength returns a number that is greater for a Use that permits less. It is 0 for UseUnknown.
func (u Use) strength() int {
	if u == UseUnknown {
		return 0
	}
	return len(uses) - int(u)
}

// narrower returns the Use that permits less. A Use that is not known counts for nothing.
func narrower(a, b Use) Use {
	if b.strength() > a.strength() {
		return b
	}
	return a
}
