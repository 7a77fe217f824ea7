package usage

import (
	"slices"
	"strings"
)

// A Line is a line of a robots.txt about the use of content.
type Line struct {
	Key    string // "Content-Usage", "Content-Signal" or "License", in any case
	Value  string // the text after the colon, without a comment
	Number int    // of the line in the file, from 1
}

// A RobotsTxt has the statements of a robots.txt about the use of content for one crawler. It is
// immutable and safe for concurrent use. A nil RobotsTxt has no statements.
type RobotsTxt struct {
	rules    Rules
	signals  Preferences // of Content-Signal
	use      Use
	licenses []License
}

// ParseRobotsTxt parses the lines of a robots.txt that apply to one crawler: the lines of its
// group, and the Content-Signal and License lines outside of groups. It ignores lines with other
// keys. It returns nil if lines is empty.
//
// The texts do not define how Content-Signal lines inside and outside of a group are combined. The
// most restrictive one counts.
func ParseRobotsTxt(lines []Line) *RobotsTxt {
	if len(lines) == 0 {
		return nil
	}
	r := &RobotsTxt{}
	for _, l := range lines {
		from := Source{Name: robotsName, Line: l.Number}
		switch strings.ToLower(l.Key) {
		case "content-usage":
			r.rules = append(r.rules, ContentUsageRule(l.Value, from))
		case "content-signal":
			said, use := ContentSignal([]string{l.Value}, from)
			r.signals = r.signals.Combine(said)
			r.use = narrower(r.use, use)
		case "license":
			r.licenses = addLicense(r.licenses, nil, l.Value, from)
		}
	}
	r.rules = slices.Clip(r.rules)
	return r
}

// robotsName is the Source.Name of statements in a robots.txt.
const robotsName = "robots.txt"

// of returns the preferences for a target; see Rules.Of.
func (r *RobotsTxt) of(target string) Preferences {
	if r == nil {
		return Preferences{}
	}
	if len(r.rules) == 0 {
		return r.signals
	}
	return r.rules.Of(target).Combine(r.signals)
}

// The sizes in bytes that Size assumes.
const (
	robotsSize = 400 // a RobotsTxt
	ruleSize   = 200 // a Rule, without its text
)

// Size returns the estimated size of r in memory, in bytes.
func (r *RobotsTxt) Size() int {
	if r == nil {
		return 0
	}
	size := robotsSize
	for i := range r.rules {
		size += ruleSize + len(r.rules[i].Path) + len(r.rules[i].pattern)
	}
	for i := range r.licenses {
		size += ruleSize + len(r.licenses[i].URL)
	}
	return size
}
