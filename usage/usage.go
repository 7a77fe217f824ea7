// Package usage reads what sites say about the use of their content: whether it may be used for
// search, as the input of AI models, or to train them. Such preferences do not restrict what may be
// requested: the rules of robots.txt do that.
//
// Sites state their preferences in several forms. The package has a parser for each form, and all
// of them return Preferences. Sources combines them. The package does no I/O. The forms are:
//
//   - Content-Usage, in robots.txt and in response headers: draft-ietf-aipref-vocab-08 and
//     draft-ietf-aipref-attach-05, working group drafts without consensus
//   - Content-Signal, in robots.txt and in response headers: an expired draft that millions of
//     sites use (contentsignals.org)
//   - TDMRep, in a file, in response headers and in HTML: final report of a W3C community group of
//     10 May 2024
//   - License, in robots.txt and in the response header Link: RSL 1.0, Recommendation of the RSL
//     Technical Steering Committee of 2025. The package does not read the licenses themselves
//
// Most of these texts are drafts. When one changes, a new minor version may add values and may read the
// text differently. A value never changes its meaning.
package usage

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Purpose is a use of content, or several combined with |.
type Purpose uint8

// The uses of content, as draft-ietf-aipref-vocab-08, "Vocabulary Definition", defines them.
const (
	Search  Purpose = 1 << iota // an index that leads users to the content
	AIUse                       // the input of a generative AI model
	TrainAI                     // the training of a generative AI model
)

// purposes has each Purpose with its label.
var purposes = [...]struct {
	purpose Purpose
	label   string
}{
	{Search, "search"},
	{AIUse, "ai-use"},
	{TrainAI, "train-ai"},
}

// String returns the labels of p, such as "search|train-ai".
func (p Purpose) String() string {
	var labels []string
	for _, known := range purposes {
		if p&known.purpose != 0 {
			labels = append(labels, known.label)
			p &^= known.purpose
		}
	}
	if p != 0 {
		labels = append(labels, fmt.Sprintf("Purpose(%d)", uint8(p)))
	}
	return strings.Join(labels, "|")
}

// A Preference says whether the owner allows a use. The zero Preference is Unknown. A greater
// Preference is stronger: if the sources differ, Disallowed overrides Allowed, and Allowed
// overrides Unknown.
type Preference uint8

// The preferences.
const (
	Unknown Preference = iota
	Allowed
	Disallowed
)

// String returns "unknown", "allowed" or "disallowed".
func (p Preference) String() string {
	switch p {
	case Unknown:
		return "unknown"
	case Allowed:
		return "allowed"
	case Disallowed:
		return "disallowed"
	}
	return fmt.Sprintf("Preference(%d)", uint8(p))
}

// MarshalText returns the text of String.
func (p Preference) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText sets p to the Preference with a name. It returns an error for any other text.
func (p *Preference) UnmarshalText(text []byte) error {
	for known := Unknown; known <= Disallowed; known++ {
		if known.String() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("usage: %q is not a preference", text)
}

// A Source is the place of a statement.
type Source struct {
	Name string `json:"source,omitempty"` // a file or a header, such as "robots.txt"
	Line int    `json:"line,omitempty"`   // the line in the file, from 1; 0 if there is none
	Hash string `json:"hash,omitempty"`   // of the file; "" if it is not known
}

// A Statement is the preference for one use. The preference of the zero Statement is Unknown.
type Statement struct {
	Preference Preference `json:"preference"`
	Source                // of the preference; zero if it is Unknown
}

// stronger returns the statement with the stronger preference, or s if they are equal.
func (s Statement) stronger(other Statement) Statement {
	if other.Preference > s.Preference {
		return other
	}
	return s
}

// Preferences are the preferences for the content of one URL. All of them are Unknown in the zero
// value.
type Preferences struct {
	Search  Statement
	AIUse   Statement
	TrainAI Statement
}

// Of returns the statement about one Purpose. If purpose combines several, Of returns the strongest
// of their statements. A crawl for search passes only Search, because only that preference applies
// to search.
func (p Preferences) Of(purpose Purpose) Statement {
	var s Statement
	if purpose&Search != 0 {
		s = s.stronger(p.Search)
	}
	if purpose&AIUse != 0 {
		s = s.stronger(p.AIUse)
	}
	if purpose&TrainAI != 0 {
		s = s.stronger(p.TrainAI)
	}
	return s
}

// Disallowed returns a text for messages with the disallowed uses and their sources, such as
// "train-ai in robots.txt, line 3". It returns "" if no use is disallowed.
func (p Preferences) Disallowed() string {
	var list []string
	for _, known := range purposes {
		s := p.Of(known.purpose)
		switch {
		case s.Preference != Disallowed:
		case s.Line > 0:
			list = append(list, fmt.Sprintf("%s in %s, line %d", known.label, s.Name, s.Line))
		default:
			list = append(list, fmt.Sprintf("%s in %s", known.label, s.Name))
		}
	}
	return strings.Join(list, "; ")
}

// Combine returns the preferences of p and other together: for each use, the stronger preference
// (draft-ietf-aipref-vocab-08, "Combining Preferences"). If they are equal, the source is that of
// p.
func (p Preferences) Combine(other Preferences) Preferences {
	return Preferences{
		Search:  p.Search.stronger(other.Search),
		AIUse:   p.AIUse.stronger(other.AIUse),
		TrainAI: p.TrainAI.stronger(other.TrainAI),
	}
}

// set records a preference for one use, if it is not Unknown.
func (p *Preferences) set(purpose Purpose, preference Preference, from Source) {
	s := Statement{}
	if preference != Unknown {
		s = Statement{Preference: preference, Source: from}
	}
	switch purpose {
	case Search:
		p.Search = s
	case AIUse:
		p.AIUse = s
	case TrainAI:
		p.TrainAI = s
	}
}

// MarshalJSON returns an object with the members search, ai-use and train-ai. It omits the uses
// whose preference is unknown.
func (p Preferences) MarshalJSON() ([]byte, error) { return json.Marshal(preferencesJSON(p)) }

// UnmarshalJSON reads what MarshalJSON returns. Absent members are unknown.
func (p *Preferences) UnmarshalJSON(text []byte) error {
	var j preferencesJSON
	err := json.Unmarshal(text, &j)
	if err != nil {
		return err
	}
	*p = Preferences(j)
	return nil
}

// preferencesJSON is Preferences as package json encodes it.
type preferencesJSON struct {
	Search  Statement `json:"search,omitzero"`
	AIUse   Statement `json:"ai-use,omitzero"`
	TrainAI Statement `json:"train-ai,omitzero"`
}
