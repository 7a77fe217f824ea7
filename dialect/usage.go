package dialect

import (
	"slices"
	"strings"
)

// A UsageLine is a line about the use of content. Package usage parses the values.
type UsageLine struct {
	Key   string // "Content-Usage", "Content-Signal" or "License", in this spelling
	Value string // as written, without a comment
	Line  int    // line number in the file, starting at 1
}

// usageKeys are the keys of the lines about the use of content.
var usageKeys = map[kind]string{
	usageLine:      "Content-Usage",
	signalLine:     "Content-Signal",
	siteSignalLine: "Content-Signal",
	licenseLine:    "License",
}

// UsageLines returns the lines about the use of content that apply to the crawler with these
// tokens, in the order of the file. It returns nil if there are none. They are:
//
//   - The Content-Usage and Content-Signal lines of the group that [Rules.Group] returns for the
//     tokens. If several groups are combined, these are the lines of all of them. A Content-Usage
//     line is a rule of its group (draft-ietf-aipref-attach-05), so a User-agent line after it
//     begins another group. A Content-Signal line, for which no text says so, is read alike:
//     otherwise a line that allows a use to one crawler would allow it to all. This applies only to UsageLines: Allow and Disallow lines after it
//     belong to the same groups as without it, so it changes no decision. For [Yandex], it
//     ends a run of User-agent lines, as every line with a key does.
//   - The Content-Signal lines before the first User-agent line. They apply to all crawlers.
//   - The License lines. They apply to all crawlers, wherever they are.
//
// No dialect specifies these lines. Their texts are draft-ietf-aipref-attach, the signals of
// contentsignals.org, and RSL 1.0. They are read under all dialects, in the groups of the dialect.
// For [Temoto], which has no lines of this kind, a file is divided into groups as in [RFC9309], and
// temoto chooses the group.
func (r *Rules) UsageLines(tokens ...string) []UsageLine {
	if r.temoto != nil {
		return r.temoto.usageLines(tokens)
	}
	if !r.usage {
		return nil
	}
	best := r.bestRank(tokens)
	naming := r.dialect.variant().naming
	return r.usageLines(func(value string) bool { return best != noRank && naming.rank(value, tokens) == best })
}

// usageLines returns the lines about the use of content that apply to a crawler. ours reports
// whether a User-agent value names the group of the crawler.
func (r *Rules) usageLines(ours func(value string) bool) (lines []UsageLine) {
	v := r.dialect.variant()
	named := false // the current group names the crawler
	ended := true  // the run of User-agent lines of the current group has ended
	for _, rec := range r.records {
		switch rec.kind {
		case agentLine:
			named = named && !ended || ours(r.value(rec))
			ended = false
		case siteSignalLine, licenseLine:
			lines = append(lines, r.usageLine(rec))
		case usageLine, signalLine:
			if named {
				lines = append(lines, r.usageLine(rec))
			}
			ended = true
		}
		ended = ended || v.endsRun(rec.kind)
	}
	slices.SortFunc(lines, func(a, b UsageLine) int { return a.Line - b.Line })
	return lines
}

// usageLine returns the UsageLine of a record. It does not share the memory of the file.
func (r *Rules) usageLine(rec record) UsageLine {
	return UsageLine{Key: usageKeys[rec.kind], Value: strings.Clone(r.value(rec)), Line: int(rec.line)}
}
