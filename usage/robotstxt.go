package usage

import (
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A RobotsTxt has the statements of a robots.txt about the use of content for one crawler. It is
// immutable and safe for concurrent use. A nil RobotsTxt has no statements.
type RobotsTxt struct {
	usages   *rules // the Content-Usage lines; nil if there are none
	signals  *rules // the Content-Signal lines; nil if there are none
	licenses []License
}

// ParseRobotsTxt parses the lines of a robots.txt that apply to one crawler: the lines of its
// group, and the Content-Signal and License lines outside of groups. It ignores lines with other
// keys. It returns nil if lines is empty.
//
// The value of a Content-Usage or a Content-Signal line may begin with a path pattern and a blank,
// as in "/blog/ ai-train=no". The line then applies only to paths that the pattern matches in the
// way of an Allow line of RFC 9309. A line without a path applies to all paths. The rest is the
// list that ParseContentUsage or ParseContentSignal parses. If several lines with a key match, see
// RobotsTxt.Of.
//
// The texts do not define how Content-Signal lines inside and outside of a group are combined. They
// are treated like lines of the same group.
func ParseRobotsTxt(lines []dialect.UsageLine) *RobotsTxt {
	if len(lines) == 0 {
		return nil
	}
	r := &RobotsTxt{}
	var usages, signals []line
	for _, l := range lines {
		from := Source{Name: robotsName, Line: l.Line}
		switch strings.ToLower(l.Key) {
		case "content-usage":
			path, list := cutPath(l.Value)
			usages = append(usages, line{path: path, rule: rule{preferences: ParseContentUsage([]string{list}, from)}})
		case "content-signal":
			path, list := cutPath(l.Value)
			said, use := ParseContentSignal([]string{list}, from)
			signals = append(signals, line{path: path, rule: rule{preferences: said, use: use}})
		case "license":
			r.licenses = addLicense(r.licenses, nil, l.Value, from)
		}
	}
	r.usages = newRules(usages)
	r.signals = newRules(signals)
	return r
}

// robotsName is the Source.Name of statements in a robots.txt.
const robotsName = "robots.txt"

// Of returns the preferences for a target, which is the path and query of a URL; see Target. Of the
// Content-Usage lines, the one with the longest pattern that matches counts, even if it says
// nothing about some uses. If several have this length, they are combined, so that the most
// restrictive preference applies. The same is true of the Content-Signal lines. The preferences of
// both are combined.
//
// A path that the crawler must not request has no preferences: call Of only for other paths.
func (r *RobotsTxt) Of(target string) Preferences {
	p, _ := r.of(target)
	return p
}

// of is like Of and also returns the value of the key use of Content-Signal.
func (r *RobotsTxt) of(target string) (p Preferences, use Use) {
	if r == nil || r.usages == nil && r.signals == nil {
		return Preferences{}, UseUnknown
	}
	target = normal(target)
	all := r.usages.of(target).stronger(r.signals.of(target))
	return all.preferences, all.use
}

// Size returns the estimated size of r in memory, in bytes.
func (r *RobotsTxt) Size() int {
	if r == nil {
		return 0
	}
	size := robotsSize + r.usages.size() + r.signals.size()
	for i := range r.licenses {
		size += ruleSize + len(r.licenses[i].URL)
	}
	return size
}
